"""Templates that begin the response with an opening of reasoning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from hacrl.agents.learning.lessons import make_lessons
from hacrl.agents.policy.openings import find_opening
from hacrl.agents.policy.policy import Policy
from hacrl.agents.respondent import Respondent
from hacrl.agents.sampling.base import Sample
from hacrl.cli.app import app
from hacrl.config import recipe_from_dict
from hacrl.records import Decoding, Outcome, Pool, Prompt, Rollout, Verdict, Verified
from hacrl.training.train import train
from hacrl.verify import Exact, VerifierPool
from hacrl.verify.rollouts import verify_rollouts
from tests.agents.conftest import byte_tokenizer, make_policy
from tests.evaluation.conftest import save_model

PROMPT = Prompt("t/0", "t", "1+1?", "2")
TURNS = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant] "
OPENINGS = ["<think>", "<think>\n", "<thinking>", "<|begin_of_thought|>", "[THINK]", "<reasoning>"]


def opened(text: str) -> str:
    """A template that ends in a text. Outside of an expression its line end would be lost."""
    return TURNS + "{{ " + json.dumps(text) + " }}"


def policy_with(template: str | None, name: str = "ann") -> Policy:
    tokenizer = byte_tokenizer(begin=False, merges=True)
    tokenizer.chat_template = template
    return make_policy(name, "llama", tokenizer)


def lessons_of(policy: Policy, text: str, prompt: Prompt = PROMPT) -> Any:
    """What the policy makes of a peer's response."""
    rows = tuple(
        Verified(Rollout(0, agent, 0, 0, text, -3.0, 2, True), Verdict(1.0, "right"))  # type: ignore[arg-type]
        for agent in (policy.name, "peer")
    )
    pool = Pool(0, (policy.name, "peer"), (prompt,), 1, rows)
    respondent = Respondent(policy, Decoding(4, 1), seed=0)
    values = {policy.name: [[1.0]], "peer": [[1.0]]}
    ids, opening = respondent.encode(prompt), respondent.opening(prompt)
    drawn = {(0, 0): Sample([1, 2], [-1.0, -2.0], True)}
    return make_lessons(policy, pool, values, [ids], drawn, [opening])


@pytest.mark.parametrize("opening", OPENINGS)
def test_a_response_begins_with_what_the_template_opened(opening: str) -> None:
    respondent = Respondent(policy_with(opened(opening)), Decoding(6, 4), seed=0)
    assert respondent.opening(PROMPT) == opening
    rollouts = respondent.sample([PROMPT], 4, occasion="test")
    for rollout in rollouts:
        sample = respondent._drawn[rollout.prompt, rollout.sample]
        body = sample.token_ids[:-1] if rollout.finished else sample.token_ids
        drawn = byte_tokenizer(begin=False, merges=True).decode(body)
        assert rollout.text == opening + drawn
        assert rollout.length == len(sample.token_ids) == len(sample.logprobs), "none is its own"


@pytest.mark.parametrize("ending", ["", "<think>\n\n</think>\n\n", "So <b>"])
def test_other_templates_open_nothing(ending: str) -> None:
    policy = policy_with(opened(ending))
    assert Respondent(policy, Decoding(6, 4), seed=0).opening(PROMPT) == ""


def test_a_plain_prompt_may_end_in_an_opening() -> None:
    policy = policy_with(None)
    prompt = Prompt("t/0", "t", "1+1? Think first.\n<think>", "2")
    ids = policy.tokenizer.encode(prompt.text)
    assert find_opening(policy, prompt, ids) == "<think>"
    spoken = Prompt("t/0", "t", "Put your thoughts after <think>. 1+1?", "2")
    assert find_opening(policy, spoken, policy.tokenizer.encode(spoken.text)) == ""


def test_a_question_that_speaks_of_an_opening_opens_nothing() -> None:
    asked = Prompt("t/0", "t", "What does <think> mean?", "2", system="Use <think>.")
    policy = policy_with(TURNS)
    assert Respondent(policy, Decoding(6, 4), seed=0).opening(asked) == ""


