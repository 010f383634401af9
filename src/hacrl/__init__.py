"""Several language models learn one task together and stand alone afterwards (HACRL, HACPO).

    import hacrl

    recipe = hacrl.load_recipe("my.yaml", ["steps=10"])
    run = hacrl.train(recipe, "runs")

Or with your own loop, as in `examples/own_loop.py`. What is listed here is stable, and so are the
recipe's keys, the names of metrics and the layout of run folders; everything else may move between
versions. Importing this package imports no torch; what needs it is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hacrl.agents.participant import LearningParticipant, Participant
    from hacrl.algorithm.advantages import CapabilityAware, advantages
    from hacrl.algorithm.base import Algorithm, JointSet, Judgement
    from hacrl.algorithm.capability import CapabilityTracker
    from hacrl.algorithm.objective import Rows, SequenceLevel, Terms, TokenLevel
    from hacrl.config import Recipe, load_recipe, recipe_from_dict, recipe_to_yaml
    from hacrl.config.bundled import find_recipe
    from hacrl.console.observer import Observer, Silent
    from hacrl.console.terminal import quieten_libraries
    from hacrl.errors import UserError
    from hacrl.fleet import Fleet, LocalFleet, open_fleet
    from hacrl.phases import Interrupted
    from hacrl.records import Outcome, Pool, Prompt, Rollout, Verdict, Verified
    from hacrl.runs.run import Run
    from hacrl.tasks import PromptStream, load_prompts
    from hacrl.training.loop import by_learner, co_train, joint_set
    from hacrl.training.train import train
    from hacrl.verify import VerifierPool, make_pool
    from hacrl.verify.rollouts import verify_rollouts

__all__ = [
    "Algorithm",
    "CapabilityAware",
    "CapabilityTracker",
    "Fleet",
    "Interrupted",
    "JointSet",
    "Judgement",
    "LearningParticipant",
    "LocalFleet",
    "Observer",
    "Outcome",
    "Participant",
    "Pool",
    "Prompt",
    "PromptStream",
    "Recipe",
    "Rollout",
    "Rows",
    "Run",
    "SequenceLevel",
    "Silent",
    "Terms",
    "TokenLevel",
    "UserError",
    "Verdict",
    "Verified",
    "VerifierPool",
    "advantages",
    "by_learner",
    "co_train",
    "find_recipe",
    "joint_set",
    "load_prompts",
    "load_recipe",
    "make_pool",
    "open_fleet",
    "quieten_libraries",
    "recipe_from_dict",
    "recipe_to_yaml",
    "train",
    "verify_rollouts",
]

__version__: str

_HOMES = {
    "hacrl.agents.participant": (
        "LearningParticipant",
        "Participant",
    ),
    "hacrl.algorithm.advantages": (
        "CapabilityAware",
        "advantages",
    ),
    "hacrl.algorithm.base": (
        "Algorithm",
        "JointSet",
        "Judgement",
    ),
    "hacrl.algorithm.capability": ("CapabilityTracker",),
    "hacrl.algorithm.objective": (
        "Rows",
        "SequenceLevel",
        "Terms",
        "TokenLevel",
    ),
    "hacrl.config": (
        "Recipe",
        "load_recipe",
        "recipe_from_dict",
        "recipe_to_yaml",
    ),
    "hacrl.config.bundled": ("find_recipe",),
    "hacrl.console.observer": (
        "Observer",
        "Silent",
    ),
    "hacrl.console.terminal": ("quieten_libraries",),
    "hacrl.errors": ("UserError",),
    "hacrl.fleet": (
        "Fleet",
        "LocalFleet",
        "open_fleet",
    ),
    "hacrl.phases": ("Interrupted",),
    "hacrl.records": (
        "Outcome",
        "Pool",
        "Prompt",
        "Rollout",
        "Verdict",
        "Verified",
    ),
    "hacrl.runs.run": ("Run",),
    "hacrl.tasks": (
        "PromptStream",
        "load_prompts",
    ),
    "hacrl.training.loop": (
        "by_learner",
        "co_train",
        "joint_set",
        "verify_rollouts",
    ),
    "hacrl.training.train": ("train",),
    "hacrl.verify": (
        "VerifierPool",
        "make_pool",
    ),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Looking for it among all installed packages takes most of the time of this import.
        from importlib.metadata import version

        return version("hacrl")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'hacrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
