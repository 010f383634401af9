"""Capability of each agent and the ratio between two agents (Eq. 5-7)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

__all__ = ["CapabilityTracker", "Metric", "capability_ratio", "observed_capability"]

Metric = Literal["mean_reward", "positive_rate"]


def observed_capability(rewards: Iterable[float], metric: Metric) -> float | None:
    """P_τ(k), Eq. 5: what an agent's own responses of one step say about its capability.

    Args:
        rewards: rewards of the agent's own responses over the whole batch; NaN is unscored.
        metric: their mean, or the share above zero.

    Returns:
        None if nothing was scored.

    Raises:
        ValueError: a negative reward under `mean_reward`; a ratio of means needs one sign.
    """
    scored = [reward for reward in rewards if not math.isnan(reward)]
    if not scored:
        return None
    if metric == "positive_rate":
        return sum(reward > 0 for reward in scored) / len(scored)
    if min(scored) < 0:
        raise ValueError(
            f"capability.metric mean_reward needs rewards ≥ 0, got {min(scored)}; "
            "use capability.metric: positive_rate"
        )
    return math.fsum(scored) / len(scored)


def capability_ratio(p_k: float | None, p_j: float | None, max_ratio: float) -> float:
    """ω(k,j) = P̂(k) / P̂(j), Eq. 7, within [1/max_ratio, max_ratio].

    1 if both capabilities are 0 or one is unknown. Both directions are read off one quotient, so
    that ω(k,j)·ω(j,k) = 1 also where the limit acts.
    """
    if p_k is None or p_j is None or p_k == p_j:
        return 1.0
    if p_k < p_j:
        return 1.0 / capability_ratio(p_j, p_k, max_ratio)
    return min(p_k / p_j, max_ratio) if p_j > 0 else max_ratio


class CapabilityTracker:
    """P̂_t(k), Eq. 6: mean of P_τ(k) over the last K steps, the current one included.

    Args:
        agents: names; the agent axis of everything below has this order.
        window: K. In the first steps the mean is over what exists.
        metric: see `observed_capability`.
        max_ratio: limit of ω.
    """

    def __init__(
        self, agents: Sequence[str], window: int, metric: Metric, max_ratio: float
    ) -> None:
        self.agents = tuple(agents)
        self._metric: Metric = metric
        self._max_ratio = max_ratio
        self._windows = [deque[float | None](maxlen=window) for _ in self.agents]

    def observe(
        self, rewards: Sequence[Sequence[Sequence[float]]], agents: Sequence[str] | None = None
    ) -> None:
        """Take in one step's rewards [agents][prompts][samples]; NaN is unscored.

        Args:
            agents: those that took part in the step; the others keep their windows. None is all.
        """
        for window, own in zip(self._of(agents), rewards, strict=True):
            window.append(observed_capability((r for group in own for r in group), self._metric))

    def estimates(self, agents: Sequence[str] | None = None) -> list[float | None]:
        """P̂ of every agent, or of those; None where nothing was scored in the whole window."""
        scored = [[p for p in window if p is not None] for window in self._of(agents)]
        return [math.fsum(ps) / len(ps) if ps else None for ps in scored]

    def ratios(self, agents: Sequence[str] | None = None) -> list[list[float]]:
        """ω(k,j) as [k][j], of all agents or of those."""
        estimates = self.estimates(agents)
        return [[capability_ratio(k, j, self._max_ratio) for j in estimates] for k in estimates]

    def state(self) -> dict[str, list[float | None]]:
        """The windows, as plain values for a checkpoint."""
        return {agent: list(w) for agent, w in zip(self.agents, self._windows, strict=True)}

    def restore(self, state: Mapping[str, Sequence[float | None]]) -> None:
        """Continue from what `state` returned.

        Raises:
            KeyError: an agent is missing from the state.
        """
        for agent, window in zip(self.agents, self._windows, strict=True):
            window.clear()
            window.extend(state[agent])

    def _of(self, agents: Sequence[str] | None) -> list[deque[float | None]]:
        if agents is None:
            return self._windows
        return [self._windows[self.agents.index(name)] for name in agents]
