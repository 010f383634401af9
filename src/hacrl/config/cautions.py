"""What a valid recipe should make its author think about."""

from __future__ import annotations

from hacrl.config.schema import Recipe

__all__ = ["cautions"]

_SPACING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Relative distance of neighbouring numbers."""
_WEIGHT = 0.02
"""Usual size of a weight; it is what models are initialised with."""


def cautions(recipe: Recipe) -> list[str]:
    """One sentence each, naming the key and the remedy."""
    found = []
    for name, agent in recipe.agents.items():
        rate = agent.learning_rate or recipe.optimizer.learning_rate
        # An AdamW step is about as large as the learning rate; half a spacing rounds it to nothing.
        if rate < _WEIGHT * _SPACING.get(agent.dtype, 0.0) / 2:
            found.append(
                f"agents.{name}.dtype: steps of {rate:g} are rounded away in {agent.dtype} "
                "weights; use float32 with update.autocast: bfloat16"
            )
        total = recipe.steps * recipe.updates_per_step(name)
        if recipe.optimizer.warmup_updates >= total:
            found.append(
                f"optimizer.warmup_updates: agent {name} makes {total} updates in all, so its "
                "learning rate never comes to its full value; warm up over fewer"
            )
    return found
