"""How good agents are on held-out problems."""

from hacrl.evaluation.accuracy import Accuracy, evaluate, paired_difference

__all__ = ["Accuracy", "evaluate", "paired_difference"]
