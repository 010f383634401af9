"""What all parts of a recipe have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Name", "Strict"]

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]
"""Of an agent or a task: it becomes part of file names and of dotted keys."""


class Strict(BaseModel):
    """Refuses unknown keys, does not change, and holds finite numbers only."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
