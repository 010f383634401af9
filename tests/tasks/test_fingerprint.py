from dataclasses import replace

import pytest

from hacrl.records import Prompt
from hacrl.tasks import fingerprint

PROMPTS = [Prompt("t/0", "t", "1+1?", "2"), Prompt("t/1", "t", "\ud800", "4", "Be brief.")]


def test_it_is_stable() -> None:
    assert fingerprint(PROMPTS) == fingerprint(tuple(PROMPTS))
    assert fingerprint([]).startswith("e3b0c442")
    assert len(fingerprint(PROMPTS)) == 64


@pytest.mark.parametrize(
    "changed",
    [
        [],
        PROMPTS[:1],
        PROMPTS[::-1],
        [*PROMPTS, PROMPTS[0]],
        *([replace(PROMPTS[0], **{name: "x"}), PROMPTS[1]] for name in ("id", "task", "text")),
        [replace(PROMPTS[0], gold="3"), PROMPTS[1]],
        [replace(PROMPTS[0], system=""), PROMPTS[1]],
        [replace(PROMPTS[0], text="1+1?2", gold=""), PROMPTS[1]],  # parts do not run together
    ],
)
def test_any_change_shows(changed: list[Prompt]) -> None:
    assert fingerprint(changed) != fingerprint(PROMPTS)
