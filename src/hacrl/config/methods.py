"""The named methods: baselines and HACPO as settings of the same code.

A method fixes only the switches that define it. Numbers such as α or δ keep the schema's defaults
or the recipe's own values. An ablation is `method: hacpo` with one of these switches changed.
"""

from __future__ import annotations

__all__ = ["METHODS"]

_ALONE = {"sharing": "nobody", "ratio.level": "sequence", "sampling.multiplier": 1}
_TOGETHER = {"sharing": "everyone", "ratio.level": "sequence", "sampling.multiplier": 1}

METHODS: dict[str, dict[str, object]] = {
    "grpo": {**_ALONE, "ratio.level": "token", "clip.own_low": 0.2, "clip.own_high": 0.28},
    "gspo": _ALONE,
    "gspo_x2": {**_ALONE, "sampling.multiplier": 2},
    "naive": {
        **_TOGETHER,
        "advantage.capability_aware": False,
        "advantage.discrepancy": False,
        "ratio.alpha": 0.0,
        "clip.cross": "own",
    },
    "hacpo": {
        **_TOGETHER,
        "advantage.capability_aware": True,
        "advantage.discrepancy": True,
        "clip.cross": "stepwise",
    },
}
