"""The recipe: schema, named methods and loading. Imports no torch, so validation is instant."""

from hacrl.config.agents import AgentSpec
from hacrl.config.load import load_recipe, recipe_from_dict, recipe_to_yaml
from hacrl.config.schema import Recipe

__all__ = ["AgentSpec", "Recipe", "load_recipe", "recipe_from_dict", "recipe_to_yaml"]
