"""`hacrl check`: what a recipe would run, and what is refused before it does."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hacrl.cli.check import print_preparation
from hacrl.cli.plan import print_plan
from hacrl.config import recipe_from_dict
from hacrl.config.rollouts import Prompts
from hacrl.errors import UserError
from hacrl.planning.devices import Devices, parse_devices
from hacrl.records import Prompt
from hacrl.tasks.fitting import fitting
from hacrl.training.preparing import prepare

Make = Callable[..., dict[str, Any]]


def checked(raw: dict[str, Any], *overrides: str) -> str:
    console = Console(file=io.StringIO(), width=300)
    recipe = recipe_from_dict(raw, overrides)
    print_preparation(recipe, prepare(recipe), console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def refused(raw: dict[str, Any], *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        checked(raw, *overrides)
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


def line(text: str, start: str) -> str:
    return next(row for row in text.splitlines() if row.startswith(start))


def test_it_says_what_would_run(tiny_recipe: Make) -> None:
    text = checked(tiny_recipe(), "update.mini_batches=2", "sharing={lee: [kim]}")
    assert "recipe tiny: 3 steps of 8 prompts, method hacpo, seed 0" in text
    assert line(text, "kim").split()[-2:] == ["itself", "2"]
    assert line(text, "lee").split()[-3:] == ["itself,", "kim", "4"]
    assert "28, of which 28 are used: 0.86 epochs" in line(text, "prompts")
    assert "kim 8, lee 5 tokens" in line(text, "longest")
    assert "64 per step and agent, 128 per step in total" in line(text, "rollouts")
    tokens = line(text, "new tokens")
    assert "256 per step and agent, 512 per step in total, 1,536 in the run" in tokens
    assert text.splitlines()[-1] == "ok"


def test_a_reference_copy_is_counted(tiny_recipe: Make) -> None:
    memory_of = [checked(tiny_recipe(), f"update.kl={kl}").split("memory")[1] for kl in (0, 0.1)]
    assert line(memory_of[0], "kim").split()[-3] == "-"
    assert line(memory_of[1], "kim").split()[-3:-1] != ["-", "-"]


def test_memory_is_that_of_all_ranks_together(tiny_recipe: Make) -> None:
    one, two = (
        checked(tiny_recipe(), "fleet=ray", f"agents.kim.ranks={ranks}").split("memory")[1]
        for ranks in (1, 2)
    )
    sizes = line(two, "kim, 2 ranks in total").removeprefix("kim, 2 ranks in total").split()
    assert sizes == line(one, "kim").split()[1:]


def test_prompts_that_are_too_long_are_counted_by_agent(tiny_recipe: Make) -> None:
    text = checked(tiny_recipe(), "prompts.max_tokens=5")
    assert "28, of which 4 are used" in line(text, "prompts")
    assert "kim 24 (limit 5), lee 0 (limit 5)" in line(text, "warning:")
    message = refused(tiny_recipe(), "prompts.max_tokens=5", "prompts.too_long=refuse")
    assert "by agent: kim 24 (limit 5), lee 0 (limit 5)" in message
    assert "none remain" in refused(tiny_recipe(), "prompts.max_tokens=2")


def test_a_hub_model_that_is_not_here_is_a_warning(tiny_recipe: Make) -> None:
    text = checked(tiny_recipe(), "agents.lee.model=somebody/some-model")
    assert line(text, "lee").split()[1:3] == ["somebody/some-model", "?"]
    assert "warning: model not available here: agent lee: model somebody/some-model" in text
    assert " > " in line(text, "together")
    assert text.splitlines()[-1] == "ok, with 1 warning"


def test_the_response_must_find_room_in_the_positions_of_the_model(tiny_recipe: Make) -> None:
    text = checked(tiny_recipe(), "sampling.max_new_tokens=123")
    assert "kim 24 (limit 5), lee 0 (limit 5); 4 of 28 prompts remain" in line(text, "warning:")
    message = refused(tiny_recipe(), "sampling.max_new_tokens=130")
    assert "sampling.max_new_tokens: leaves no room for a prompt in the positions of" in message
    assert "none remain; lower it by 3 or more" in message
    message = refused(tiny_recipe(), "sampling.max_new_tokens=127")
    assert "none remain: lower sampling.max_new_tokens, or shorten the prompts" in message
    assert "max_tokens," not in message, "raising it would not help"


def test_a_model_that_is_no_causal_language_model_is_refused(
    tiny_recipe: Make, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit"}))
    message = refused(tiny_recipe(), f"agents.lee.model={tmp_path}")
    assert message.startswith(f"agent lee: model {tmp_path} is a vit, not a causal language model")


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("agents.lee.model=./none", "agent lee: model folder ./none does not exist"),
        ("agents.lee.device=gpu", "agent lee: torch knows no device 'gpu'"),
        ("agents.lee.stop=[<|im_end|>]", "agent lee: stop token '<|im_end|>' is not in its"),
        ("agents.lee.chat_template=none.jinja", "agent lee: chat_template none.jinja"),
        ("agents.lee.template_args={a: 1}", "agent lee: template_args given, but it has no chat"),
        ("tasks.bits.source.path=none.jsonl", "none.jsonl: there is no such file"),
        (
            "tasks.bits.source.answer=gold",
            "no field 'gold'; the fields are: question, answer",
        ),
    ],
)
def test_bad_input_is_named(tiny_recipe: Make, override: str, part: str) -> None:
    assert part in refused(tiny_recipe(), override)


def test_an_empty_folder_is_no_model(tiny_recipe: Make, tmp_path: Path) -> None:
    assert f"agent kim: model {tmp_path}" in refused(tiny_recipe(), f"agents.kim.model={tmp_path}")


def test_a_broken_template_is_named(tiny_recipe: Make, tmp_path: Path) -> None:
    template = tmp_path / "broken.jinja"
    template.write_text("{% for %}")
    override = f"agents.kim.chat_template={template}"
    message = refused(tiny_recipe(), override)
    assert "agent kim: its chat template is broken (line 1: " in message
    assert "system" not in message
    assert "agent kim: its chat template is broken" in refused(
        tiny_recipe(), override, "agents.kim.template_args={a: 1}"
    )


LIMITS = {"kim": 3, "lee": 3}
PROMPTS = [Prompt(id=str(i), task="t", text="", gold="") for i in range(3)]


def test_a_prompt_must_fit_every_agent() -> None:
    kept, note = fitting(Prompts(), PROMPTS, {"kim": [3, 4, 1], "lee": [1, 9, 9]}, LIMITS)
    assert kept == PROMPTS[:1]
    assert note is not None
    assert "by agent: kim 1 (limit 3), lee 2 (limit 3); 1 of 3 prompts remain" in note


def test_nothing_is_said_where_all_fit() -> None:
    assert fitting(Prompts(), PROMPTS, {"kim": [1, 2, 3]}, LIMITS) == (PROMPTS, None)


def test_too_long_prompts_can_be_refused() -> None:
    with pytest.raises(UserError, match=r"by agent: kim 1 \(limit 3\);"):
        fitting(Prompts(too_long="refuse"), PROMPTS, {"kim": [1, 2, 4]}, LIMITS)


def test_agents_with_adapters_share_what_they_can(tiny_recipe: Make, qwen_folder: Path) -> None:
    lora = {"model": str(qwen_folder), "lora": {"rank": 2}}
    text = checked(tiny_recipe(agents={"kim": lora, "may": lora}), "update.kl=0.1")
    memory = text.split("memory")[1]
    assert " + " in line(text, "kim")
    assert "shared + " in line(memory, "may")
    assert line(memory, "kim").split()[-3] == "-", "the reference is the model without adapter"
    refusal = refused(tiny_recipe(agents={"kim": lora}), "agents.kim.lora.target_modules=[q_prj]")
    assert "agent kim: lora.target_modules names q_prj" in refusal


def test_a_checkpoint_has_a_size(tiny_recipe: Make) -> None:
    table = checked(tiny_recipe()).split("memory")[1]
    kilobytes = [float(line(table, name).split()[-2]) for name in ("together", "a checkpoint")]
    assert kilobytes[1] == pytest.approx(kilobytes[0] * 3 / 4, abs=0.2), "all but gradients"


def test_it_says_how_agents_read_their_prompts(tiny_recipe: Make, tmp_path: Path) -> None:
    template = tmp_path / "dated.jinja"
    template.write_text("{{ '+' if strftime_now('%Y') == '2001' }}{{ messages[0].content }}")
    data = tmp_path / "problems.jsonl"
    rows = [{"question": q, "answer": "1"} for q in ("0+1=", "1</q>=", "</q>1=")]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    raw = tiny_recipe(prompts_per_step=1, clock="2001-02-03T04:05:06")
    raw["tasks"]["bits"]["source"]["path"] = str(data)
    text = checked(raw, f"agents.kim.chat_template={template}")
    assert "note: agent kim: its chat template prints the time; it sees 2001-02-03 04:05:06" in text
    assert "note: agent lee has no chat template; prompts are plain text, and begin with" in text
    warning = line(text, "warning:")
    assert "agent kim: 2 of 3 prompts spell control tokens" in warning
    assert "first </q> in bits/1; they act as such" in warning
    template.write_text("{{ messages[0].role }}")
    assert "agent kim: its chat template leaves out the problem" in refused(
        raw, f"agents.kim.chat_template={template}"
    )


def planned(raw: dict[str, Any], devices: Devices, *overrides: str) -> str:
    console = Console(file=io.StringIO(), width=300)
    print_plan(recipe_from_dict(raw, overrides), devices, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_it_says_what_a_step_needs_of_given_devices(tiny_recipe: Make) -> None:
    text = planned(tiny_recipe(), parse_devices("1x24GB"))
    assert "On 1x24GB, with prompts of 1,024 tokens:" in text
    assert line(text, "memory of a rank").split()[4:] == [
        *("load", "sample", "sync", "recompute", "learn", "checkpoint")
    ]
    load, _, sync, recompute, learn, checkpoint = _cells(line(text, "kim"))
    assert (sync, recompute) == ("-", "-")
    assert load.endswith("kB")
    assert learn != checkpoint
    assert line(text, "device 0").startswith("device 0 (kim, lee): at most ")
    assert text.splitlines()[-1] == "it fits"


def _cells(row: str) -> list[str]:
    return re.split(r"\s{2,}", row.strip())[1:]


def test_what_does_not_fit_is_named_with_a_remedy(tiny_recipe: Make) -> None:
    small = Devices(1, 20_000_000, "cuda")
    text = planned(tiny_recipe(), small, "prompts.max_tokens=64", "sampling.max_new_tokens=64")
    assert " too much" in line(text, "device 0")
    assert text.splitlines()[-1].startswith("it fits with ")
    changes = text.splitlines()[-1].removeprefix("it fits with ").split()
    again = planned(
        tiny_recipe(), small, "prompts.max_tokens=64", "sampling.max_new_tokens=64", *changes
    )
    assert again.splitlines()[-1] == "it fits"
    none = planned(tiny_recipe(), Devices(1, 1000, "cuda"), "sampling.max_new_tokens=64")
    assert none.splitlines()[-1] == "it does not fit, and no change that was tried makes it fit"


def test_devices_must_be_enough_for_all_ranks(tiny_recipe: Make) -> None:
    text = planned(tiny_recipe(), parse_devices("1x24GB"), "fleet=ray")
    assert text.splitlines()[-1] == "it does not fit: 2 ranks want more than 1 devices"
