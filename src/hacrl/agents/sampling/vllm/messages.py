"""What a run and its vLLM engines say to each other: plain values alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Drawn", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """One response to be drawn.

    Args:
        prompt_ids: of the prompt, all its special tokens included.
        temperature: of the full distribution; 0 takes the most likely token.
        seed: of this response alone.
        stop_ids: the response ends with the first of them.
        score_prompt: return the log-probabilities of the prompt's own tokens as well.
    """

    prompt_ids: list[int]
    max_new_tokens: int
    temperature: float
    seed: int
    stop_ids: tuple[int, ...]
    score_prompt: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """What an engine has drawn.

    Args:
        token_ids: end token included.
        logprobs: of these tokens, in nats, at the temperature of the request.
        finished: whether it ended with a stop id.
        prompt_logprobs: of the prompt's tokens but the first, at temperature 1; empty unless asked.
    """

    token_ids: list[int]
    logprobs: list[float]
    finished: bool
    prompt_logprobs: list[float]
