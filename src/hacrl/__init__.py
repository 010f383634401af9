"""Several language models learn one task together and stand alone afterwards (HACRL, HACPO).

    import hacrl

    recipe = hacrl.load_recipe("my.yaml", ["steps=10"])
    run = hacrl.train(recipe, "runs")

What is listed here is stable, and so are the recipe's keys, the names of metrics and the layout of
run folders; everything else may move between versions. Importing this package imports no torch;
what needs it is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hacrl.config import Recipe, load_recipe, recipe_from_dict, recipe_to_yaml
    from hacrl.console.observer import Observer, Silent
    from hacrl.console.terminal import quieten_libraries
    from hacrl.errors import UserError
    from hacrl.phases import Interrupted
    from hacrl.records import Outcome, Prompt, Verdict
    from hacrl.runs.folder import RunFolder
    from hacrl.training.train import train

__all__ = [
    "Interrupted",
    "Observer",
    "Outcome",
    "Prompt",
    "Recipe",
    "RunFolder",
    "Silent",
    "UserError",
    "Verdict",
    "load_recipe",
    "quieten_libraries",
    "recipe_from_dict",
    "recipe_to_yaml",
    "train",
]

__version__ = version("hacrl")

_HOMES = {
    "hacrl.config": ("Recipe", "load_recipe", "recipe_from_dict", "recipe_to_yaml"),
    "hacrl.errors": ("UserError",),
    "hacrl.console.observer": ("Observer", "Silent"),
    "hacrl.phases": ("Interrupted",),
    "hacrl.records": ("Outcome", "Prompt", "Verdict"),
    "hacrl.runs.folder": ("RunFolder",),
    "hacrl.console.terminal": ("quieten_libraries",),
    "hacrl.training.train": ("train",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'hacrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
