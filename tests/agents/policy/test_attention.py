"""Grouped attention is the library's, without its copies."""

from __future__ import annotations

import copy

import pytest
import torch

from hacrl.agents.policy.attention import group_queries
from hacrl.agents.policy.policy import Policy
from tests.tolerances import assert_close, assert_close_gradients, terms

pytestmark = pytest.mark.numerics


def test_grouped_attention_gives_the_same_hidden_states_and_gradients(kim: Policy) -> None:
    ids = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 11, 2, 2, 2]])
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0]])
    found = []
    for grouped in (False, True):
        model = copy.deepcopy(kim.model)
        if grouped:
            group_queries(model)
            assert model.config._attn_implementation != "sdpa"
        hidden = model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
        hidden[mask.bool()].square().sum().backward()
        found.append((hidden[mask.bool()], [p.grad for p in model.parameters()]))
    (plain, plain_gradient), (ours, our_gradient) = found
    assert_close(ours, plain, terms(kim.model, 6))
    assert_close_gradients(our_gradient, plain_gradient, terms(kim.model, 6))


def test_a_model_with_attention_of_its_own_keeps_it(kim: Policy) -> None:
    kim.model.set_attn_implementation("eager")
    group_queries(kim.model)
    assert kim.model.config._attn_implementation == "eager"
