"""What an inference engine must do so that a sampler can draw with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a worker reads this module before it knows whether it needs torch
    from torch import Tensor
    from transformers import PreTrainedConfig

__all__ = ["Drawn", "Engine", "EngineError", "Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """One response to be drawn.

    Args:
        prompt_ids: of the prompt, all its special tokens included.
        max_new_tokens: limit of the response, end token included.
        temperature: of the full distribution; 0 takes the most likely token.
        seed: of this response alone, a number of 63 bits.
        stop_ids: the response ends with the first of them, and with nothing else.
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
        logprobs: of these tokens, in nats, at the temperature of the request; at temperature 1
            where that is 0.
        finished: whether it ended with a stop id.
        prompt_logprobs: of the prompt's tokens but the first, at temperature 1; empty unless asked.
    """

    token_ids: list[int]
    logprobs: list[float]
    finished: bool
    prompt_logprobs: list[float]


class EngineError(Exception):
    """An engine has failed, and is of no more use.

    The message is one line without a full stop: what happened, and what to do about it where that
    is known. Whoever uses the engine says whose it is, and closes it.
    """


class Engine(Protocol):
    """Draws with a copy of a policy's weights, which is brought up to date from time to time.

    One thread calls it, one call at a time. Every method but `close` raises `EngineError` where the
    engine cannot do what is asked, has died, or has not answered for too long.
    """

    name: str
    """As messages call it."""

    def start(self, config: PreTrainedConfig, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Get ready to draw. The first call, made once; it may take minutes.

        Args:
            config: of the model, without the quantization that training uses.
            weights: with the names of a checkpoint, tied ones once, in the engine's dtype, on the
                policy's device. To be read once. Some are the policy's own tensors: copy what is
                needed, and keep none after the call.
        """

    def draw(self, requests: Sequence[Request]) -> list[Drawn]:
        """A response to each request, in their order.

        What is drawn depends on the request and the weights alone: not on earlier calls, such as a
        cache that they filled, and as far as the engine can on nothing drawn beside it.
        """

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Draw with these weights from now on, see `start`; wake up before, if asleep.

        Nothing that was computed with the old ones may be used any more.
        """

    def sleep(self) -> bool:
        """Free the memory of weights and cache, where the engine can and its settings want it.

        Returns:
            Whether it did. It must then be given its weights by `load` before it draws again.
        """

    def close(self) -> None:
        """End it with all its processes and files. Does nothing when called again, never raises."""
