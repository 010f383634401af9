"""(e) What the controller adds to a step: everything but sampling, verifying and the updates.

Rollouts are made up, of about the length of the demo's, so that only the controller's own work is
timed: decoding and encoding again, the pool, advantages, lessons, reports and what is written.
"""

from __future__ import annotations

import gc
import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.speed.with_hacrl import HacrlWork, Steps
from benchmarks.speed.work import Work, folder
from hacrl.agents.learning.learner import UpdateOutcome
from hacrl.agents.learning.lessons import make_lessons
from hacrl.agents.learning.outcomes import RowOutcome
from hacrl.agents.learning.reporting import LearnReport, make_report
from hacrl.agents.policy.encoding import decode_response
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample
from hacrl.algorithm.advantages import CapabilityAware
from hacrl.algorithm.capability import CapabilityTracker
from hacrl.config import Recipe
from hacrl.config.agents import AgentSpec
from hacrl.paths import BUNDLED
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
from hacrl.runs.folder import RunFolder
from hacrl.training.loop import Step, by_learner, joint_set
from hacrl.training.metrics import step_metrics

__all__ = ["overheads", "shares"]

GROUP = 8
LENGTH = 24
"""Characters of a response."""


def overheads(agents: int, responses: int, repeats: int) -> dict[str, float]:
    """Processor seconds by part, the least of some repeats.

    Args:
        agents: n; they differ in their tokenizers by turns.
        responses: of every agent.
    """
    policies = [
        load_policy(
            f"agent{i}",
            AgentSpec(
                model=f"{BUNDLED}demo/assets/{('qwen3-char', 'llama-bpe')[i % 2]}", device="cpu"
            ),
        )
        for i in range(agents)
    ]
    gc.freeze()  # as `train` does
    with tempfile.TemporaryDirectory() as folder:
        runs = [_once(policies, responses, Path(folder) / str(i)) for i in range(repeats)]
    return {part: round(min(run[part] for run in runs), 4) for part in runs[0]}


