"""GSPO (arXiv 2507.18071): every agent learns alone, with one importance ratio per response."""

SETTINGS: dict[str, object] = {
    "sharing": "nobody",
    "ratio.level": "sequence",
    "sampling.multiplier": 1,
}
