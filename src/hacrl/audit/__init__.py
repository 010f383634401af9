"""How a reward scores responses, before anything is trained on it.

Reference answers are scored by themselves, then in the forms in which models write them, then with
changes that make them wrong. What is right and not rewarded, what is wrong and rewarded, and
reference answers that nothing can be judged by are reported by kind.
"""

from __future__ import annotations

from hacrl.audit.counting import Findings, Kind
from hacrl.audit.running import Tell, audit_golds, audit_responses, audit_tasks
from hacrl.audit.tries import Audited, Expected, Tried, Try, Unjudged

__all__ = [
    "Audited",
    "Expected",
    "Findings",
    "Kind",
    "Tell",
    "Tried",
    "Try",
    "Unjudged",
    "audit_golds",
    "audit_responses",
    "audit_tasks",
]
