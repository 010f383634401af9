"""Algorithms as recipes make them."""

from __future__ import annotations

from hacrl.algorithm.base import Algorithm
from hacrl.algorithm.making import make_algorithm
from hacrl.config.algorithm import Advantage, Clip, Ratio


def algorithm(ratio: Ratio | None = None, clip: Clip | None = None) -> Algorithm:
    """HACPO with the schema's defaults, or what these sections make of it."""
    sections = {"advantage": Advantage(), "ratio": ratio or Ratio(), "clip": clip or Clip()}
    return make_algorithm({name: section.model_dump() for name, section in sections.items()})