def test_a_peer_learns_to_open_what_it_closes() -> None:
    text = "<think>\nhm</think>2"
    (_, foreign) = lessons_of(policy_with(TURNS), text)
    assert foreign.left_out is None
    assert policy_with(None).tokenizer.decode(foreign.response_ids[:-1]) == text


def test_a_peer_whose_template_opens_it_learns_what_comes_after() -> None:
    (own, foreign) = lessons_of(policy_with(opened("<think>\n")), "<think>\nhm</think>2")
    assert own.response_ids == [1, 2], "what was drawn is never encoded again"
    assert foreign.left_out is None
    assert policy_with(None).tokenizer.decode(foreign.response_ids[:-1]) == "hm</think>2"
    assert foreign.old_logprob == -3.0, "the author wrote the opening for certain"


@pytest.mark.parametrize("text", ["2", "[THINK]hm[/THINK]2", "hm</think>2"])
def test_what_cannot_follow_the_own_prompt_is_left_out(text: str) -> None:
    (own, foreign) = lessons_of(policy_with(opened("<think>\n")), text)
    assert (own.left_out, foreign.left_out) == (None, "no_opening")


def test_cut_reasoning_is_no_answer() -> None:
    respondent = Respondent(policy_with(opened("<think>\n")), Decoding(6, 8), seed=0)
    rollouts = respondent.sample([PROMPT], 8, occasion="test")
    with VerifierPool({"t": Exact(marker=None)}) as verifiers:
        pool = verify_rollouts(0, [PROMPT], 8, {"ann": rollouts}, verifiers)
    assert {row.verdict.outcome for row in pool.rows} == {Outcome.NO_ANSWER}


def test_training_and_evaluation_read_it_the_same_way(tmp_path: Path) -> None:
    template = tmp_path / "template.jinja"
    template.write_text(opened("<think>\n"))
    problems = tmp_path / "problems.jsonl"
    problems.write_text(json.dumps({"question": "1+1?", "answer": "2"}) + "\n")
    thinks, plain = (save_model(tmp_path / name, seed) for seed, name in enumerate("ab"))
    task = {
        "source": {"type": "jsonl", "path": str(problems)},
        "verifier": {"type": "exact", "marker": None},
    }
    recipe = recipe_from_dict(
        {
            "name": "r",
            "steps": 1,
            "prompts_per_step": 1,
            "threads": 1,
            "agents": {
                "thinks": {"model": str(thinks), "chat_template": str(template)},
                "plain": {"model": str(plain)},
            },
            "tasks": {"t": task},
            "sampling": {"group_size": 4, "max_new_tokens": 6},
            "evaluation": {"tasks": {"t": task}, "every": 1},
        }
    )
    run = train(recipe, tmp_path)
    rows = parquet.read_table(run.path / "rollouts" / "step-000000.parquet").to_pylist()
    thinking = [row for row in rows if row["agent"] == "thinks"]
    assert all(row["text"].startswith("<think>\n") for row in thinking)
    assert {row["outcome"] for row in thinking} == {"no_answer"}
    assert all(row["length"] <= 6 for row in thinking)
    assert {row["outcome"] for row in rows if row["agent"] == "plain"} == {"wrong"}
    (held,) = (
        json.loads(line)
        for line in (run.path / "evaluations.jsonl").read_text().splitlines()
        if json.loads(line)["agent"] == "thinks" and json.loads(line)["step"] == 1
    )
    assert held["no_answer"] == 1.0
    result = CliRunner().invoke(
        app,
        [
            *("eval", str(run.path), "--task", f"{run.path / 'recipe.yaml'}:t"),
            *("--max-new-tokens", "6", "--samples", "2", "--out", str(tmp_path / "eval")),
        ],
    )
    assert result.exit_code == 0, result.output
    answers = [
        row
        for path in (tmp_path / "eval").rglob("answers-*.parquet")
        for row in parquet.read_table(path).to_pylist()
    ]
    found = {row["outcome"] for row in answers if row["response"].startswith("<think>\n")}
    assert len(answers) == 4
    assert found == {"no_answer"}
