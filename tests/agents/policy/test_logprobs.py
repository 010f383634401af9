"""Rows B06, B07 and B19 of the known faults, and exactness of every shortcut."""

from __future__ import annotations

import pytest
import torch

from hacrl.agents.policy.logprobs import pad, response_logprobs
from hacrl.agents.policy.policy import Policy
from tests.tolerances import assert_close, assert_close_gradients, terms

pytestmark = pytest.mark.numerics


def plain_logprob(policy: Policy, prompt: list[int], response: list[int], t: float) -> float:
    """Sum of log-softmax values, one sequence at a time, with the model's own full forward."""
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([prompt + response])).logits[0].double()
    logprobs = (logits / t).log_softmax(-1)
    start = len(prompt) - 1
    return sum(float(logprobs[start + i, token]) for i, token in enumerate(response))


def test_masks_come_from_lengths_though_pad_is_the_end_token(lee: Policy) -> None:
    end = lee.stop_ids[0]
    assert lee.pad_id == end
    responses = [[5, 6, end], [5, 6, 7, 8, 9, 10, end]]
    sequences = pad([[3, 4], [3]], responses, lee.pad_id, lee.device)
    assert sequences.response_mask_RT.sum(1).tolist() == [3, 7]
    assert sequences.attention_mask_RL.sum(1).tolist() == [5, 8]


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
def test_sequence_logprob_equals_the_plain_sum_with_the_end_token(
    kim: Policy, lee: Policy, temperature: float
) -> None:
    for policy in (kim, lee):
        end = policy.stop_ids[0]
        prompts = [[3, 4, 5, 6], [3], [7, 8]]
        responses = [[5, 6, end], [9, 5, 6, 7, 8, 9, end], [4]]
        sequences = pad(prompts, responses, policy.pad_id, policy.device)
        sums = response_logprobs(policy, sequences, temperature).sum(1).tolist()
        expected = [
            plain_logprob(policy, p, r, temperature)
            for p, r in zip(prompts, responses, strict=True)
        ]
        assert_close(sums, expected, terms(policy.model, 8))


def test_chunks_give_the_same_values_and_gradients(lee: Policy) -> None:
    sequences = pad([[3, 4], [3]], [[5, 6, 7], [8, 9, 10, 11, 12]], lee.pad_id, lee.device)

    def run(logits_at_once: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
        lee.model.zero_grad()
        logprobs = response_logprobs(lee, sequences, 1.0, logits_at_once)
        logprobs.sum().backward()
        return logprobs.detach(), [p.grad.clone() for p in lee.model.parameters()]

    whole, whole_gradients = run(1 << 25)
    parts, parts_gradients = run(2 * lee.vocab_size)
    assert_close(parts, whole, terms(lee.model, 6))
    assert_close_gradients(parts_gradients, whole_gradients, terms(lee.model, 6))


def test_padding_does_not_change_a_row(kim: Policy) -> None:
    alone = pad([[3, 4]], [[5, 6]], kim.pad_id, kim.device)
    together = pad([[3, 4], [3] * 9], [[5, 6], [7] * 9], kim.pad_id, kim.device)
    with torch.no_grad():
        assert_close(
            response_logprobs(kim, together, 1.0)[0, :2],
            response_logprobs(kim, alone, 1.0)[0],
            terms(kim.model, 18),
        )
