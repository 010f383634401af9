"""What a valid recipe should make its author think about."""

from __future__ import annotations

from hacrl.config.schema import Recipe

__all__ = ["cautions"]

_SPACING = {"bfloat16": 2.0**-8}
"""Relative distance of neighbouring numbers."""
_WEIGHT = 0.02
"""Usual size of a weight; it is what models are initialised with."""


def cautions(recipe: Recipe) -> list[str]:
    """One sentence each, naming the key and the remedy."""
    messages = []
    heard = {source for name in recipe.learners for source in recipe.sources(name)}
    for name in recipe.agents:
        if name not in recipe.learners and name not in heard:
            messages.append(
                f"agents.{name}: does not learn, and no agent learns from it; list it in "
                "sharing, or drop it"
            )
    for name, agent in recipe.learners.items():
        key, dtype = f"agents.{name}.dtype", agent.dtype
        if agent.lora is not None:  # an adapter is kept in single precision
            if dtype == "float16":
                messages.append(
                    f"{key}: gradients below 6e-8 on their way to the adapter are 0 in float16; "
                    "bfloat16 has the range of float32"
                )
            continue
        rate = agent.learning_rate or recipe.optimizer.learning_rate
        spacing, second = _SPACING.get(dtype, 0.0), recipe.optimizer.betas[1]
        # An AdamW step is about as large as the learning rate; half a spacing rounds it to nothing.
        if rate < _WEIGHT * spacing / 2:
            messages.append(
                f"{key}: steps of {rate:g} are rounded away in {dtype} weights; use float32 with "
                "update.autocast: bfloat16"
            )
        # Of the second moment, each update replaces a share of 1 - beta, rounded likewise.
        if 1 - second < spacing / 2:
            messages.append(
                f"{key}: AdamW's moments are in {dtype} as the weights are, where the second can "
                f"no longer decrease with optimizer.betas[1] {second:g}; use float32 with "
                "update.autocast: bfloat16, or an adapter (lora)"
            )
        total = recipe.steps * recipe.updates_per_step(name)
        if recipe.optimizer.warmup_updates >= total:
            messages.append(
                f"optimizer.warmup_updates: agent {name} makes {total} updates in all, so its "
                "learning rate never reaches its full value; warm up over fewer"
            )
    return messages
