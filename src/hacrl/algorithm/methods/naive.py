"""Naive sharing, a baseline of the paper: peers' responses are treated like one's own.

One mean over all responses is every learner's baseline, and peers' ratios are clipped as own ones
are.
"""

SETTINGS: dict[str, object] = {
    "sharing": "everyone",
    "ratio.level": "sequence",
    "sampling.multiplier": 1,
    "advantage.capability_aware": False,
    "advantage.discrepancy": False,
    "ratio.alpha": 0.0,
    "clip.cross": "own",
}
