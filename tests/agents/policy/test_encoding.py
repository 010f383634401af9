"""Rows B01, B02, B03, B09, B10 and B11 of the known faults."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hacrl.agents.learning.lessons import make_lessons
from hacrl.agents.policy.encoding import decode_response, encode_foreign, encode_prompt
from hacrl.agents.policy.policy import Policy
from hacrl.agents.sampling.base import Sample
from hacrl.errors import UserError
from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
from tests.agents.conftest import byte_tokenizer, character_tokenizer, make_policy

BYTES = make_policy("bytes", "llama", byte_tokenizer(begin=True, merges=True))
CHARACTERS = make_policy("characters", "qwen", character_tokenizer())


def ids_of(policy: Policy, text: str) -> list[int]:
    return policy.tokenizer.encode(text, add_special_tokens=False)


def encode_one(policy: Policy, text: str, finished: bool) -> tuple[list[int], str | None]:
    (one,) = encode_foreign(policy, [text], [finished])
    return one


def pool_of(*rollouts: Rollout) -> Pool:
    agents = tuple(rollout.agent for rollout in rollouts)
    rows = tuple(Verified(r, Verdict(1.0, Outcome.RIGHT)) for r in rollouts)
    return Pool(0, agents, (Prompt("p", "t", "1+2=", "3"),), 1, rows)


def drew(ids: list[int], logprobs: list[float] | None = None) -> dict[tuple[int, int], Sample]:
    """What the learner keeps of its only response."""
    return {(0, 0): Sample(ids, logprobs or [-1.0] * len(ids), True)}


def test_an_agent_learns_from_what_it_drew_last_and_from_nothing_else(kim: Policy) -> None:
    pool = pool_of(Rollout(0, "kim", 0, 0, "1", -2.0, 2, True))
    for drawn in ({}, drew([3, 1, 1]), {(1, 0): Sample([3, 1], [-1.0, -1.0], True)}):
        with pytest.raises(ValueError, match="sample 0 of prompt 0 is not of that"):
            make_lessons(kim, pool, {"kim": [[1.0]]}, [[5]], drawn)


def test_own_ids_are_the_sampled_ones_even_where_the_tokenizer_would_merge(lee: Policy) -> None:
    split = [ids_of(lee, "1")[0], ids_of(lee, "2")[0], lee.stop_ids[0]]
    assert split[:2] != ids_of(lee, "12"), "the tokenizer must prefer another split"
    rollout = Rollout(0, "lee", 0, 0, "12", -6.0, 3, True)
    (lesson,) = make_lessons(
        lee, pool_of(rollout), {"lee": [[0.5]]}, [[7]], drew(split, [-1.0, -2.0, -3.0])
    )
    assert list(lesson.response_ids) == split
    assert list(lesson.old_logprobs) == [-1.0, -2.0, -3.0]
    assert lesson.rollout.logprob == -6.0
    assert lesson.rollout.length == 3


@pytest.mark.parametrize("finished", [True, False])
def test_foreign_text_gets_the_learners_end_token_iff_its_author_finished(
    kim: Policy, lee: Policy, finished: bool
) -> None:
    for learner in (kim, lee):
        ids, why_not = encode_one(learner, "1+2=3", finished)
        assert why_not is None
        assert ids.count(learner.stop_ids[0]) == int(finished)
        body = ids[:-1] if finished else ids
        assert learner.tokenizer.decode(body) == "1+2=3"
        assert learner.tokenizer.bos_token_id not in ids


def test_text_that_begins_with_a_non_ascii_letter_covers_the_same_bytes_on_both_sides() -> None:
    plain = make_policy("plain", "llama", byte_tokenizer(begin=False, merges=False))
    for policy in (BYTES, plain):
        ids, why_not = encode_one(policy, "élan 12", True)
        assert why_not is None
        assert policy.tokenizer.decode(ids[:-1]) == "élan 12"


def test_end_token_is_not_part_of_the_shared_text(lee: Policy) -> None:
    ids = [*ids_of(lee, "42"), lee.stop_ids[0]]
    assert decode_response(lee, ids, True) == ("42", None)


def test_other_special_tokens_stay_visible_but_are_not_shared(lee: Policy) -> None:
    begin = lee.tokenizer.bos_token_id
    assert begin is not None
    ids = [*ids_of(lee, "42"), begin, lee.stop_ids[0]]
    assert decode_response(lee, ids, True) == ("42<begin>", "special_token")


def test_a_character_cut_in_half_is_not_shared_and_does_not_crash(lee: Policy) -> None:
    whole = ids_of(lee, "🙂")
    assert len(whole) > 1
    text, why_not = decode_response(lee, whole[:-1], False)
    assert why_not == "undecodable"
    assert "\N{REPLACEMENT CHARACTER}" in text


def test_an_empty_response_is_not_shared(kim: Policy) -> None:
    assert decode_response(kim, [kim.stop_ids[0]], True) == ("", "empty")


@pytest.mark.parametrize(
    ("text", "reason"), [("1<stop>2", "control_token"), ("1×2", "unknown_token")]
)
def test_a_learner_leaves_out_text_that_it_cannot_represent(
    kim: Policy, text: str, reason: str
) -> None:
    assert encode_one(kim, text, True)[1] == reason


def test_a_marker_of_one_family_is_scored_as_the_text_that_it_is_for_another(lee: Policy) -> None:
    ids, why_not = encode_one(lee, "1<stop>2", True)
    assert why_not is None
    assert lee.tokenizer.decode(ids[:-1]) == "1<stop>2"


def test_unshareable_rows_are_left_out_of_the_peers_lessons_and_kept_in_the_own(
    kim: Policy, lee: Policy
) -> None:
    theirs = Rollout(0, "lee", 0, 0, "�", -2.0, 2, False, "undecodable")
    mine = Rollout(0, "kim", 0, 0, "1", -2.0, 2, True)
    advantage = {"kim": [[1.0]], "lee": [[1.0]]}
    for_kim = make_lessons(kim, pool_of(mine, theirs), advantage, [[5]], drew([3, 1]))
    assert [lesson.left_out for lesson in for_kim] == [None, "undecodable"]
    for_lee = make_lessons(lee, pool_of(mine, theirs), {"lee": [[1.0]]}, [[5]], drew([1, 2]))
    assert [lesson.left_out for lesson in for_lee] == [None]


def test_rows_without_a_reward_are_left_out(kim: Policy) -> None:
    rollout = Rollout(0, "kim", 0, 0, "1", -2.0, 2, True)
    pool = Pool(
        0,
        ("kim",),
        (Prompt("p", "t", "q", "g"),),
        1,
        (Verified(rollout, Verdict(float("nan"), Outcome.SCORER_ERROR)),),
    )
    (lesson,) = make_lessons(kim, pool, {"kim": [[0.0]]}, [[5]], drew([3, 1]))
    assert lesson.left_out == "unscored"


def test_rows_longer_than_the_model_can_address_are_left_out(kim: Policy) -> None:
    rollout = Rollout(0, "kim", 0, 0, "1", -250.0, 250, False)
    (lesson,) = make_lessons(kim, pool_of(rollout), {"kim": [[1.0]]}, [[5] * 7], drew([3] * 250))
    assert lesson.left_out == "too_long"


def test_a_prompt_without_template_is_the_text_with_what_the_tokenizer_adds(
    kim: Policy, lee: Policy, prompt: Callable[[str], Prompt]
) -> None:
    assert encode_prompt(kim, prompt("1+2=")) == ids_of(kim, "1+2=")
    assert encode_prompt(lee, prompt("1+2=")) == [lee.tokenizer.bos_token_id, *ids_of(lee, "1+2=")]


def test_a_template_that_prints_the_begin_token_gives_exactly_one(
    lee: Policy, prompt: Callable[[str], Prompt]
) -> None:
    lee.tokenizer.chat_template = (
        "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    ids = encode_prompt(lee, prompt("1+2="))
    assert ids.count(lee.tokenizer.bos_token_id) == 1


def test_two_begin_tokens_are_refused(lee: Policy, prompt: Callable[[str], Prompt]) -> None:
    lee.tokenizer.chat_template = "{{ bos_token }}{{ bos_token }}{{ messages[0].content }}"
    with pytest.raises(UserError, match=r"agent lee.*two begin tokens"):
        encode_prompt(lee, prompt("1+2="))


def test_a_template_that_refuses_a_system_message_is_reported(
    lee: Policy, prompt: Callable[[str], Prompt]
) -> None:
    lee.tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}x"
    )
    with_system = dataclasses.replace(prompt("1"), system="Be brief.")
    with pytest.raises(UserError, match=r"agent lee.*no system role.*task's system"):
        encode_prompt(lee, with_system)


@given(text=st.text(max_size=40))
def test_any_text_is_either_represented_exactly_or_left_out(text: str) -> None:
    for learner in (BYTES, CHARACTERS):
        ids, why_not = encode_one(learner, text, False)
        if why_not is None:
            assert learner.tokenizer.decode(ids) == text
            assert set(ids).isdisjoint(learner.tokenizer.all_special_ids)


@given(data=st.data())
def test_any_sampled_ids_decode_to_a_text_or_a_reason(data: st.DataObject) -> None:
    for policy in (BYTES, CHARACTERS):
        ids = data.draw(st.lists(st.integers(0, len(policy.tokenizer) - 1), max_size=12))
        text, why_not = decode_response(policy, ids, False)
        if why_not is None:
            assert text
            assert "\N{REPLACEMENT CHARACTER}" not in text


def test_a_conversation_is_encoded_turn_by_turn(
    lee: Policy, prompt: Callable[[str], Prompt]
) -> None:
    turns = (("user", "1"), ("assistant", "2"))
    asked = dataclasses.replace(prompt("3"), system="0", history=turns)
    assert encode_prompt(lee, asked) == lee.tokenizer.encode("0\n\n1\n\n2\n\n3")
    lee.tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"
    )
    ids = encode_prompt(lee, asked)
    assert lee.tokenizer.decode(ids) == "s0u1a2u3"
