"""Questions that are conversations: lists of turns, as chat templates take them."""

from __future__ import annotations

from dataclasses import dataclass

from hacrl.errors import UserError
from hacrl.records import Turn

__all__ = ["Conversation", "read_conversation"]

_KEYS = ({"role", "content"}, {"from", "value"})
_ROLES = {"human": "user", "gpt": "assistant"}
"""What conversations with the keys `from` and `value` call them."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that waits for an answer.

    Args:
        system: the system message, None if there is none.
        history: the turns between it and the last one.
        text: the last turn, the user's.
    """

    system: str | None
    history: tuple[Turn, ...]
    text: str


def read_conversation(value: object, name: str) -> Conversation | None:
    """The conversation that a field holds; None if the field holds something else.

    Args:
        name: of the field, for error messages.

    Raises:
        UserError: it is one, but holds more than texts, or does not end with the user's turn.
    """
    if not _is_conversation(value):
        return None
    assert isinstance(value, list)
    turns = [_turn(turn, f"{name}.{number}") for number, turn in enumerate(value)]
    role, text = turns.pop()
    if role != "user":
        raise UserError(
            f"the conversation in {name!r} ends with the turn of {role!r}; a prompt ends with the "
            f"user's, such as {name}.{_last_user(turns)}.content"
        )
    system = turns.pop(0)[1] if turns and turns[0][0] == "system" else None
    return Conversation(system, tuple(turns), text)


def _is_conversation(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(turn, dict) and any(keys <= turn.keys() for keys in _KEYS) for turn in value
        )
    )


def _turn(turn: dict[str, object], place: str) -> Turn:
    role, content = (
        (turn["role"], turn["content"])
        if turn.keys() >= _KEYS[0]
        else (turn["from"], turn["value"])
    )
    if isinstance(content, list):  # parts, as multi-modal data have them
        parts = [part.get("text") if isinstance(part, dict) else None for part in content]
        texts = [part for part in parts if isinstance(part, str)]
        content = "".join(texts) if len(texts) == len(parts) else None
    if not isinstance(role, str) or not isinstance(content, str):
        raise UserError(f"the turn {place!r} must have a role and a content that is text")
    return _ROLES.get(role, role), content


def _last_user(turns: list[Turn]) -> int:
    return max((i for i, (role, _) in enumerate(turns) if role == "user"), default=0)
