"""Whole runs with tiny models of two families: identities, repeatability, what is left on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from hacrl.agents.learning.learner import Learner
from hacrl.agents.learning.lessons import Lesson
from hacrl.agents.sampling.hugging_face import HuggingFaceSampler
from hacrl.config import Recipe, load_recipe, recipe_from_dict
from hacrl.console.observer import Silent
from hacrl.errors import UserError
from hacrl.records import Outcome, Prompt, Verdict
from hacrl.runs.run import Run
from hacrl.training.train import train
from hacrl.verify import Exact, VerifierPool
from tests.tolerances import assert_close_gradients, rounding, terms

MakeRecipe = Callable[..., dict[str, Any]]
WIDE = {"clip": {"delta": 1.0, "delta_step": 0.0, "own_low": 0.3, "own_high": 0.3}}


LINEAR = {"optimizer": {"learning_rate": 1e-2, "epsilon": 1.0}}
"""With an ε above all gradients AdamW moves weights in proportion to them. With a small one it
divides a gradient that is nothing but rounding by its own size, and no tolerance would hold."""


def terms_of(folder: Path) -> int:
    """Of a pass through the model in a folder: questions of 8 tokens at most, answers of 4."""
    return terms(AutoModelForCausalLM.from_pretrained(folder), 12)


class Notes(Silent):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def run(root: Path, raw: dict[str, Any], *overrides: str) -> Run:
    return train(recipe_from_dict(raw, overrides), root)


def weights(folder: Run, agent: str) -> Mapping[str, torch.Tensor]:
    return load_file(folder.agents[agent] / "model.safetensors")


def rows(folder: Run, agent: str | None = None) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
    return [row for row in found if agent in (None, row["agent"])]


def timeless(folder: Run) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows(folder)]


def same_weights(a: Run, b: Run, agent: str, other: str | None = None) -> bool:
    left, right = weights(a, agent), weights(b, other or agent)
    return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)


def test_a_run_repeats_bit_for_bit_and_another_seed_does_not(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    first = run(tmp_path / "1", tiny_recipe(**WIDE))
    again = run(tmp_path / "2", tiny_recipe(**WIDE))
    assert timeless(first) == timeless(again)
    for name in ("rollouts", "lessons"):
        for file in sorted((first.path / name).iterdir()):
            assert pq.read_table(file).equals(pq.read_table(again.path / name / file.name))
    other = run(tmp_path / "3", tiny_recipe(**WIDE), "seed=1")
    for agent in ("kim", "lee"):
        assert same_weights(first, again, agent)
        assert not same_weights(first, other, agent)


def test_the_resolved_recipe_repeats_the_run(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    first = run(tmp_path / "1", tiny_recipe(**WIDE))
    again = train(load_recipe(first.path / "recipe.yaml"), tmp_path / "2")
    assert timeless(first) == timeless(again)


def test_agents_learn_from_each_other(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    folder = run(tmp_path, tiny_recipe(**WIDE))
    for row in rows(folder):
        (peer,) = row["sources"]
        assert row["sources"][peer]["rows"] == 64
        assert row["omega"][peer] > 0
        assert row["updates"] == 2
    assert any(s["teaching"] > 0 for row in rows(folder) for s in row["sources"].values())


def test_hacpo_of_one_agent_is_gspo(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    agents = {"kim": tiny_recipe()["agents"]["kim"]}
    hacpo = run(tmp_path / "1", tiny_recipe(agents=agents))
    gspo = run(tmp_path / "2", tiny_recipe(agents=agents), "method=gspo")
    assert same_weights(hacpo, gspo, "kim")
    assert timeless(hacpo) == timeless(gspo)


def test_without_sharing_an_agent_does_not_notice_the_others(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    together = run(tmp_path / "1", tiny_recipe(), "method=gspo")
    agents = {"lee": tiny_recipe()["agents"]["lee"]}
    alone = run(tmp_path / "2", tiny_recipe(agents=agents), "method=gspo")
    assert same_weights(together, alone, "lee")


def test_one_directional_sharing_teaches_the_learner_alone(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    one_way = run(tmp_path / "1", tiny_recipe(sharing={"kim": ["lee"]}, **WIDE))
    nobody = run(
        tmp_path / "2", tiny_recipe(), "sharing=nobody", "clip.own_low=0.3", "clip.own_high=0.3"
    )
    assert same_weights(one_way, nobody, "lee")
    assert not same_weights(one_way, nobody, "kim")
    assert [list(row["sources"]) for row in rows(one_way)[:2]] == [["lee"], []]
    assert [row["updates"] for row in rows(one_way)[:2]] == [2, 1]


@pytest.mark.numerics
def test_permuting_agents_permutes_the_results(
    tiny_recipe: MakeRecipe, qwen_folder: Path, llama_folder: Path, tmp_path: Path
) -> None:
    models = {"kim": qwen_folder, "lee": llama_folder, "may": qwen_folder}
    agents = {name: {"model": str(model)} for name, model in models.items()}
    forward = run(tmp_path / "1", tiny_recipe(agents=agents, **WIDE, **LINEAR))
    reversed_agents = dict(reversed(agents.items()))
    backward = run(tmp_path / "2", tiny_recipe(agents=reversed_agents, **WIDE, **LINEAR))
    for agent, model in models.items():
        assert len(rows(forward, agent)[0]["sources"]) == 2
        start = load_file(model / "model.safetensors")
        moved, moved_too = (
            [value - start[name] for name, value in weights(folder, agent).items()]
            for folder in (forward, backward)
        )
        updates = sum(row["updates"] for row in rows(forward, agent))
        assert_close_gradients(moved_too, moved, updates * terms_of(model))


@pytest.mark.numerics
@pytest.mark.parametrize("method", ["grpo", "gspo", "gspo_x2", "naive", "hacpo"])
def test_every_method_runs_and_changes_the_weights(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path, method: str
) -> None:
    folder = run(tmp_path, tiny_recipe(), f"method={method}", "steps=2")
    first = rows(folder, "kim")[0]
    rollouts = pq.read_table(folder.path / "rollouts" / "step-000000.parquet")
    factor = 2 if method == "gspo_x2" else 1
    assert rollouts.num_rows == 2 * 8 * 8 * factor
    assert first["updates"] == {"gspo_x2": 2, "naive": 2, "hacpo": 2}.get(method, 1)
    assert first["on_policy"] == (method in ("grpo", "gspo"))
    before = load_file(qwen_folder / "model.safetensors")
    assert any(not torch.equal(v, before[k]) for k, v in weights(folder, "kim").items())
    assert first["logprob_gap"] < rounding(terms_of(qwen_folder))


ABLATED: dict[str, Any] = {
    "clip": {"delta": 1.0, "delta_step": 0.3, "own_low": 0.3, "own_high": 0.3},
    "update": {"mini_batches": 2},
}


@pytest.fixture(scope="module")
def full(tiny_recipe: MakeRecipe, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that ablations are compared with."""
    return run(tmp_path_factory.mktemp("full"), tiny_recipe(**ABLATED))


