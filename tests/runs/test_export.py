"""Agents as folders of their own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from huggingface_hub import HfApi
from huggingface_hub.errors import HFValidationError
from peft import PeftModel
from peft.tuners.lora import LoraModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from hacrl.config import recipe_from_dict
from hacrl.errors import UserError
from hacrl.evaluation.targets import find_targets, target_fingerprint
from hacrl.runs.export import export, find_source, push
from hacrl.training.preparing import prepare
from hacrl.training.train import train
from tests.tolerances import assert_close, terms

MakeRecipe = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory,
    qwen_folder: Path,
    llama_folder: Path,
    problems_file: Path,
) -> Path:
    """kim trains an adapter, lee all of its weights; evaluated at the start and the end."""
    task = {
        "source": {"type": "jsonl", "path": str(problems_file)},
        "verifier": {"type": "exact", "marker": None},
    }
    recipe = recipe_from_dict(
        {
            "name": "pair",
            "steps": 3,
            "prompts_per_step": 8,
            "threads": 1,
            "agents": {
                "kim": {"model": str(qwen_folder), "lora": {"rank": 4}},
                "lee": {"model": str(llama_folder)},
            },
            "tasks": {"bits": task},
            "clip": {"delta": 0.9, "own_low": 0.3, "own_high": 0.3},
            "sampling": {"max_new_tokens": 4},
            "optimizer": {"learning_rate": 1e-2},
            "evaluation": {"tasks": {"held": task}, "every": 1, "limit": 6},
            "checkpoints": {"every": 1, "keep": 1, "best": "held"},
        }
    )
    return train(recipe, tmp_path_factory.mktemp("runs")).path


def exported(
    run: Path, agent: str, to: Path, *, merge: bool = False, checkpoint: str | None = None
) -> list[str]:
    notes: list[str] = []
    export(find_source(run, agent, checkpoint), to, merge=merge, note=notes.append)
    return notes


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=torch.tensor([[1, 2, 3, 4, 3, 2]])).logits


def card_of(folder: Path) -> tuple[dict[str, Any], str]:
    _, head, text = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    return yaml.safe_load(head), text


def test_a_whole_model_loads_without_us(run: Path, tmp_path: Path) -> None:
    exported(run, "lee", tmp_path / "lee")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "lee")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "lee")
    final = AutoModelForCausalLM.from_pretrained(run / "agents" / "lee")
    assert torch.equal(logits(model), logits(final))
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.numerics
def test_an_adapter_is_exported_as_one_or_merged(
    run: Path, qwen_folder: Path, tmp_path: Path
) -> None:
    exported(run, "kim", tmp_path / "adapter")
    base = AutoModelForCausalLM.from_pretrained(qwen_folder)
    before = logits(base)
    apart = logits(PeftModel.from_pretrained(base, str(tmp_path / "adapter")))
    notes = exported(run, "kim", tmp_path / "merged", merge=True)
    assert any("differ from the adapter's by" in text for text in notes)
    merged = logits(AutoModelForCausalLM.from_pretrained(tmp_path / "merged"))
    assert_close(merged, apart, terms(base, 6))
    assert not torch.allclose(merged, before, atol=1e-3), "the adapter has learned something"
    assert not (tmp_path / "merged" / "adapter_config.json").exists()
    AutoTokenizer.from_pretrained(tmp_path / "merged")


def test_a_merge_that_changes_the_answers_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LoraModel.merge_and_unload

    def careless(self: LoraModel) -> Any:
        merged = whole(self)
        merged.get_input_embeddings().weight.data.mul_(1.01)
        return merged

    monkeypatch.setattr(LoraModel, "merge_and_unload", careless)
    with pytest.raises(UserError, match="agent kim: the merged model's log-probabilities differ"):
        exported(run, "kim", tmp_path / "merged", merge=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_merge_is_limited_in_every_dtype(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    (tmp_path / "half").mkdir()
    half = tmp_path / "half" / "run"
    shutil.copytree(run, half)
    recipe = yaml.safe_load((half / "recipe.yaml").read_text())
    recipe["agents"]["kim"]["dtype"] = dtype
    (half / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    exported(half, "kim", tmp_path / "merged", merge=True)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    assert merged.dtype == getattr(torch, dtype)
    to = PreTrainedModel.to

    def careless(self: PreTrainedModel, *args: Any, **options: Any) -> Any:
        moved = to(self, *args, **options)
        if args == (getattr(torch, dtype),):
            moved.get_input_embeddings().weight.data.mul_(1.5)
        return moved

    monkeypatch.setattr(PreTrainedModel, "to", careless)
    with pytest.raises(UserError, match=f"agent kim: the {dtype} model's log-probabilities differ"):
        exported(half, "kim", tmp_path / "again", merge=True)


@pytest.mark.parametrize("modules", [["lm_head"], ["embed_tokens", "q_proj"]])
def test_an_adapter_on_a_tied_layer_is_named_before_the_run_and_not_merged(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path, modules: list[str]
) -> None:
    lora = {"rank": 2, "target_modules": modules}
    raw = tiny_recipe(agents={"kim": {"model": str(qwen_folder), "lora": lora}}, steps=1)
    recipe = recipe_from_dict(raw)
    (warning,) = prepare(recipe).warnings
    assert f"agent kim: lora.target_modules has {'model.' * (modules[0] != 'lm_head')}" in warning
    assert "`hacrl export --merge` will refuse" in warning
    trained = train(recipe, tmp_path).path
    exported(trained, "kim", tmp_path / "adapter")
    with pytest.raises(UserError, match=r"agent kim: its adapter is on .*; export it without"):
        exported(trained, "kim", tmp_path / "merged", merge=True)


def test_the_card_tells_the_story(run: Path, qwen_folder: Path, tmp_path: Path) -> None:
    exported(run, "kim", tmp_path / "kim")
    head, text = card_of(tmp_path / "kim")
    assert head["library_name"] == "peft"
    assert head["tags"][:2] == ["hacrl", "hacpo"]
    assert "base_model" not in head, "a folder of this machine means nothing elsewhere"
    assert "learned from | lee (llama)" in text
    assert "a LoRA adapter" in text
    assert "steps | 3, of 8 prompts × 8 answers" in text
    rewards = [
        row["reward"]
        for row in map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        if row["agent"] == "kim"
    ]
    assert f"{rewards[0]:.3f} in the first step, {rewards[-1]:.3f} in the last" in text
    held = [
        row
        for row in map(json.loads, (run / "evaluations.jsonl").read_text().splitlines())
        if row["agent"] == "kim"
    ]
    assert f"| held | 1 | avg@1 | {held[0]['value']:.3f} |" in text
    assert f"| held | 3 | avg@1 | {held[-1]['value']:.3f} |" in text
    recipe = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    assert recipe["agents"]["kim"]["lora"]["rank"] == 4
    exported(run, "lee", tmp_path / "lee")
    assert card_of(tmp_path / "lee")[0]["library_name"] == "transformers"


def test_an_agent_that_was_lost_counts_the_steps_that_it_learned_from(
    run: Path, tmp_path: Path
) -> None:
    """lee was lost in step 1, and went on in step 2 as it had been saved after step 0."""
    folder = tmp_path / "pair"
    shutil.copytree(run, folder)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    first, _, third = (row for row in rows if row["agent"] == "lee")
    third["policy_version"] = first["policy_version"] + first["updates"]
    there = [row for row in rows if (row["agent"], row["step"]) != ("lee", 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in there))
    (note,) = exported(folder, "lee", tmp_path / "lee")
    assert "lee after step 3, from" in note
    assert note.endswith("; it learned in 2 of them, and was missing in between")
    card = card_of(tmp_path / "lee")[1]
    assert "steps | 2 of the first 3, of 8 prompts" in card
    assert f"{first['reward']:.3f} in the first step, {third['reward']:.3f} in the last" in card
    (note,) = exported(folder, "kim", tmp_path / "kim")
    assert note.startswith("kim after step 3, from ")
    assert "it learned in" not in note
    assert "steps | 3, of 8 prompts" in card_of(tmp_path / "kim")[1]


def test_an_agent_that_was_missing_at_the_end_is_of_its_last_checkpoint(
    run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "pair"
    shutil.copytree(run, folder)
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    first, second, _ = (row for row in rows if row["agent"] == "lee")
    # It is as it was saved after step 0; the row of step 1 tells of what was lost with it.
    there = [row for row in rows if (row["agent"], row["step"]) != ("lee", 2)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in there))
    (folder / "agents" / "lee" / "agent.json").write_text(
        json.dumps({"version": second["policy_version"]})
    )
    (note,) = exported(folder, "lee", tmp_path / "lee")
    assert note.startswith("lee after step 1, from ")
    card = card_of(tmp_path / "lee")[1]
    assert f"{first['reward']:.3f} in the first step, {first['reward']:.3f} in the last" in card
    assert "| held | 1 |" in card
    assert "| held | 2 |" not in card
    assert "| held | 3 |" not in card
    assert not (tmp_path / "lee" / "agent.json").exists()


def test_the_card_says_where_problems_of_the_hub_are(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    shutil.copytree(run, folder)
    recipe = yaml.safe_load((run / "recipe.yaml").read_text())
    recipe["tasks"]["gsm"] = recipe["tasks"]["bits"] | {
        "source": {"type": "hub", "id": "openai/gsm8k", "config": "main"}
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    state = json.loads((run / "state.json").read_text())
    state["versions"]["torch"] = "1.2.3"
    (folder / "state.json").write_text(json.dumps(state))
    exported(folder, "lee", tmp_path / "lee")
    head, text = card_of(tmp_path / "lee")
    assert "torch 1.2.3" in text, "that of the run, not of the export"
    assert head["datasets"] == ["openai/gsm8k"]
    assert "bits: jsonl problems.jsonl; gsm: hub openai/gsm8k (main, train) |" in text
    table = text.split("## Recipe")[0]
    assert str(tmp_path.parent) not in table, "a folder of this machine means nothing elsewhere"


def test_checkpoints_can_be_exported(run: Path, tmp_path: Path) -> None:
    (note,) = exported(run, "lee", tmp_path / "last", checkpoint="last")
    assert "lee after step 3" in note
    assert not (tmp_path / "last" / "optimizer.safetensors").exists()
    assert torch.equal(
        *(
            logits(AutoModelForCausalLM.from_pretrained(folder))
            for folder in (tmp_path / "last", run / "agents" / "lee")
        )
    )
    exported(run, "lee", tmp_path / "best", checkpoint="best")
    exported(run, "lee", tmp_path / "third", checkpoint="3")


def test_refusals_name_what_is_wrong(run: Path, tmp_path: Path) -> None:
    def refused(*args: Any, **options: Any) -> str:
        with pytest.raises(UserError) as caught:
            exported(*args, **options)
        assert len(str(caught.value).splitlines()) <= 2
        return str(caught.value)

    assert "has the agents kim, lee" in refused(run, "eve", tmp_path / "x")
    assert "exists already" in refused(run, "kim", tmp_path)
    assert "not a run folder" in refused(tmp_path, "kim", tmp_path / "x")
    assert "--checkpoint 9: not found" in refused(run, "kim", tmp_path / "x", checkpoint="9")
    assert list(tmp_path.iterdir()) == []


def test_an_adapter_is_evaluated_on_its_base(run: Path, tmp_path: Path) -> None:
    kim, lee = find_targets([str(run)])
    assert (kim.label, lee.label) == ("pair/kim", "pair/lee")
    assert kim.spec.lora is not None
    assert kim.spec.lora.adapter == str(run / "agents" / "kim")
    exported(run, "kim", tmp_path / "kim")
    (alone,) = find_targets([str(tmp_path / "kim")])
    assert alone.spec.model == kim.spec.model
    assert [t.agent for t in find_targets([str(run / "checkpoints" / "step-000003")])] == [
        "kim",
        "lee",
    ]
    before = target_fingerprint(alone)
    weights = tmp_path / "kim" / "adapter_model.safetensors"
    save_file({k: v + 1 for k, v in load_file(weights).items()}, weights)
    assert target_fingerprint(alone) != before


def test_pushing_asks_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(
        HfApi, "create_repo", lambda self, repo, **k: asked.append((repo, k)), raising=False
    )
    monkeypatch.setattr(
        HfApi, "upload_folder", lambda self, **k: f"hub/{k['repo_id']}", raising=False
    )
    assert push(tmp_path, "me/kim") == "hub/me/kim"
    assert asked == [("me/kim", {"private": True, "exist_ok": True})]

    def refuse(self: HfApi, repo: str, **options: Any) -> None:
        raise HFValidationError("Repo id must be in the form 'repo_name'")

    monkeypatch.setattr(HfApi, "create_repo", refuse, raising=False)
    with pytest.raises(UserError, match=r"--push a/b/c: Repo id must .* is complete"):
        push(tmp_path, "a/b/c")
