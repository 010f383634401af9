"""What the reward makes of responses, before anything is trained on it: `hacrl verify`.

Golds are scored by themselves, then in the forms in which models write them, then with changes that
make them wrong. What is right and not paid, what is wrong and paid, and golds that nothing can be
judged by are reported by kind.
"""

from __future__ import annotations

from hacrl.audit.command import find, run_audit
from hacrl.audit.counting import Findings, Kind
from hacrl.audit.running import audit_golds, audit_responses
from hacrl.audit.tries import Audited, Expected, Tried, Try, Unjudged

__all__ = [
    "Audited",
    "Expected",
    "Findings",
    "Kind",
    "Tried",
    "Try",
    "Unjudged",
    "audit_golds",
    "audit_responses",
    "find",
    "run_audit",
]