@pytest.mark.parametrize(
    "ablation",
    [
        "advantage.capability_aware=false",
        "advantage.discrepancy=false",
        "advantage.cross_baseline=learner",
        "ratio.alpha=0",
        "ratio.length=own",
        "clip.delta_step=0",
        "clip.cross=none",
        "update.order=mixed",
    ],
)
def test_every_ablation_changes_the_result(
    tiny_recipe: MakeRecipe, tmp_path: Path, full: Run, ablation: str
) -> None:
    less = run(tmp_path, tiny_recipe(**ABLATED), ablation)
    assert not (same_weights(full, less, "kim") and same_weights(full, less, "lee"))


def test_the_run_folder_holds_everything(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    folder = run(tmp_path, tiny_recipe(**WIDE))
    assert folder.path == tmp_path / "tiny"
    assert json.loads((folder.path / "state.json").read_text())["state"] == "finished"
    assert isinstance(load_recipe(folder.path / "recipe.yaml"), Recipe)
    table = pq.read_table(folder.path / "rollouts" / "step-000002.parquet").to_pylist()
    assert len(table) == 2 * 8 * 8
    for row in table:
        assert row["length"] > 0 > row["logprob"]
        assert row["policy_version"] == 4
        assert row["reward"] == float(row["outcome"] == "right")
    lessons = pq.read_table(folder.path / "lessons" / "step-000002.parquet").to_pylist()
    assert len(lessons) == 2 * 2 * 64
    for lesson in lessons:
        if lesson["left_out"] is None and lesson["advantage"] != 0:
            assert lesson["log_ratio"] is not None
            assert lesson["update"] == int(lesson["learner"] != lesson["agent"])
        if lesson["teaches"] and lesson["learner"] != lesson["agent"]:
            assert lesson["log_ratio"] <= 0
    assert not [p for p in folder.path.rglob("*") if p.name.endswith(".part")]


def test_final_agents_are_ordinary_models(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    folder = run(tmp_path, tiny_recipe(**WIDE))
    for agent in ("kim", "lee"):
        tokenizer = AutoTokenizer.from_pretrained(folder.agents[agent])
        model = AutoModelForCausalLM.from_pretrained(folder.agents[agent])
        inputs = tokenizer("0+1=", return_tensors="pt")
        assert model.generate(**inputs, max_new_tokens=2).shape[1] > inputs["input_ids"].shape[1]


def test_metrics_agree_with_the_stored_rollouts(tiny_recipe: MakeRecipe, tmp_path: Path) -> None:
    folder = run(tmp_path, tiny_recipe(**WIDE))
    window: dict[str, list[float]] = {"kim": [], "lee": []}
    for row in rows(folder):
        file = folder.path / "rollouts" / f"step-{row['step']:06d}.parquet"
        own = [r for r in pq.read_table(file).to_pylist() if r["agent"] == row["agent"]]
        reward = sum(r["reward"] for r in own) / len(own)
        window[row["agent"]].append(reward)
        assert row["reward"] == pytest.approx(reward)
        assert row["capability"] == pytest.approx(
            sum(window[row["agent"]]) / len(window[row["agent"]])
        )
        assert row["generated_tokens"] == sum(r["length"] for r in own)
        assert row["truncated"] == sum(not r["finished"] for r in own) / len(own)
        for source in (row["own"], *row["sources"].values()):
            if source["computed"]:
                assert source["inside"] + source["below"] + source["above"] == pytest.approx(1)


class _Unreliable(Exact):
    """Leaves every fourth response unscored, and with them all of one prompt."""

    def screen(self, prompt: Prompt, response: str) -> Verdict:
        if prompt.id.endswith("/0") or len(response) == 1:
            return Verdict(None, Outcome.SCORER_ERROR)
        return super().screen(prompt, response)


def test_unscored_responses_are_left_out_and_counted(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hacrl.training.train.make_pool",
        lambda tasks, rule: VerifierPool({"bits": _Unreliable(None, 1.0, 0.0)}),
    )
    notes = Notes()
    folder = train(recipe_from_dict(tiny_recipe(**WIDE)), tmp_path, notes)
    for row in rows(folder):
        assert row["unscored"] == row["outcomes"]["scorer_error"] > 0
        assert row["own"]["left_out"] == {"unscored": row["unscored"]}
        assert row["scored"] + row["unscored"] == 64
    for agent in ("kim", "lee"):
        assert all(bool(v.isfinite().all()) for v in weights(folder, agent).values())
    assert any("could not be scored" in text for text in notes.texts)


def test_prompts_too_long_for_one_agent_are_dropped_for_all_with_counts(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(steps=1)
    raw["prompts"] = {"max_tokens": 6}  # lee merges "0+", so it needs fewer tokens than kim
    notes = Notes()
    folder = train(recipe_from_dict(raw), tmp_path / "1", notes)
    (note,) = [text for text in notes.texts if "too long" in text]
    assert "kim 16" in note
    assert "lee 0" in note
    assert "12 of 28 prompts remain" in note
    assert rows(folder)
    with pytest.raises(UserError, match=r"kim 16 \(limit 6\), lee 0"):
        run(tmp_path / "2", raw, "prompts.too_long=refuse")
    with pytest.raises(UserError, match=r"kim 28 \(limit 2\), lee 28"):
        run(tmp_path / "3", raw, "prompts.max_tokens=2")
    assert not (tmp_path / "2").exists()


def test_an_existing_run_is_not_overwritten_unless_asked(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(steps=1)
    run(tmp_path, raw)
    with pytest.raises(UserError, match=r"tiny exists.*--overwrite"):
        run(tmp_path, raw)
    train(recipe_from_dict(raw), tmp_path, overwrite=True)
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("precious")
    with pytest.raises(UserError, match="left as it is"):
        train(recipe_from_dict(tiny_recipe(name="thesis")), tmp_path, overwrite=True)
    assert (foreign / "chapter.txt").exists()


def test_bad_data_is_found_before_a_model_is_loaded_or_a_folder_made(
    tiny_recipe: MakeRecipe, tmp_path: Path
) -> None:
    raw = tiny_recipe(agents={"kim": {"model": "./nowhere"}})
    raw["tasks"]["bits"]["source"]["path"] = str(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match=r"none\.jsonl"):
        run(tmp_path / "runs", raw)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_fails_says_so_on_disk_and_keeps_what_it_has(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = VerifierPool.verify

    def break_at_second_call(self: VerifierPool, pairs: Any) -> list[Verdict]:
        if (tmp_path / "tiny" / "metrics.jsonl").exists():
            raise UserError("the reward is broken")
        return whole(self, pairs)

    monkeypatch.setattr(VerifierPool, "verify", break_at_second_call)
    with pytest.raises(UserError, match="reward is broken"):
        run(tmp_path, tiny_recipe())
    folder = Run(tmp_path / "tiny")
    assert json.loads((folder.path / "state.json").read_text())["state"] == "failed"
    assert len(rows(folder)) == 2
    assert (folder.agents["lee"] / "model.safetensors").is_file()


@pytest.mark.numerics
def test_half_precision_learning_recomputes_what_was_sampled(
    tiny_recipe: MakeRecipe, qwen_folder: Path, tmp_path: Path
) -> None:
    allowed = rounding(terms_of(qwen_folder))
    auto = run(tmp_path / "1", tiny_recipe(update={"autocast": "bfloat16"}), "method=gspo")
    for row in rows(auto):
        if row["own"]["computed"]:
            assert row["own"]["ratio_mean"] == pytest.approx(1, abs=allowed)
            assert row["own"]["inside"] == 1
            assert allowed < row["logprob_gap"] < 0.1
    recipe = recipe_from_dict(tiny_recipe())
    assert not recipe.recomputes("kim")
    forced = run(tmp_path / "2", tiny_recipe(), "update.old_logprobs=recompute")
    assert all(row["logprob_gap"] < allowed for row in rows(forced) if row["own"]["computed"])


@pytest.mark.parametrize("exact", [True, False])
def test_whether_to_recompute_is_the_samplers_to_say_where_the_recipe_leaves_it_open(
    tiny_recipe: MakeRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    asked: list[int] = []
    recompute = Learner.recompute

    def note(learner: Learner, lessons: Sequence[Lesson]) -> list[Lesson]:
        asked.append(len(lessons))
        return recompute(learner, lessons)

    monkeypatch.setattr(Learner, "recompute", note)
    monkeypatch.setattr(HuggingFaceSampler, "exact", exact)
    monkeypatch.setattr(Recipe, "recomputes", lambda *_: None)  # as with `sampler: vllm`
    folder = run(tmp_path, tiny_recipe())
    assert len(asked) == (0 if exact else len(rows(folder)))
