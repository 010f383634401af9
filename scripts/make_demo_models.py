"""Build the two tiny demo models, their tokenizers and the demo data set.

The demo of ``hacrl`` needs two *different* language models that are able, but not yet reliable,
at the same verifiable task, each one weak where the other is strong.  The task is a chain of
additions and subtractions.  The prompt is the chain, the response works it out step by step and
gives the result after the marker ``####``::

    prompt    12+7-5=
    response  12+7=19;19-5=14;####14

Both models are trained from scratch, first on flawless solutions, so that they learn arithmetic,
then on solutions with a share of wrong steps, so that sampling from them is about as often wrong
as right.  The share depends on the operation and is mirrored between the models:

===============  ===========================  ===================  ==================
folder           architecture and tokenizer   additions wrong      subtractions wrong
===============  ===========================  ===================  ==================
``qwen3-char``   Qwen3, one token per char    10 %                 50 %
``llama-bpe``    Llama, BPE (numbers)         50 %                 10 %
===============  ===========================  ===================  ==================

Run it from anywhere; it takes a few minutes on one CPU core::

    python scripts/make_demo_models.py

Everything is drawn from explicit seeds and computed on one thread, so that a second run with the
same versions of the libraries on the same kind of machine writes the same bytes.
"""

# transformers leaves many of its functions unannotated.
# mypy: allow-untyped-calls

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

# The tokenizers library reads this when it is first used.  The texts are short: threads cost more
# than they bring, and a single core is what the documented run time is about.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Split
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.utils.logging import disable_progress_bar

ALPHABET = "0123456789+-=;# \n"
"""Every character that both tokenizers can represent."""

MARKER = "####"
"""What stands before the final answer."""

MAX_VALUE = 99
"""Every intermediate result lies within 0..MAX_VALUE, also after a wrong step."""

MAX_TERM = 20
"""The largest number that a step adds or subtracts."""

ERROR_OFFSETS = (-10, -2, -1, 1, 2, 10)
"""How far off a wrong step may be: a slip of one digit."""

MAX_RESPONSE_TOKENS = 48
MAX_POSITIONS = 128
IGNORED = -100
"""The label of a position that bears no loss, as in ``torch.nn.functional.cross_entropy``."""

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "src" / "hacrl" / "demo" / "assets"


# ---------------------------------------------------------------------------------------------
# The task
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """A chain such as 12+7-5: the first number and the signed terms that follow it."""

    start: int
    terms: tuple[int, ...]

    @property
    def question(self) -> str:
        """The prompt, for example ``12+7-5=``."""
        return f"{self.start}" + "".join(f"{term:+d}" for term in self.terms) + "="

    @property
    def answer(self) -> str:
        """The right result, for example ``14``."""
        return str(self.start + sum(self.terms))

    @property
    def kind(self) -> str:
        """``addition`` or ``subtraction`` when all the steps are so, ``mixed`` otherwise."""
        if all(term > 0 for term in self.terms):
            return "addition"
        if all(term < 0 for term in self.terms):
            return "subtraction"
        return "mixed"

    def as_row(self) -> dict[str, str]:
        """Return the problem as a row of the data set."""
        return {"question": self.question, "answer": self.answer, "kind": self.kind}


@dataclass(frozen=True)
class ErrorRates:
    """The share of wrong steps in the solutions that a model learns from."""

    addition: float
    subtraction: float

    def of(self, term: int) -> float:
        """Return the rate for a step that adds the signed number ``term``."""
        return self.addition if term > 0 else self.subtraction


FLAWLESS = ErrorRates(addition=0.0, subtraction=0.0)


def stays_in_range(value: int, terms: Sequence[int]) -> bool:
    """Whether ``value`` and all the results after it, computed rightly, are in the range."""
    if not 0 <= value <= MAX_VALUE:
        return False
    for term in terms:
        value += term
        if not 0 <= value <= MAX_VALUE:
            return False
    return True


