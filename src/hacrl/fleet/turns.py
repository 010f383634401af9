"""Who works at the same time where agents share devices."""

from __future__ import annotations

from collections.abc import Mapping, Set

__all__ = ["turns"]


def turns(devices: Mapping[str, Set[str]]) -> list[list[str]]:
    """Groups of agents that have no device in common, one after another; as few as fit greedily.

    Args:
        devices: of each agent; an agent without any blocks no other.
    """
    groups: list[tuple[list[str], set[str]]] = []
    for name, own in devices.items():
        for members, taken in groups:
            if not taken & own:
                members.append(name)
                taken |= own
                break
        else:
            groups.append(([name], set(own)))
    return [members for members, _ in groups]
