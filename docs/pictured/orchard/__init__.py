"""From the tree to the market."""

from orchard.crates import Crate, pack
from orchard.market import revenue

__all__ = ["Crate", "pack", "revenue"]
