"""From a recipe to its participants, of whatever kind they are."""

from __future__ import annotations

from transformers import PreTrainedTokenizerBase

from hacrl.agents.agent import Agent
from hacrl.agents.participant import Participant
from hacrl.agents.policy.loading import SharedModels
from hacrl.agents.policy.sharding import ALONE, Share
from hacrl.agents.recording import load_recording
from hacrl.agents.respondent import Respondent
from hacrl.config.recording import RecordingSpec
from hacrl.config.schema import Recipe

__all__ = ["make_participant"]


def make_participant(
    name: str,
    recipe: Recipe,
    tokenizer: PreTrainedTokenizerBase | None = None,
    shared: SharedModels | None = None,
    share: Share = ALONE,
) -> Participant:
    """What a recipe describes under a name: a `LearningParticipant` if it learns.

    Args:
        tokenizer: of a model, if it has been loaded already.
        shared: where agents with adapters find models that others have loaded.
        share: which of the agent's ranks this is. All of them load it together.

    Raises:
        UserError: it cannot be loaded or used.
    """
    spec = recipe.agents[name]
    if isinstance(spec, RecordingSpec):
        return load_recording(name, spec, recipe.group_size)
    kind = Agent if spec.learns else Respondent
    return kind.from_recipe(name, recipe, tokenizer, shared, share)
