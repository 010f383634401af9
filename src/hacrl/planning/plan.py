"""Whether a recipe fits its devices, and what to change where it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from transformers import PretrainedConfig

from hacrl.config import recipe_from_dict
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.planning.devices import Devices
from hacrl.planning.placement import needed, place
from hacrl.planning.rehearsal import Need, rehearse
from hacrl.planning.remedies import remedies

__all__ = ["Fit", "Planner"]

_MOST_CHANGES = 6


@dataclass(frozen=True, slots=True)
class Fit:
    """How a recipe lies on its devices.

    Args:
        needs: of each agent's first rank.
        devices: for each device its agents, and bytes needed by phase; empty if there are too few
            devices for the ranks.
        lacking: agent and phase that go furthest beyond a device's memory, None if all fits.
    """

    needs: Mapping[str, Need]
    devices: Sequence[tuple[tuple[str, ...], Mapping[str, int]]]
    lacking: tuple[str, str] | None

    @property
    def fits(self) -> bool:
        return bool(self.devices) and self.lacking is None


class Planner:
    """Rehearses agents, each setting once.

    Args:
        configs: of the agents' models.
        prompt_tokens: of the longest prompt.
        tell: is called with what is being rehearsed.
    """

    def __init__(
        self,
        configs: Mapping[str, PretrainedConfig],
        prompt_tokens: int,
        devices: Devices,
        tell: Callable[[str], object],
    ) -> None:
        self._configs = configs
        self._prompt_tokens = prompt_tokens
        self._devices = devices
        self._tell = tell
        self._known: dict[str, Need] = {}

    def fit(self, recipe: Recipe) -> Fit:
        """See how a recipe lies on the devices."""
        needs = {name: self._need(name, recipe) for name in self._configs}
        places = place(recipe, self._devices) or []
        devices = [
            (agents, needed(recipe, agents, needs, self._devices)) for agents in places if agents
        ]
        worst = max(
            ((size, agents, phase) for agents, sizes in devices for phase, size in sizes.items()),
            default=(0, (), ""),
        )
        if worst[0] <= self._devices.memory:
            return Fit(needs, devices, None)
        phase = worst[2]
        agent = max(worst[1], key=lambda name: needs[name].peaks.get(phase, 0))
        return Fit(needs, devices, (agent, phase))

    def change(self, recipe: Recipe) -> list[str] | None:
        """Overrides with which a recipe fits, as few as were found; None if none were.

        One change alone is looked for first, the smallest first; then changes are added to each
        other in that order.
        """
        changed, made = recipe, list[str]()
        for _ in range(_MOST_CHANGES):
            fit = self.fit(changed)
            if fit.fits:
                return made
            if fit.lacking is None:
                return None
            tried = []
            for overrides in remedies(changed, *fit.lacking, self._prompt_tokens, self._devices):
                candidate = _overridden(changed, overrides)
                if candidate is None:
                    continue
                there = self.fit(candidate)
                if there.fits:
                    return [*made, *overrides]
                if there.devices:
                    tried.append((_most(there), overrides, candidate))
            better = [each for each in tried if each[0] < _most(fit)]
            if not better:
                return None
            _, overrides, changed = min(better, key=lambda each: each[0])
            made += overrides
        return None

    def _need(self, name: str, recipe: Recipe) -> Need:
        spec = recipe.models[name]
        parts = (spec, recipe.update, recipe.sampling, recipe.prompts_per_step)
        key = repr((name, *parts))
        if key not in self._known:
            self._tell(f"{name}, {spec.ranks} rank{'s' * (spec.ranks > 1)}")
            self._known[key] = rehearse(
                name, recipe, self._configs[name], self._prompt_tokens, self._devices.type
            )
        return self._known[key]


def _most(fit: Fit) -> int:
    return max(size for _, sizes in fit.devices for size in sizes.values())


def _overridden(recipe: Recipe, overrides: Sequence[str]) -> Recipe | None:
    """The recipe with changes; None if they contradict it."""
    raw = recipe.model_dump(mode="json", by_alias=True, exclude_unset=True)
    try:
        return recipe_from_dict(raw, overrides)
    except UserError:
        return None
