"""Low-rank adapters of an agent."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from hacrl.config.strict import Strict

__all__ = ["Lora"]


class Lora(Strict):
    """Train a low-rank adapter and leave the model's own weights as they are (PEFT's LoRA).

    Agents of the same model share its weights in memory, each with its own adapter. The
    adapter is kept in single precision whatever the model's `dtype`.
    """

    rank: int = Field(default=16, ge=1, le=2**14)
    alpha: float = Field(default=32.0, ge=1e-6, le=1e6)
    """The adapter is scaled by alpha / rank."""
    target_modules: Literal["all-linear"] | list[str] = "all-linear"
    """Layers that get an adapter: all linear ones but the output layer, or names such as
    `[q_proj, v_proj]`."""
    adapter: str | None = None
    """Folder or Hub id of a PEFT adapter to start from; it says its own rank and layers."""
    quantization: Literal["none", "nf4"] = "none"
    """Hold the model's own weights in 4 bits by bitsandbytes (QLoRA)."""

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        shape = {"rank", "alpha", "target_modules"} & self.model_fields_set
        if self.adapter is not None and any(
            getattr(self, key) != type(self).model_fields[key].default for key in shape
        ):
            raise ValueError("adapter: has its own rank, alpha and target_modules; drop these keys")
        if self.target_modules == []:
            raise ValueError("target_modules: name at least one layer, or use all-linear")
        return self
