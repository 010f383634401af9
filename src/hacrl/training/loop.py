"""Algorithm 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hacrl.agents.learning.reporting import LearnReport
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.fleet import Fleet
from hacrl.phases import Phases
from hacrl.records import Pool, Prompt, Rollout, Verified
from hacrl.tasks import PromptStream
from hacrl.verify import VerifierPool

__all__ = ["StepResult", "co_train", "verify"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """All that one step produced. `seconds` is by phase.

    The agents of `capability` and `omega` are those of the pool; `reports` lacks one that was lost
    while it learned.
    """

    pool: Pool
    capability: Sequence[float | None]
    omega: Sequence[Sequence[float]]
    reports: Sequence[LearnReport]
    seconds: Mapping[str, float]


def co_train(
    fleet: Fleet,
    prompts: PromptStream,
    verifiers: VerifierPool,
    capability: CapabilityTracker,
    *,
    start: int = 0,
    steps: int,
    group_size: int,
    phases: Phases,
    record: Callable[[StepResult], None],
    evaluate: Callable[[int], None],
    settle: Callable[[], None],
    leave: Callable[[], None],
    checkpoint: Callable[[int], None],
) -> None:
    """Let every agent of the fleet learn from everybody's verified rollouts.

    Args:
        start: steps that have been completed before.
        group_size: G, responses per agent and prompt.
        phases: times each phase and may end the run after one.
        record: told of every step once it is complete.
        evaluate: told of the number of completed steps, 0 before the first; evaluates if it is
            time.
        settle: returns when no checkpoint is being written any more, and agents may change.
        leave: called when agents begin to change.
        checkpoint: told of the number of completed steps; saves the agents if it is time.
    """
    if start == 0:
        evaluate(0)
    for step in range(start, steps):
        batch = prompts.batch(step)
        with phases("sample", step):
            rollouts = fleet.sample(batch, group_size, occasion=f"step {step}")
        with phases("verify", step):
            pool = verify(step, batch, group_size, rollouts, verifiers)
        capability.observe(pool.rewards(), pool.agents)
        omega = capability.ratios(pool.agents)
        with phases("save", step):
            settle()
        with phases("learn", step):
            leave()
            reports = fleet.learn(pool, omega)
        known = capability.estimates(pool.agents)
        record(StepResult(pool, known, omega, reports, phases.seconds()))
        evaluate(step + 1)
        checkpoint(step + 1)


def verify(
    step: int,
    batch: Sequence[Prompt],
    group_size: int,
    rollouts: Mapping[str, Sequence[Rollout]],
    verifiers: VerifierPool,
) -> Pool:
    """Verify every response once; together they are the joint set of the step."""
    flat = [rollout for own in rollouts.values() for rollout in own]
    verdicts = verifiers.verify([(batch[rollout.prompt], rollout.text) for rollout in flat])
    return Pool(
        step=step,
        agents=tuple(rollouts),
        prompts=tuple(batch),
        group_size=group_size,
        rows=tuple(Verified(*row) for row in zip(flat, verdicts, strict=True)),
    )
