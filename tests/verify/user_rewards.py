"""Functions as a user would write them."""

import asyncio
import os
import time

import numpy as np

from hacrl.records import Outcome, Prompt, Verdict

not_a_function = 3


def exact(prompt: Prompt, response: str) -> bool:
    return response == prompt.gold


def length(prompt: Prompt, response: str) -> float:
    return len(response) / 10


async def slowly(prompt: Prompt, response: str) -> float:
    await asyncio.sleep(0.01)
    return 1.0 if response == prompt.gold else 0.0


def anything(prompt: Prompt, response: str) -> object:
    return {
        "none": None,
        "numpy": np.float32(0.5),
        "numpy bool": np.bool_(True),
        "int": 1,
        "verdict": Verdict(0.25, Outcome.NO_ANSWER, "x"),
        "text": "1.0",
        "nan": float("nan"),
        "low": -1.0,
        "low verdict": Verdict(-1.0, Outcome.WRONG),
    }[response]


def together(prompts: list[Prompt], responses: list[str]) -> list[float]:
    if "raise" in responses:
        raise RuntimeError("on purpose")
    if "die" in responses:
        os._exit(1)
    if "sleep" in responses:
        time.sleep(60)
    if "short" in responses:
        return []
    return [float(len(responses))] * len(responses)


async def together_slowly(prompts: list[Prompt], responses: list[str]) -> list[bool]:
    async def one(prompt: Prompt, response: str) -> bool:
        await asyncio.sleep(0.05)
        return response == prompt.gold

    return await asyncio.gather(*map(one, prompts, responses))


async def twenty_at_once(prompts: list[Prompt], responses: list[str]) -> list[bool]:
    """Nobody is done before twenty have begun."""
    begun = asyncio.Barrier(20)

    async def one(prompt: Prompt, response: str) -> bool:
        await begun.wait()
        return response == prompt.gold

    return await asyncio.gather(*map(one, prompts, responses))


class Judge:
    @staticmethod
    def call(prompt: Prompt, response: str) -> bool:
        return True