def draw_problem(rng: random.Random) -> Problem:
    """Draw a chain of 2 to 4 numbers whose intermediate results are all in the range."""
    count = rng.choice((1, 2, 3))
    signs = [rng.choice((1, -1)) for _ in range(count)]
    # The signs are kept while the numbers are redrawn, lest chains of one sign become rare.
    while True:
        start = rng.randint(1, MAX_VALUE)
        terms = tuple(sign * rng.randint(1, MAX_TERM) for sign in signs)
        if stays_in_range(start, terms):
            return Problem(start, terms)


def draw_distinct_problems(count: int, rng: random.Random) -> list[Problem]:
    """Draw ``count`` problems of which no two are the same."""
    problems: dict[Problem, None] = {}
    while len(problems) < count:
        problems[draw_problem(rng)] = None
    return list(problems)


def write_solution(problem: Problem, rates: ErrorRates, rng: random.Random) -> str:
    """Write a worked solution in which each step is wrong at the rate of its operation.

    The steps after a wrong one go on from the wrong value, and the final answer is the last value:
    a solution is always consistent with itself, only arithmetic is ever wrong.
    """
    value = problem.start
    steps = []
    for index, term in enumerate(problem.terms):
        result = value + term
        if rng.random() < rates.of(term):
            rest = problem.terms[index + 1 :]
            wrong = [result + offset for offset in ERROR_OFFSETS]
            wrong = [candidate for candidate in wrong if stays_in_range(candidate, rest)]
            if wrong:
                result = rng.choice(wrong)
        steps.append(f"{value}{term:+d}={result};")
        value = result
    return "".join(steps) + f"{MARKER}{value}"


def final_answer(response: str) -> str | None:
    """Return what follows the last marker, or ``None`` when there is no marker."""
    _, marker, answer = response.rpartition(MARKER)
    return answer.strip() if marker else None


_NUMBER = r"-?\d+"
_SOLUTION = re.compile(rf"(?:{_NUMBER}[+-]\d+={_NUMBER};)+{MARKER}{_NUMBER}")
_STEP = re.compile(rf"({_NUMBER})([+-]\d+)=({_NUMBER});")


def is_well_formed(problem: Problem, response: str) -> bool:
    """Whether the response works out this problem, be the results of the steps right or wrong."""
    if not _SOLUTION.fullmatch(response):
        return False
    value = str(problem.start)
    steps = _STEP.findall(response)
    if [int(term) for _, term, _ in steps] != list(problem.terms):
        return False
    for left, _, result in steps:
        if left != value:
            return False
        value = result
    return final_answer(response) == value


# ---------------------------------------------------------------------------------------------
# The tokenizers
# ---------------------------------------------------------------------------------------------


def build_char_tokenizer() -> PreTrainedTokenizerFast:
    """Build a tokenizer of one token per character, without BOS, as in the Qwen family."""
    pad, eos = "<|endoftext|>", "<|im_end|>"
    vocab = {token: index for index, token in enumerate([*ALPHABET, pad, eos])}
    # BPE without merges splits a text into its characters; as in the Qwen family the padding
    # token stands in for what is unknown.
    core = Tokenizer(BPE(vocab=vocab, merges=[], unk_token=pad))
    core.decoder = Fuse()
    core.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in (pad, eos)])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=eos,
        pad_token=pad,
        unk_token=pad,
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )


def build_bpe_tokenizer(corpus: Sequence[str]) -> PreTrainedTokenizerFast:
    """Learn a BPE from the corpus, with the special tokens of the Llama family and a BOS.

    Numbers are cut into groups of at most two digits before merging (Llama 3 does so with three),
    so that a number of the task is one token; the marker becomes one token as well.
    """
    unk, bos, eos = "<unk>", "<s>", "</s>"
    core = Tokenizer(BPE(unk_token=unk))
    core.pre_tokenizer = Split(Regex(r"\d{1,2}|#+|[^\d#]"), behavior="isolated")
    core.decoder = Fuse()
    trainer = BpeTrainer(
        vocab_size=128,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=list(ALPHABET),
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in (unk, bos, eos)],
    )
    core.train_from_iterator(corpus, trainer)
    core.post_processor = TemplateProcessing(
        single=f"{bos} $A",
        pair=f"{bos} $A {bos} $B",
        special_tokens=[(bos, core.token_to_id(bos))],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=bos,
        eos_token=eos,
        pad_token=eos,
        unk_token=unk,
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )


