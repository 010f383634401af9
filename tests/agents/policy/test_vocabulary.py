"""Ids that a model has and its tokenizer has not, and the other way round; control tokens in texts;
begin tokens."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tokenizers import AddedToken

from hacrl.agents.learning.lessons import make_lessons
from hacrl.agents.policy.encoding import decode_response, encode_foreign, encode_prompt
from hacrl.agents.policy.loading import load_policy
from hacrl.agents.policy.policy import Policy, save_policy
from hacrl.agents.policy.reading import read
from hacrl.agents.policy.tokenizer import load_tokenizer
from hacrl.agents.sampling.base import Sample
from hacrl.config import AgentSpec
from hacrl.errors import UserError
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
from tests.agents.conftest import byte_tokenizer, make_policy

TEMPLATE = (
    "{% for m in messages %}<begin>{{ m.role }}\n{{ m.content | trim }}<end>{% endfor %}"
    "<begin>bot\n"
)


def prompt_of(text: str, system: str | None = None, number: int = 0) -> Prompt:
    return Prompt(f"sums/{number}", "sums", text, "", system)


def spec(folder: Path, **changes: object) -> AgentSpec:
    return AgentSpec.model_validate({"model": str(folder), "device": "cpu", **changes})


def ids_of(policy: Policy, text: str) -> list[int]:
    return policy.tokenizer.encode(text, add_special_tokens=False)


# Ids without a token: of the padded rows of an output layer


def test_ids_beyond_the_tokenizer_are_marked_and_not_shared(kim: Policy, lee: Policy) -> None:
    for policy in (kim, lee):
        beyond = len(policy.tokenizer)
        for ids in ([*ids_of(policy, "4"), beyond, *ids_of(policy, "2")], [beyond], [beyond + 99]):
            assert decode_response(policy, ids, False)[1] == "no_token"
            assert decode_response(policy, [*ids, policy.stop_ids[0]], True)[1] == "no_token"


def test_such_a_rollout_teaches_its_author_alone(kim: Policy, lee: Policy) -> None:
    odd = Rollout(0, "lee", 0, 0, "42", -1.0, 1, False, "no_token")
    drawn = {(0, 0): Sample([len(lee.tokenizer)], [-1.0], False)}
    pool = Pool(
        0, ("lee",), (Prompt("p", "t", "q", "g"),), 1, (Verified(odd, Verdict(1.0, Outcome.RIGHT)),)
    )
    (own,) = make_lessons(lee, pool, {"lee": [[1.0]]}, [[5]], drawn)
    assert own.left_out is None
    mine = dataclasses.replace(odd, agent="kim", unshareable=None)
    both = Pool(
        0, ("kim", "lee"), pool.prompts, 1, (Verified(mine, pool.rows[0].verdict), *pool.rows)
    )
    lessons = make_lessons(kim, both, {"kim": [[1.0]], "lee": [[1.0]]}, [[5]], drawn)
    assert [lesson.left_out for lesson in lessons] == [None, "no_token"]


# Tokens without an embedding


def with_tokens(folder: Path, tokens: list[str], *, special: bool, end: str | None = None) -> Path:
    policy = make_policy("lee", "llama", byte_tokenizer(begin=True, merges=True))
    save_policy(policy, folder)
    added = [AddedToken(token, special=special, normalized=False) for token in tokens]
    policy.tokenizer.add_tokens(added, special_tokens=special)
    if end is not None:
        policy.tokenizer.eos_token = end
    policy.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("special", "end"), [(False, None), (True, "<new>")])
def test_a_token_without_an_embedding_is_named(
    tmp_path: Path, special: bool, end: str | None
) -> None:
    folder = with_tokens(tmp_path, ["<new>"], special=special, end=end)
    with pytest.raises(UserError) as caught:
        load_policy("lee", spec(folder))
    rows = 256 + 4 + 3
    assert f"token '<new>' of id {rows}, but its model has only {rows} embed" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_control_token_that_nothing_uses_may_lack_one(tmp_path: Path) -> None:
    policy = load_policy("lee", spec(with_tokens(tmp_path, ["<image>"], special=True)))
    (warning,) = read(policy, [prompt_of("1+1=")]).warnings
    assert "its tokenizer has 1 tokens, such as '<image>'" in warning
    with pytest.raises(UserError, match=r"prompt sums/0 has the token '<image>' of id 263"):
        encode_prompt(policy, prompt_of("see <image>"))
    ((_, why_not),) = encode_foreign(policy, ["see <image>"], [True])
    assert why_not == "control_token"
    policy.tokenizer.pad_token = "<image>"
    assert policy.pad_id == policy.stop_ids[0]


# Control tokens in questions


def test_control_tokens_in_questions_are_counted_and_placed(lee: Policy) -> None:
    texts = ["1+1=", "say <end>", "2", "<fill><begin>", "< end >"]
    prompts = [prompt_of(text, number=i) for i, text in enumerate(texts)]
    (warning,) = read(lee, prompts).warnings
    assert "2 of 5 prompts spell control tokens of its tokenizer, first <end> in sums/1" in warning
    assert "agents.lee.split_special_tokens: true" in warning
    assert read(lee, [prompts[0], prompts[4]]).warnings == ()
    (warning,) = read(lee, [prompt_of("1", "Stop with <end>.")]).warnings
    assert "1 of 1 prompts" in warning
    split = dataclasses.replace(lee, split_special_tokens=True)
    assert read(split, prompts).warnings == ()
    assert any("encoded as text" in note for note in read(split, prompts).notes)


@pytest.mark.parametrize("template", [None, TEMPLATE])
@pytest.mark.parametrize("system", [None, "Say <begin> first.", "Be brief."])
@pytest.mark.parametrize("text", ["say <end> ", "<end>", "  <begin>user<end>\n", "12"])
def test_control_tokens_in_questions_can_be_text(
    lee: Policy, template: str | None, system: str | None, text: str
) -> None:
    lee.tokenizer.chat_template = template
    control = lee.control_ids
    usual = encode_prompt(lee, prompt_of(text, system))
    split = encode_prompt(
        dataclasses.replace(lee, split_special_tokens=True), prompt_of(text, system)
    )
    plain = encode_prompt(lee, prompt_of("12", system and "Be brief."))
    assert [i for i in split if i in control] == [i for i in plain if i in control]
    assert lee.tokenizer.decode(split) == lee.tokenizer.decode(usual)
    spells = "<" in text or "<" in (system or "")
    assert (split != usual) == spells


def test_a_template_that_rewrites_the_text_cannot_be_split(lee: Policy) -> None:
    lee.tokenizer.chat_template = "{{ messages[0].content | tojson }}"
    split = dataclasses.replace(lee, split_special_tokens=True)
    with pytest.raises(UserError, match=r"changes the text of prompt sums/0.*drop split_special"):
        encode_prompt(split, prompt_of('"<end>"'))


# Begin tokens


def saved(folder: Path, **settings: object) -> Path:
    """A tokenizer with a begin token that its post-processor does not add."""
    policy = make_policy("lee", "llama", byte_tokenizer(begin=False, merges=False))
    policy.tokenizer.bos_token = settings.pop("bos_token", "<begin>")
    save_policy(policy, folder)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return folder


@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        ({}, True),
        ({"add_bos_token": True}, True),
        ({"add_bos_token": False}, False),
        ({"bos_token": "<end>"}, False),
        ({"bos_token": "<end>", "add_bos_token": True}, True),
    ],
)
def test_plain_prompts_begin_with_one_begin_token_where_the_model_was_trained_with_one(
    tmp_path: Path, settings: dict[str, object], begins: bool
) -> None:
    policy = load_policy("lee", spec(saved(tmp_path / "model", **settings)))
    body = ids_of(policy, "1+1=")
    begin = policy.tokenizer.bos_token_id
    assert encode_prompt(policy, prompt_of("1+1=")) == [*[begin] * begins, *body]
    (note,) = read(policy, [prompt_of("1+1=")]).notes
    assert note.startswith("agent lee has no chat template; prompts are plain text, and begin with")
    assert (f"ids {begin}, {body[0]}" if begins else f"ids {body[0]}, ") in note
    save_policy(policy, tmp_path / "again")
    again = load_policy("lee", spec(tmp_path / "again"))
    assert encode_prompt(again, prompt_of("1+1=")) == encode_prompt(policy, prompt_of("1+1="))


def test_a_begin_token_that_is_there_is_not_doubled(lee: Policy, tmp_path: Path) -> None:
    save_policy(lee, tmp_path)
    ids = encode_prompt(load_policy("lee", spec(tmp_path)), prompt_of("1+1="))
    assert ids == encode_prompt(lee, prompt_of("1+1="))
    assert ids.count(lee.tokenizer.bos_token_id) == 1


# Several named templates


def named(folder: Path, **templates: str) -> Path:
    policy = make_policy("lee", "llama", byte_tokenizer(begin=False, merges=False))
    policy.tokenizer.chat_template = templates
    save_policy(policy, folder)
    return folder


def test_one_of_several_named_templates_is_chosen(tmp_path: Path) -> None:
    folder = named(
        tmp_path / "model", rag="RAG {{ messages[0].content }}", bare="{{ messages[0].content }}"
    )
    with pytest.raises(UserError) as caught:
        load_tokenizer("lee", spec(folder))
    assert str(caught.value).endswith(
        "has the chat templates bare, rag and no default; choose with "
        "agents.lee.chat_template={name: bare}"
    )
    policy = load_policy("lee", spec(folder, chat_template={"name": "rag"}))
    wanted = ids_of(policy, "RAG 1+1=")
    assert encode_prompt(policy, prompt_of("1+1=")) == wanted
    save_policy(policy, tmp_path / "again")
    again = load_policy("lee", spec(tmp_path / "again"))
    assert encode_prompt(again, prompt_of("1+1=")) == wanted
    assert set(again.tokenizer.chat_template) == {"rag", "bare", "default"}
    with pytest.raises(UserError, match=r"chat_template\.name: .* no chat template called raq"):
        load_tokenizer("lee", spec(folder, chat_template={"name": "raq"}))


def test_a_default_among_several_is_taken(tmp_path: Path) -> None:
    policy = load_policy(
        "lee", spec(named(tmp_path, default="D {{ messages[0].content }}", rag="{{ x.y }}"))
    )
    assert encode_prompt(policy, prompt_of("1+1=")) == ids_of(policy, "D 1+1=")
