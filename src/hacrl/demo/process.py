"""How the demo's processes begin, before they import what takes long."""

from __future__ import annotations

from hacrl.console.terminal import quieten_libraries
from hacrl.processes import end_with_parent

__all__ = ["begin"]


def begin() -> None:
    """End with the parent, and let libraries say nothing while they are imported."""
    end_with_parent()
    quieten_libraries()
