"""Where agents live. The loop talks to a fleet and does not know."""

from hacrl.fleet.base import Fleet
from hacrl.fleet.local import LocalFleet

__all__ = ["Fleet", "LocalFleet"]
