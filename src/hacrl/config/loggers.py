"""Where metrics go besides the run folder."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from hacrl.config.strict import Strict

__all__ = ["LoggerSpec", "TensorBoardLogger", "TrackioLogger", "WandbLogger"]


class TensorBoardLogger(Strict):
    """Event files for TensorBoard. Changes nothing learned."""

    type: Literal["tensorboard"] = "tensorboard"
    folder: str | None = None
    """Each run gets its own folder in it; None takes the run folder's `tensorboard`."""


class WandbLogger(Strict):
    """Weights & Biases. Changes nothing learned."""

    type: Literal["wandb"] = "wandb"
    project: str = "hacrl"
    entity: str | None = None
    group: str | None = None
    tags: list[str] = Field(default_factory=list)
    mode: Literal["online", "offline"] = "online"
    """Offline writes into the run folder; `wandb sync` uploads it later."""


class TrackioLogger(Strict):
    """trackio: in its local folder, or on a Hugging Face Space. Changes nothing learned."""

    type: Literal["trackio"] = "trackio"
    project: str = "hacrl"
    group: str | None = None
    space_id: str | None = None


def _named(value: Any) -> Any:
    """A name alone stands for that logger with its defaults."""
    return {"type": value} if isinstance(value, str) else value


LoggerSpec = Annotated[
    Annotated[
        TensorBoardLogger | WandbLogger | TrackioLogger,
        Field(discriminator="type"),
    ],
    BeforeValidator(_named),
]
