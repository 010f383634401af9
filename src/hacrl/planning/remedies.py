"""Changes of a recipe that need less memory, the smallest first."""

from __future__ import annotations

from collections.abc import Iterator

from hacrl.config.schema import Recipe
from hacrl.planning.devices import Devices

__all__ = ["remedies"]

_SMALLEST_BATCH = 8


def remedies(
    recipe: Recipe, name: str, phase: str, prompt_tokens: int, devices: Devices
) -> Iterator[tuple[str, ...]]:
    """Overrides that help an agent in a phase, each a change of its own.

    First those that change nothing learned but by rounding, then more devices, then an adapter.
    """
    spec = recipe.models[name]
    longest = prompt_tokens + recipe.sampling.max_new_tokens
    sampling, update = recipe.sampling, recipe.update
    if phase == "sample" and spec.sampler.type == "hf":
        size = min(sampling.batch_size, recipe.prompts_per_step * recipe.group_size) // 2
        while size >= _SMALLEST_BATCH:
            yield (f"sampling.batch_size={size}",)
            size //= 2
    if phase in ("learn", "recompute") and spec.learns:
        budget = update.micro_batch_tokens or (2_048 if devices.type == "cpu" else 16_384)
        if budget > longest:
            yield (f"update.micro_batch_tokens={longest}",)
        if not update.gradient_checkpointing:
            yield ("update.gradient_checkpointing=true",)
    local = recipe.fleet.type == "local"
    if local and len(recipe.models) > 1 and not recipe.fleet.in_turns:
        yield ("fleet.in_turns=true",)
    others = sum(other.ranks for key, other in recipe.models.items() if key != name)
    fleet = ("fleet=ray",) if local else ()
    if local and devices.count >= len(recipe.models) > 1:
        yield fleet
    ranks = 2 * spec.ranks
    while others + ranks <= devices.count and devices.type != "cpu":
        yield (*fleet, f"agents.{name}.ranks={ranks}")
        ranks *= 2
    if spec.learns and spec.lora is None:
        yield (f"agents.{name}.lora={{rank: 16}}",)
