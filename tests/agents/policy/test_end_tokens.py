"""What ends a response, and what a chat template closes a turn with."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from transformers import AutoConfig, GenerationConfig

from hacrl.agents.policy.end_tokens import closing_token, load_generation_config
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy, save_policy
from hacrl.agents.policy.reading import read
from hacrl.config import AgentSpec
from hacrl.records import Prompt
from tests.agents.conftest import byte_tokenizer, make_policy

TURN = "{% for m in messages %}<begin>{{ m.role }}\n{{ m.content }}CLOSE\n{% endfor %}<begin>"
PROMPTS = [Prompt("sums/0", "sums", "What is 1 + 1?", "2")]


def policy_with(template: str | None) -> Policy:
    policy = make_policy("kim", "qwen", byte_tokenizer(begin=False, merges=False))
    policy.tokenizer.chat_template = template
    return policy


def warned(policy: Policy) -> list[str]:
    return [text for text in read(policy, PROMPTS).warnings if "closes turns" in text]


@pytest.mark.parametrize(
    ("template", "token"),
    [
        (TURN.replace("CLOSE", "<fill>"), "<fill>"),
        (TURN.replace("CLOSE", " <end>"), "<end>"),
        # The next turn's first token is all that says that the one before is over.
        (TURN.replace("CLOSE", ""), "<begin>"),
        # A template may put an end token behind responses alone.
        (TURN.replace("CLOSE", "{{ '<end>' if m.role == 'assistant' else '<fill>' }}"), "<end>"),
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:", None),
        ("{{ messages[0].content }}", None),  # of one turn alone
        ("{% if messages[1:] %}{{ raise_exception('one!') }}{% endif %}{{ messages }}", None),
        (None, None),
    ],
)
def test_the_token_behind_a_response_closes_it(template: str | None, token: str | None) -> None:
    policy = policy_with(template)
    assert closing_token(policy) == token
    assert len(warned(policy)) == (token not in (None, "<end>"))


def test_a_further_stop_token_is_the_remedy_that_is_named() -> None:
    policy = policy_with(TURN.replace("CLOSE", "<fill>"))
    (warning,) = warned(policy)
    assert warning == (
        "agent kim: its chat template closes turns with <fill>, but that does not end its "
        "responses, which then run on to sampling.max_new_tokens; set "
        'agents.kim.stop: ["<fill>"]'
    )
    fill = policy.tokenizer.convert_tokens_to_ids("<fill>")
    assert not warned(dataclasses.replace(policy, stop_ids=(*policy.stop_ids, fill)))


@pytest.mark.parametrize("has_file", [True, False])
def test_end_tokens_are_known_without_the_weights(
    lee: Policy, tmp_path: Path, has_file: bool
) -> None:
    """A check sees the end tokens of a run: those of the generation config, or the model's own."""
    save_policy(lee, tmp_path)
    file = tmp_path / "generation_config.json"
    if has_file:
        GenerationConfig(eos_token_id=[4, 5]).save_pretrained(tmp_path)
    else:
        file.unlink()
        config = AutoConfig.from_pretrained(tmp_path)
        config.eos_token_id = 7
        config.save_pretrained(tmp_path)
    spec = AgentSpec(model=str(tmp_path), device="cpu")
    known = load_generation_config("lee", spec, AutoConfig.from_pretrained(tmp_path))
    assert known.eos_token_id == ([4, 5] if has_file else 7)
    assert load_policy("lee", spec).generation_config.eos_token_id == known.eos_token_id
