"""How responses are sampled in an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from hacrl.config.bounds import Count, Temperature, Tokens, within
from hacrl.errors import UserError
from hacrl.evaluation.answers import Headline

__all__ = ["Settings", "chosen_settings", "paper_settings"]

_MAX_NEW_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """How the responses to one benchmark are drawn, and which figure stands for it.

    Args:
        samples: k, responses per problem.
        greedy: always the most likely token.
        temperature: where not greedy.
        max_new_tokens: limit of a response, end token included.
        headline: see `Headline`.
    """

    samples: int = 1
    greedy: bool = True
    temperature: float = 1.0
    max_new_tokens: int = _MAX_NEW_TOKENS
    headline: Headline = "avg"


def paper_settings(name: str) -> Settings:
    """The paper's protocol: greedy avg@1; best@30 on AIME 2025, drawn as in training."""
    if name == "aime25":
        return Settings(30, False, 1.0, 8_192, "best")
    return Settings(max_new_tokens=8_192)


def chosen_settings(
    name: str,
    *,
    paper: bool,
    samples: int | None,
    temperature: float | None,
    max_new_tokens: int | None,
) -> Settings:
    """The settings for a benchmark: the preset's, or greedy avg@1, with the options given.

    Several samples, or a temperature, mean drawing instead of greedy decoding.

    Raises:
        UserError: options that contradict the preset, or that no recipe could have either.
    """
    for option, bound, value in (
        ("--samples", Count, samples),
        ("--temperature", Temperature, temperature),
        ("--max-new-tokens", Tokens, max_new_tokens),
    ):
        if value is not None:
            within(bound, value, option)
    if paper and samples is not None:
        raise UserError("--samples: --preset paper sets the number; give one of the two")
    base = paper_settings(name) if paper else Settings()
    greedy = base.greedy if paper else temperature is None and samples in (None, 1)
    return Settings(
        samples=samples or base.samples,
        greedy=greedy,
        temperature=base.temperature if temperature is None else temperature,
        max_new_tokens=max_new_tokens or base.max_new_tokens,
        headline=base.headline,
    )
