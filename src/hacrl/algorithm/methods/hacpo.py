"""HACPO (arXiv 2603.02604, Eq. 5-14): everyone learns from everyone, with four mechanisms.

Capability-aware advantage, capability discrepancy coefficient, exponential importance sampling and
stepwise clipping. α, δ and δ_step are numbers of the recipe. An ablation is this method with one of
its switches changed.
"""

SETTINGS: dict[str, object] = {
    "sharing": "everyone",
    "ratio.level": "sequence",
    "sampling.multiplier": 1,
    "advantage.capability_aware": True,
    "advantage.discrepancy": True,
    "clip.cross": "stepwise",
}