def check_lossless(tokenizer: PreTrainedTokenizerFast, rng: random.Random) -> None:
    """Raise unless random texts over the alphabet survive encoding and decoding."""
    for _ in range(1000):
        text = "".join(rng.choices(ALPHABET, k=rng.randint(0, 40)))
        decoded = tokenizer.decode(tokenizer.encode(text, add_special_tokens=False))
        if decoded != text:
            raise RuntimeError(f"the tokenizer turned {text!r} into {decoded!r}")


# ---------------------------------------------------------------------------------------------
# The models
# ---------------------------------------------------------------------------------------------


def build_qwen3(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Build a Qwen3 model with random weights."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=160,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=MAX_POSITIONS,
            tie_word_embeddings=True,
            initializer_range=0.08,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=True,
        )
    )


def build_llama(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """Build a Llama model with random weights."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=192,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=16,
            max_position_embeddings=MAX_POSITIONS,
            tie_word_embeddings=True,
            initializer_range=0.08,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            use_cache=True,
        )
    )


def sampling_config(tokenizer: PreTrainedTokenizerFast) -> GenerationConfig:
    """Describe plain sampling from the model's own distribution, without any cut of its tail."""
    return GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


# ---------------------------------------------------------------------------------------------
# Training
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """How a model is trained: flawless solutions first, then solutions with wrong steps."""

    rates: ErrorRates
    flawless_steps: int
    flawed_steps: int
    batch_size: int = 64
    lr_warmup_steps: int = 100
    peak_lr: float = 4e-3
    flawed_lr: float = 4e-4
    final_lr: float = 2e-5
    weight_decay: float = 0.01

    @property
    def steps(self) -> int:
        """The number of optimizer steps."""
        return self.flawless_steps + self.flawed_steps

    def lr_at(self, step: int) -> float:
        """Return the rate: a linear rise to the peak, then one cosine down for each phase.

        The flawed phase starts from a small rate, as gradients from wrong steps are noisy: at a
        large rate they would wipe out some of the arithmetic instead of making it less certain.
        """
        if step < self.lr_warmup_steps:
            return self.peak_lr * (step + 1) / self.lr_warmup_steps
        if step < self.flawless_steps:
            progress = (step - self.lr_warmup_steps) / (self.flawless_steps - self.lr_warmup_steps)
            return cosine_decay(self.peak_lr, self.flawed_lr, progress)
        progress = (step - self.flawless_steps) / self.flawed_steps
        return cosine_decay(self.flawed_lr, self.final_lr, progress)


def cosine_decay(first: float, last: float, progress: float) -> float:
    """Go from ``first`` to ``last`` along half a cosine, as ``progress`` goes from 0 to 1."""
    return last + (first - last) * 0.5 * (1.0 + math.cos(math.pi * progress))


def draw_solutions(
    training: Training, excluded: frozenset[Problem], rng: random.Random
) -> Iterator[list[tuple[str, str]]]:
    """Yield one batch of (prompt, response) for each step; held-out problems never occur."""
    for step in range(training.steps):
        rates = FLAWLESS if step < training.flawless_steps else training.rates
        batch: list[tuple[str, str]] = []
        while len(batch) < training.batch_size:
            problem = draw_problem(rng)
            if problem not in excluded:
                batch.append((problem.question, write_solution(problem, rates, rng)))
        yield batch


def encode_batch(
    batch: Sequence[tuple[str, str]], tokenizer: PreTrainedTokenizerFast
) -> tuple[torch.Tensor, torch.Tensor]:
    """Encode (prompt, response) pairs to input ids and labels, padded on the right.

    Prompt and response are encoded apart, as in reinforcement learning, where the prompt is given
    and the response is made of the model's own tokens.  Only the response and EOS bear loss.
    """
    prompts = tokenizer([prompt for prompt, _ in batch]).input_ids
    responses = tokenizer([response for _, response in batch], add_special_tokens=False).input_ids
    rows = [p + r + [tokenizer.eos_token_id] for p, r in zip(prompts, responses, strict=True)]
    width = max(len(row) for row in rows)
    input_ids = torch.full((len(rows), width), int(tokenizer.pad_token_id))
    labels = torch.full((len(rows), width), IGNORED)
    for index, (prompt, row) in enumerate(zip(prompts, rows, strict=True)):
        input_ids[index, : len(row)] = torch.tensor(row)
        labels[index, len(prompt) : len(row)] = torch.tensor(row[len(prompt) :])
    return input_ids, labels


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    training: Training,
    excluded: frozenset[Problem],
    rng: random.Random,
) -> None:
    """Train the model in place by next-token prediction."""
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=training.peak_lr,
        betas=(0.9, 0.98),
        weight_decay=training.weight_decay,
    )
    model.train()
    losses: list[float] = []
    for step, batch in enumerate(draw_solutions(training, excluded, rng)):
        for group in optimizer.param_groups:
            group["lr"] = training.lr_at(step)
        input_ids, labels = encode_batch(batch, tokenizer)
        # No attention mask: with padding on the right, causal attention never sees the padding.
        logits = model(input_ids=input_ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 250 == 0:
            recent = sum(losses[-250:]) / 250
            print(f"  step {step + 1:5d}/{training.steps}  loss {recent:.4f}", flush=True)
    model.eval()


# ---------------------------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Responses:
    """The responses to one problem, and the length of each one in tokens, EOS included."""

    texts: list[str]
    lengths: list[int]

    def accuracy(self, problem: Problem) -> float:
        """Return the share of the responses that give the right answer."""
        return mean([final_answer(text) == problem.answer for text in self.texts])


@torch.no_grad()
def respond(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    problems: Sequence[Problem],
    *,
    samples: int | None,
) -> list[Responses]:
    """Draw ``samples`` responses to each problem, or only the greedy one for ``None``."""
    inputs = tokenizer([p.question for p in problems], padding=True, return_tensors="pt")
    config = sampling_config(tokenizer)
    config.max_new_tokens = MAX_RESPONSE_TOKENS
    config.num_return_sequences = samples or 1
    if samples is None:
        config.do_sample, config.temperature, config.top_k, config.top_p = False, None, None, None
    output = model.generate(**inputs, generation_config=config)  # type: ignore[operator]
    rows = [until_eos(row, tokenizer) for row in output[:, inputs.input_ids.shape[1] :].tolist()]
    texts = [str(tokenizer.decode(row, skip_special_tokens=True)) for row in rows]
    lengths = [len(row) for row in rows]
    size = samples or 1
    return [
        Responses(texts[first : first + size], lengths[first : first + size])
        for first in range(0, len(rows), size)
    ]


def until_eos(token_ids: list[int], tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Cut what follows the first EOS, which is kept."""
    eos = tokenizer.eos_token_id
    return token_ids[: token_ids.index(eos) + 1] if eos in token_ids else token_ids


def mean(values: Sequence[float]) -> float:
    """Return the mean, or NaN when there is nothing to take it of."""
    return sum(values) / len(values) if values else math.nan


def print_accuracies(
    problems: Sequence[Problem], greedy: Sequence[Responses], sampled: Sequence[Responses]
) -> None:
    """Print the accuracies of greedy and sampled responses, over all and by kind of problem."""
    print(f"  {'kind':12s} {'problems':>8s} {'sampled':>8s} {'greedy':>8s} {'pass@8':>8s} mixed")
    for kind in ("all", "addition", "subtraction", "mixed"):
        chosen = [index for index, p in enumerate(problems) if kind in ("all", p.kind)]
        first = [greedy[index].accuracy(problems[index]) for index in chosen]
        groups = [sampled[index].accuracy(problems[index]) for index in chosen]
        print(
            f"  {kind:12s} {len(chosen):8d} {mean(groups):8.3f} {mean(first):8.3f} "
            f"{mean([group > 0 for group in groups]):8.3f} "
            f"{mean([0 < group < 1 for group in groups]):.3f}"
        )


def report(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, problems: Sequence[Problem]
) -> None:
    """Print how good and how fluent the model is on the problems."""
    greedy = respond(model, tokenizer, problems, samples=None)
    sampled = respond(model, tokenizer, problems, samples=8)
    print_accuracies(problems, greedy, sampled)
    pairs = list(zip(problems, sampled, strict=True))
    well_formed = [is_well_formed(p, text) for p, group in pairs for text in group.texts]
    lengths = sorted(length for group in sampled for length in group.lengths)
    print(f"  well formed: {mean(well_formed):.4f} of the sampled responses")
    print(
        f"  tokens of a sampled response, with EOS: mean {mean(lengths):.1f}, "
        f"median {lengths[len(lengths) // 2]}, longest {lengths[-1]}",
        flush=True,
    )


# ---------------------------------------------------------------------------------------------
# Putting it together
# ---------------------------------------------------------------------------------------------


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write an ordinary Hugging Face folder."""
    model.generation_config = sampling_config(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for path in folder.iterdir():
        # safetensors are written for their owner only; in an installed package all must read them.
        path.chmod(0o644)


def write_rows(path: Path, problems: Sequence[Problem]) -> None:
    """Write the problems as JSON lines."""
    lines = [json.dumps(problem.as_row()) + "\n" for problem in problems]
    path.write_text("".join(lines), encoding="utf-8", newline="\n")


MIRRORED_TRAINING = {
    "qwen3-char": Training(ErrorRates(0.1, 0.5), flawless_steps=1400, flawed_steps=500),
    "llama-bpe": Training(ErrorRates(0.5, 0.1), flawless_steps=3500, flawed_steps=600),
}


def make_model(
    name: str,
    train_problems: Sequence[Problem],
    heldout: Sequence[Problem],
    seed: int,
    folder: Path,
) -> None:
    """Build, train, measure and write one of the two models."""
    # Each model has its own generators: changing one leaves the other as it was.
    rng = random.Random(f"{seed}/{name}")
    torch.manual_seed(rng.getrandbits(32))
    if name == "qwen3-char":
        tokenizer = build_char_tokenizer()
        model = build_qwen3(tokenizer)
    else:
        corpus = [p.question + write_solution(p, FLAWLESS, rng) for p in train_problems]
        tokenizer = build_bpe_tokenizer(corpus)
        model = build_llama(tokenizer)
    check_lossless(tokenizer, rng)
    print(f"{name}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens", flush=True)
    started = time.perf_counter()
    train(model, tokenizer, MIRRORED_TRAINING[name], frozenset(heldout), rng)
    print(f"  trained in {time.perf_counter() - started:.0f} s", flush=True)
    report(model, tokenizer, heldout)
    save_model(model, tokenizer, folder)


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the demo models and the demo data set.")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write to")
    parser.add_argument("--seed", type=int, default=1, help="seed of everything random")
    parser.add_argument(
        "--only", choices=sorted(MIRRORED_TRAINING), help="build only this one of the models"
    )
    return parser.parse_args()


def main() -> None:
    """Write the data set and both models."""
    args = parse_args()
    disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    problems = draw_distinct_problems(2800, random.Random(f"{args.seed}/problems"))
    heldout, train_problems = problems[:400], problems[400:]
    args.out.mkdir(parents=True, exist_ok=True)
    write_rows(args.out / "train.jsonl", train_problems)
    write_rows(args.out / "heldout.jsonl", heldout)
    for name in MIRRORED_TRAINING:
        if args.only in (None, name):
            make_model(name, train_problems, heldout, args.seed, args.out / name)


if __name__ == "__main__":
    main()
