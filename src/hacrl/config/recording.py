"""Rollouts of an earlier run in place of a model."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from hacrl.config.strict import Strict

__all__ = ["RecordingSpec"]


class RecordingSpec(Strict):
    """A source that answers with what an agent of an earlier run answered to the same prompts.

    It is data: no model is loaded, it learns nothing, and every response is verified anew.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Literal["recording"] = Field(alias="from")
    path: str
    """Folder of the run, of which `rollouts/` is read."""
    agent: str | None = None
    """Whose rollouts; needed only if the run has those of several agents."""
