"""One agent of a run as an ordinary Hugging Face folder that stands alone."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from hacrl.agents.agent import STATE as AGENT_STATE
from hacrl.agents.policy.adapters import ADAPTER_CONFIG, tied_layer
from hacrl.agents.policy.loading import load_model
from hacrl.config import Recipe, load_recipe
from hacrl.config.lora import Lora
from hacrl.errors import UserError, first_line
from hacrl.runs.checkpoints import Checkpoint, best_checkpoint, checkpoints, newest_checkpoint
from hacrl.runs.history import learned_steps
from hacrl.runs.model_card import model_card
from hacrl.runs.sealing import damage
from hacrl.runs.writing import explain_disk, read_lines

__all__ = ["Source", "export", "find_source", "push"]

_OPTIMIZER_FILES = ("optimizer.safetensors", "learner.json", AGENT_STATE)
_TOLERANCE = 1e-3
"""Largest difference of two log-probabilities that single precision explains."""
_ROUNDINGS = 8
"""By how many distances of neighbouring numbers rounded weights may move what comes out, relative
to how far apart the log-probabilities lie."""


@dataclass(frozen=True, slots=True)
class Source:
    """An agent of a run as it was at one moment, which can be exported.

    Args:
        run: folder of the run.
        recipe: of the run.
        agent: name.
        folder: what holds the agent.
        completed: steps that had been completed then, at most.
        checkpoint: folder of the checkpoint that it lies in; None for what the run ended with.
    """

    run: Path
    recipe: Recipe
    agent: str
    folder: Path
    completed: int
    checkpoint: Path | None = None


def find_source(run: Path, agent: str | None = None, checkpoint: str | None = None) -> Source:
    """What a user names to be exported.

    Args:
        agent: may be None where the run has only one.
        checkpoint: `best`, `last` or a number of steps; None takes what the run ended with, or its
            last checkpoint if it has not ended.

    Raises:
        UserError: there is no such run, agent or checkpoint.
    """
    if not (run / "recipe.yaml").is_file():
        raise UserError(f"{run}: is not a run folder (it has no recipe.yaml)")
    recipe = load_recipe(run / "recipe.yaml")
    if agent is None:
        if len(recipe.learners) > 1:
            raise UserError(f"export: choose one with --agent: {', '.join(recipe.learners)}")
        (agent,) = recipe.learners
    if agent not in recipe.agents:
        raise UserError(f"--agent {agent}: {run} has the agents {', '.join(recipe.learners)}")
    if agent not in recipe.learners:
        raise UserError(
            f"--agent {agent}: does not learn, so {run} has no model of it; it has those of "
            f"{', '.join(recipe.learners)}"
        )
    final = run / "agents" / agent
    if checkpoint is None and final.is_dir():
        return Source(run, recipe, agent, final, recipe.steps)
    chosen = _checkpoint(run / "checkpoints", checkpoint or "last")
    return Source(run, recipe, agent, chosen.agents / agent, chosen.step, chosen.path)


def export(source: Source, to: Path, *, merge: bool, note: Callable[[str], None]) -> None:
    """Write an agent with tokenizer, template, generation config and a model card.

    Args:
        to: a folder that does not exist yet. It appears when it is complete.
        merge: for an agent that has an adapter: merge it into its model, and see that the merged
            model, as read back from the disk, gives the log-probabilities that the two gave apart.
        note: called with sentences about where the weights come from, and how exact the merging
            was.

    Raises:
        UserError: the checkpoint is damaged, the folder exists or cannot be written, or the adapter
            cannot be merged.
    """
    if to.exists():
        raise UserError(f"--to {to}: exists already; name a folder that does not")
    if source.checkpoint is not None and (problem := damage(source.checkpoint)):
        raise UserError(
            f"checkpoint {source.checkpoint}: {problem}; choose another with --checkpoint"
        )
    run, agent, folder = source.run, source.agent, source.folder
    lines = read_lines(run / "metrics.jsonl")
    rows = [row for row in lines if row["agent"] == agent and row["step"] < source.completed]
    learned = learned_steps(rows, _updates(folder))
    step = learned[-1] + 1 if learned else 0
    missed = step - len(learned)
    note(
        f"{agent} after step {step}, from {folder}"
        + (f"; it learned in {len(learned)} of them, and was missing in between" if missed else "")
    )
    adapter = (folder / ADAPTER_CONFIG).is_file()
    part = to.with_name(to.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with explain_disk(to, then="export again"):
            shutil.copytree(folder, part, ignore=shutil.ignore_patterns(*_OPTIMIZER_FILES))
            if adapter and merge:
                _merge(source, part, note)
            elif merge:
                note(f"{agent} has no adapter; there is nothing to merge")
            card = model_card(run, source.recipe, agent, learned, adapter=adapter and not merge)
            (part / "README.md").write_text(card, "utf-8")
            part.rename(to)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def push(folder: Path, repository: str) -> str:
    """Upload an exported folder to the Hugging Face Hub, into a private repository if it is new.

    Returns:
        Its address.

    Raises:
        UserError: the Hub refuses it, or cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    api = HfApi()
    try:
        api.create_repo(repository, private=True, exist_ok=True)
        return str(api.upload_folder(repo_id=repository, folder_path=folder))
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise UserError(
            f"--push {repository}: {first_line(error)}; {folder} is complete, log in with "
            f"`hf auth login` and upload it with `hf upload {repository} {folder}`"
        ) from error


