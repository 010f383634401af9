"""A participant without a model: what an agent of an earlier run answered to the same prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hacrl.agents.policy.reading import Reading
from hacrl.agents.recorded import PromptKey, Recorded, prompt_key, read_recorded
from hacrl.config.recording import RecordingSpec
from hacrl.config.schema import Recipe
from hacrl.errors import UserError
from hacrl.paths import resolve
from hacrl.records import Decoding, Prompt, Rollout

__all__ = ["Recording", "check_recordings", "load_recording"]


class Recording:
    """Answers with recorded responses, as many as there are. See `Participant`.

    Args:
        origin: whose they are, for people.
        responses: to each prompt, in the order in which they are given.
        group_size: G, with which the run asks.
    """

    def __init__(
        self,
        name: str,
        origin: str,
        responses: Mapping[PromptKey, Sequence[Recorded]],
        group_size: int,
    ) -> None:
        self.name = name
        self._origin = origin
        self._responses = responses
        self._group_size = group_size

    @property
    def positions(self) -> int | None:
        return None

    def prompt_lengths(self, prompts: Sequence[Prompt]) -> list[int]:
        """0 for each: they are not used for recorded rollouts."""
        return [0] * len(prompts)

    def matched(self, prompts: Sequence[Prompt]) -> int:
        """How many of the prompts it has a response to."""
        return sum(prompt_key(prompt) in self._responses for prompt in prompts)

    def read(self, prompts: Sequence[Prompt]) -> Reading:
        counts = [len(self._responses.get(prompt_key(prompt), ())) for prompt in prompts]
        text = f"agent {self.name}: {self._origin} has answered {sum(map(bool, counts))} of "
        text += f"{len(prompts)} prompts"
        if few := sum(0 < count < self._group_size for count in counts):
            text += f", {few} of them fewer than {self._group_size} times"
        return Reading(notes=(text,))

    def sample(
        self,
        prompts: Sequence[Prompt],
        group_size: int,
        *,
        occasion: str,
        decoding: Decoding | None = None,
    ) -> list[Rollout]:
        """The same responses on every occasion.

        Raises:
            ValueError: they are to be drawn otherwise than in training.
        """
        if decoding is not None:
            raise ValueError(f"{self.name} is a recording, and cannot draw")
        return [
            _rollout(self.name, position, number, recorded)
            for position, prompt in enumerate(prompts)
            for number, recorded in enumerate(
                self._responses.get(prompt_key(prompt), ())[:group_size]
            )
        ]

    def close(self) -> None:
        """There is nothing to free."""


def load_recording(name: str, spec: RecordingSpec, group_size: int) -> Recording:
    """Read what a recipe names. It is data: nothing of it is executed.

    Raises:
        UserError: there is no such run or agent, or a file cannot be read.
    """
    try:
        agent, responses = read_recorded(resolve(spec.path), spec.agent, group_size)
    except UserError as error:
        raise UserError(f"agents.{name}.{error}") from error
    return Recording(name, f"{agent} of {spec.path}", responses, group_size)


def check_recordings(
    recipe: Recipe, prompts: Sequence[Prompt], run: Path | None = None
) -> dict[str, Reading]:
    """What there is to say about the recordings of a recipe, before anything else is loaded.

    Args:
        run: the folder of the run to come, if it is known.

    Raises:
        UserError: one cannot be read, is of the run itself, or has none of the prompts.
    """
    problems = {}
    for name, spec in recipe.recordings.items():
        if run is not None and resolve(spec.path).resolve() == run.resolve():
            raise UserError(f"agents.{name}.path: {spec.path} is the folder of this run itself")
        recording = load_recording(name, spec, recipe.group_size)
        if not recording.matched(prompts):
            raise UserError(
                f"agents.{name}.path: {spec.path} has no prompt in common with the tasks; prompts "
                "are matched by id (task and row) and text, so tasks must be called the same"
            )
        problems[name] = recording.read(prompts)
    return problems


def _rollout(name: str, prompt: int, sample: int, recorded: Recorded) -> Rollout:
    return Rollout(
        prompt=prompt,
        agent=name,
        sample=sample,
        policy_version=recorded.policy_version,
        text=recorded.text,
        logprob=recorded.logprob,
        length=recorded.length,
        finished=recorded.finished,
        unshareable=recorded.unshareable,
    )