def _once(policies: list[Policy], responses: int, folder: Path) -> dict[str, float]:
    spent: dict[str, float] = {}

    @contextmanager
    def part(name: str) -> Iterator[None]:
        begun = time.process_time()
        yield
        spent[name] = spent.get(name, 0.0) + time.process_time() - begun

    names = [policy.name for policy in policies]
    batch = tuple(
        Prompt(f"arithmetic/{i}", "arithmetic", f"{i}+{i}=", str(2 * i))
        for i in range(responses // GROUP)
    )
    sampled = {policy.name: _sampled(policy, responses) for policy in policies}
    with part("decode"):
        rollouts = {
            policy.name: [_decoded(policy, *one) for one in enumerate(sampled[policy.name])]
            for policy in policies
        }
    rewards = random.Random(0)
    verdicts = [
        Verdict(value, Outcome.RIGHT if value else Outcome.WRONG, "1")
        for value in (float(rewards.random() < 0.5) for _ in range(len(names) * responses))
    ]
    with part("pool and capability"):
        pool = Pool(
            0,
            tuple(names),
            batch,
            GROUP,
            tuple(
                Verified(*row)
                for row in zip((r for own in rollouts.values() for r in own), verdicts, strict=True)
            ),
        )
        capability = CapabilityTracker(names, 5, "mean_reward", 10.0)
        capability.observe(pool.rewards())
        omega = capability.ratios()
    with part("advantages"):
        sharing = {name: [peer for peer in names if peer != name] for name in names}
        judgement = CapabilityAware()(joint_set(pool, omega, sharing))
        advantages = by_learner(judgement, names, sharing)
    reports = [
        _learned(policy, pool, advantages[policy.name], sampled[policy.name], part)
        for policy in policies
    ]
    run = RunFolder.create(folder, _recipe(names), overwrite=False)
    with part("rollouts written"):
        run.add_rollouts(pool)
    with part("lessons written"):
        run.add_lessons(0, (lesson for report in reports for lesson in report.lessons))
    with part("metrics written"):
        step = Step(pool, capability.estimates(), omega, judgement, reports, {})
        run.add_metrics(step_metrics(step))
    return spent


def _learned(
    policy: Policy,
    pool: Pool,
    advantage: Mapping[str, Sequence[Sequence[float]]],
    sampled: Sequence[Sample],
    part: Any,
) -> LearnReport:
    """What `Agent.learn` does around the updates."""
    sources = [name for name in pool.agents if name != policy.name]
    with part("encode"):
        lessons = make_lessons(
            policy,
            pool,
            advantage,
            [[3, 4, 5]] * len(pool.prompts),
            {(i // GROUP, i % GROUP): one for i, one in enumerate(sampled)},
        )
    rows = {i: RowOutcome(0, -0.01, 0.0, 0.0, False, True, True) for i in range(len(lessons))}
    updates = [UpdateOutcome(0.1, 0.1, 1e-6, False)] * len(pool.agents)
    with part("report"):
        return make_report(
            policy.name,
            sources,
            lessons,
            rows,
            updates,
            skipped_in_a_row=0,
            reduced_micro_batch_tokens=None,
        )


def _sampled(policy: Policy, responses: int) -> list[Sample]:
    draw = random.Random(policy.name)
    samples = []
    for _ in range(responses):
        text = "".join(draw.choice("0123456789+-=;") for _ in range(LENGTH))
        ids = [*policy.tokenizer.encode(text, add_special_tokens=False), policy.stop_ids[0]]
        samples.append(Sample(ids, [-0.5] * len(ids), True))
    return samples


def _decoded(policy: Policy, i: int, sample: Sample) -> Rollout:
    text, unshareable = decode_response(policy, sample.token_ids, sample.finished)
    length = len(sample.token_ids)
    place = (i // GROUP, policy.name, i % GROUP)
    return Rollout(*place, 0, text, math.fsum(sample.logprobs), length, True, unshareable)


def _recipe(names: list[str]) -> Recipe:
    return Recipe.model_validate(
        {
            "name": "controller",
            "steps": 1,
            "prompts_per_step": 8,
            "agents": {name: {"model": "unused"} for name in names},
            "tasks": {
                "t": {"source": {"type": "jsonl", "path": "unused"}, "verifier": {"type": "exact"}}
            },
        }
    )


def shares(scratch: Path) -> dict[str, Any]:
    """Overheads from 128 to 8,192 responses of two agents and from 2 to 8 agents; and their share
    of a step of 2, 4 and 8 tiny models (see `Work`)."""
    sizes = [(2, count) for count in (128, 512, 1024, 2048, 4096, 8192)] + [(4, 1024), (8, 1024)]
    rows = []
    for agents, count in sizes:
        parts = overheads(agents, count, 3)
        total = sum(parts.values())
        rows.append(
            {
                "agents": agents,
                "responses_per_agent": count,
                "seconds": round(total, 4),
                "microseconds_per_lesson": round(total / (agents * agents * count) * 1e6, 1),
                "parts": parts,
            }
        )
    steps = [_share(agents, count, scratch) for agents, count in ((2, 1024), (4, 256), (8, 128))]
    return {"overheads": rows, "steps": steps}


def _share(agents: int, responses: int, scratch: Path) -> dict[str, Any]:
    """Processor seconds of a step and of the controller's work in it."""
    work = Work("tiny", "mixed", False, responses // GROUP, GROUP, 64)
    folders = {f"agent{i}": folder(work, scratch, 1 + i) for i in range(agents)}
    steps = Steps(HacrlWork(work, folders))
    taken = []
    for _ in range(4):
        begun = time.process_time()
        steps.learn(steps.sample())
        taken.append(time.process_time() - begun)
    step = statistics.median(taken[1:])
    overhead = sum(overheads(agents, responses, 3).values())
    return {
        "case": work.name,
        "agents": agents,
        "responses_per_agent": responses,
        "seconds": round(step, 3),
        "overhead_seconds": round(overhead, 4),
        "share": round(overhead / step, 4),
    }
