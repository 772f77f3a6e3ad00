"""Which tests enter which functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TestMap:
    """Functions, `path::qualname`, to the ids of the tests that enter them."""

    __test__ = False

    entered: Mapping[str, frozenset[str]]
    at_import: frozenset[str] = frozenset()
    seconds: float = 0.0

    def tests_of(self, function: str) -> frozenset[str]:
        """Return the tests that enter a function."""
        return self.entered.get(function, frozenset())

    def functions_of(self, test: str) -> frozenset[str]:
        """Return the functions that a test enters."""
        return frozenset(name for name, tests in self.entered.items() if test in tests)

    def to_json(self) -> dict[str, Any]:
        """Return the map as a JSON value."""
        return {
            "entered": {name: sorted(tests) for name, tests in sorted(self.entered.items())},
            "at_import": sorted(self.at_import),
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TestMap:
        """Return the map that `to_json` gave."""
        entered = {name: frozenset(tests) for name, tests in value["entered"].items()}
        return cls(entered, frozenset(value["at_import"]), value["seconds"])