def _updates(folder: Path) -> int | None:
    """Updates that the weights have seen, where that is written beside them: in a checkpoint, or
    where the agent was missing as the run ended and is as it was in one."""
    state = folder / AGENT_STATE
    if not state.is_file():
        return None
    return int(json.loads(state.read_text("utf-8"))["version"])


def _checkpoint(root: Path, wanted: str) -> Checkpoint:
    known = checkpoints(root)
    if wanted == "last":
        chosen, passed_over = newest_checkpoint(root)
        reason = "; ".join(passed_over) or f"{root} is empty"
    elif wanted == "best":
        chosen, reason = best_checkpoint(root), "none has a score, see checkpoints.best"
    else:
        chosen = next((c for c in known if str(c.step) == wanted), None)
        reason = f"there are {', '.join(str(c.step) for c in known) or 'none'}"
    if chosen is None:
        raise UserError(f"--checkpoint {wanted}: not found; {reason}")
    return chosen


@torch.no_grad()
def _merge(source: Source, to: Path, note: Callable[[str], None]) -> None:
    """Replace the adapter in a folder by the merged model.

    Merged and compared in single precision, whatever the base is stored in.
    """
    from peft import PeftModel

    agent, spec = source.agent, source.recipe.models[source.agent]
    wanted, trained = getattr(torch, spec.dtype), spec.lora or Lora()
    if trained.quantization != "none":
        note(
            f"{agent} was trained on a base in {trained.quantization}; it is merged into the "
            "unquantized model, whose answers differ slightly"
        )
    whole = spec.model_copy(update={"dtype": "float32", "device": "cpu", "lora": None})
    base = load_model(agent, whole)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Model has `tie_word_embeddings=True`")  # below
        apart: Any = PeftModel.from_pretrained(base, str(source.folder), agent)
    if layer := tied_layer(agent, apart.get_base_model()):
        raise UserError(
            f"agent {agent}: its adapter is on {layer}, whose weight is tied to another layer's, "
            "so it cannot be merged; export it without --merge"
        )
    before = _logprobs(apart.eval())
    merged: PreTrainedModel = apart.merge_and_unload()
    _compare(agent, "merged", before, _logprobs(merged), _TOLERANCE)
    for stale in (ADAPTER_CONFIG, "adapter_model.safetensors"):
        (to / stale).unlink()
    merged.to(wanted).save_pretrained(to)
    rounded = _logprobs(merged.float())
    again: Any = AutoModelForCausalLM.from_pretrained(to, dtype=wanted)
    saved = _logprobs(again.float().eval())
    _compare(agent, "saved", rounded, saved, _TOLERANCE)
    off = _compare(agent, f"{spec.dtype}", before, saved, _rounding_limit(before, wanted))
    note(f"merged: log-probabilities of the saved model differ from the adapter's by {off:.1e}")


def _rounding_limit(before: Tensor, dtype: torch.dtype) -> float:
    """Largest difference that rounding every weight to a dtype explains.

    Each rounding changes a weight by half the relative distance of neighbouring numbers at most,
    and every layer adds to it; what comes out changes by a share of how far apart it lies.
    """
    spread = float(before.max() - before.min())
    return max(_TOLERANCE, _ROUNDINGS * torch.finfo(dtype).eps * spread)


def _logprobs(model: PreTrainedModel) -> Tensor:
    """Log-probabilities after fixed sequences of tokens, (rows, positions, vocabulary)."""
    size = int(model.config.get_text_config().vocab_size)
    ids = torch.randint(size, (4, 24), generator=torch.Generator().manual_seed(0))
    return model(input_ids=ids).logits.float().log_softmax(-1)  # type: ignore[no-any-return]


def _compare(agent: str, what: str, before: Tensor, after: Tensor, limit: float) -> float:
    off = float((after - before).abs().max())
    if not off <= limit:  # not-a-number is refused too
        raise UserError(
            f"agent {agent}: the {what} model's log-probabilities differ from the adapter's by "
            f"{off:.1e}; export it without --merge"
        )
    return off
