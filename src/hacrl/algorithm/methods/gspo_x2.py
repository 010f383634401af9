"""GSPO with twice the responses, a baseline of the paper.

Alone, but with as many responses and updates as a learner has that shares with one peer.
"""

SETTINGS: dict[str, object] = {
    "sharing": "nobody",
    "ratio.level": "sequence",
    "sampling.multiplier": 2,
}
