"""GRPO (arXiv 2402.03300): every agent learns alone, with one importance ratio per token.

The upper side of the clip interval is wider, as in DAPO (arXiv 2503.14476).
"""

SETTINGS: dict[str, object] = {
    "sharing": "nobody",
    "ratio.level": "token",
    "sampling.multiplier": 1,
    "clip.own_low": 0.2,
    "clip.own_high": 0.28,
}
