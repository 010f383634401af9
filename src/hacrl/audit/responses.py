"""A file of responses, and the prompts that they answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hacrl.errors import UserError
from hacrl.records import Prompt
from hacrl.tasks.fields import find
from hacrl.tasks.files import file_rows

__all__ = ["paired"]


def paired(path: Path, field: str, prompts: Sequence[Prompt]) -> list[tuple[Prompt, str]]:
    """The responses of a file, each with its prompt.

    A row belongs to the prompt that its field `prompt_id` names (as in a run's rollouts); where
    there is no such field, the n-th row belongs to the n-th prompt of the tasks.

    Args:
        field: the field that holds the response.

    Raises:
        UserError: the file cannot be read, a row has no response, or rows and prompts do not match.
    """
    by_id = {prompt.id: prompt for prompt in prompts}
    pairs: list[tuple[Prompt | None, str]] = []
    for row in file_rows(path):
        text = find(row.fields, field)
        if not isinstance(text, str):
            fields = ", ".join(row.fields) or "none"
            raise UserError(
                f"{row.place}: no text in a field {field!r}; the fields are: {fields}\n"
                "Name the one that holds the response with --field"
            )
        name = row.fields.get("prompt_id")
        prompt = by_id.get(name) if isinstance(name, str) else None
        if name is not None and prompt is None:
            raise UserError(
                f"{row.place}: prompt_id {name!r} is not a prompt of the tasks, whose ids look "
                f"like {prompts[0].id!r}"
            )
        pairs.append((prompt, text))
    if all(prompt is not None for prompt, _ in pairs) and pairs:
        return [(prompt, text) for prompt, text in pairs if prompt is not None]
    if len(pairs) != len(prompts):
        raise UserError(
            f"{path}: holds {len(pairs)} responses for {len(prompts)} prompts; give one for each "
            f"in order, or name the prompt in a field prompt_id, such as {prompts[0].id!r}"
        )
    return [(prompt, text) for prompt, (_, text) in zip(prompts, pairs, strict=True)]
