"""Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from hacrl.agents.learning.reporting import LearnReport
from hacrl.algorithm.base import Algorithm, JointSet, Judgement
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.fleet import Fleet
from hacrl.phases import Phases
from hacrl.records import Pool
from hacrl.tasks import PromptStream
from hacrl.verify import VerifierPool
from hacrl.verify.rollouts import verify_rollouts

__all__ = ["Step", "by_learner", "co_train", "joint_set"]


@dataclass(frozen=True, slots=True)
class Step:
    """All that one step produced. `seconds` is by phase.

    The agents of `capability`, `omega` and `judgement` are those of the pool; `reports` are those
    of the learners, but for one that was lost while it learned.
    """

    pool: Pool
    capability: Sequence[float | None]
    omega: Sequence[Sequence[float]]
    judgement: Judgement
    reports: Sequence[LearnReport]
    seconds: Mapping[str, float]


def co_train(
    fleet: Fleet,
    prompts: PromptStream,
    verifiers: VerifierPool,
    capability: CapabilityTracker,
    algorithm: Algorithm,
    sharing: Mapping[str, Sequence[str]],
    *,
    steps: range,
    group_size: int,
    phases: Phases,
    before_learning: Callable[[], None],
) -> Iterator[Step]:
    """Let every learner of the fleet learn from all agents' verified rollouts, step by step.

    Args:
        sharing: for every learner, the peers that it learns from, which need not learn themselves.
        steps: numbers of the steps to make.
        group_size: G, responses per agent and prompt.
        phases: times each phase and may end the run before one.
        before_learning: returns when agents may change, since nothing reads their weights any more.
    """
    for step in steps:
        batch = prompts.batch(step)
        with phases("sample", step):
            rollouts = fleet.sample(batch, group_size, occasion=f"step {step}")
        with phases("verify", step):
            pool = verify_rollouts(step, batch, group_size, rollouts, verifiers)
        capability.observe(pool.rewards(), pool.agents)
        omega = capability.ratios(pool.agents)
        judgement = algorithm.judge(joint_set(pool, omega, sharing))
        with phases("save", step):
            before_learning()
        with phases("learn", step):
            reports = fleet.learn(pool, by_learner(judgement, pool.agents, sharing))
        estimates = capability.estimates(pool.agents)
        yield Step(pool, estimates, omega, judgement, reports, phases.seconds())


def joint_set(
    pool: Pool, omega: Sequence[Sequence[float]], sharing: Mapping[str, Sequence[str]]
) -> JointSet:
    """What the algorithm sees of a pool. Axes as in `JointSet`, agents in the pool's order.

    An agent that does not learn has no sources, but its responses have advantages, which its
    learners use (Eq. 10): it is compared with those learners.

    Args:
        sharing: see `co_train`.
    """
    rewards, ratios = (torch.tensor(x, dtype=torch.float64) for x in (pool.rewards(), omega))

    def compared(k: str, j: str) -> bool:
        return k == j or (j in sharing[k] if k in sharing else k in sharing.get(j, ()))

    member = [[compared(k, j) for j in pool.agents] for k in pool.agents]
    return JointSet(pool.agents, rewards, ratios, torch.tensor(member))


def by_learner(
    judgement: Judgement, agents: Sequence[str], sharing: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, list[list[float]]]]:
    """Advantages for each learner of itself and its sources, as [prompts][samples]."""
    value = dict(zip(agents, judgement.value_KJPG.tolist(), strict=True))
    return {
        k: {j: own for j, own in zip(agents, value[k], strict=True) if j == k or j in sharing[k]}
        for k in agents
        if k in sharing
    }
