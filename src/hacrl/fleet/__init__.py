"""Where agents live. The loop talks to a fleet and does not know."""

from hacrl.fleet.base import AgentLost, Fleet
from hacrl.fleet.local import LocalFleet
from hacrl.fleet.opening import open_fleet

__all__ = ["AgentLost", "Fleet", "LocalFleet", "open_fleet"]
