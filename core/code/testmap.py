"""A record of which tests run which functions, made once per library for all candidates (decision 36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from gistpoint.core.errors import UserError

FORMAT = "gistpoint.test-map"
VERSION = 1


class TestMapError(UserError):
    """A stored test map can't be read."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class TestMap:
    """The functions that each test enters, named `path::qualname`, repeated ones with `#2`.

    A test enters a function when code between its first and last line starts to run during the test or a
    shared fixture used by it, in any thread or in a Python process started by the test. A test that enters a
    nested function or a lambda thus also enters the enclosing function. Functions of test files are left out.
    """

    __test__ = False

    entered: Mapping[str, frozenset[str]]
    """The ids of the tests that enter each function."""
    at_import: frozenset[str] = frozenset()
    """Functions entered during collection or imports, whose effects last."""
    seconds: float = 0.0
    """The duration of the recorded run; recording makes a suite four to fifteen times slower."""
    tests: Mapping[str, float] = field(default_factory=dict)
    """The tests that ran, in the order of the suite, with their seconds in the recorded run."""
    collecting: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The functions of `at_import` entered only by the top level of test files, with those files."""
    opaque: frozenset[str] = frozenset()
    """Tests that start programs that can't be observed, and so may enter any function."""

    def tests_of(self, function: str) -> frozenset[str]:
        """Return the ids of the tests that enter `function` or, if it is a class, a method of it."""
        return frozenset().union(*(self.entered.get(name, ()) for name in self._parts_of(function)))

    def _parts_of(self, name: str) -> list[str]:
        """Return a recorded function, or the recorded functions inside a class."""
        if name in self.entered or name in self.at_import:
            return [name]
        inside = f"{name}."
        return [
            other for other in {**self.entered, **dict.fromkeys(self.at_import)} if other.startswith(inside)
        ]

    def seeing(self, functions: Iterable[str]) -> tuple[str, ...]:
        """Return the tests that a change of `functions` can affect, in the order of the suite.

        They are the opaque tests and the tests that enter one of the functions. For a function that runs
        while test files are imported, all tests of these files are added; for a function that runs at any
        other import, all tests.
        """
        seeing, files = set(self.opaque), set[str]()
        for function in chain.from_iterable(map(self._parts_of, functions)):
            seeing |= self.entered.get(function, frozenset())
            if function in self.collecting:
                files |= self.collecting[function]
            elif function in self.at_import:
                return tuple(self.tests)
        return tuple(id for id in self.tests if id in seeing or id.partition("::")[0] in files)

    def to_json(self) -> dict[str, Any]:
        """Return the map as JSON values, in which tests are represented by numbers to keep it small."""
        ids = list(dict.fromkeys([*self.tests, *sorted(self.opaque.union(*self.entered.values()))]))
        number = {id: place for place, id in enumerate(ids)}
        return {
            "format": FORMAT,
            "version": VERSION,
            "seconds": self.seconds,
            "tests": ids,
            "times": list(self.tests.values()),
            "entered": {
                name: sorted(number[id] for id in self.entered[name]) for name in sorted(self.entered)
            },
            "at_import": sorted(self.at_import),
            "collecting": {name: sorted(self.collecting[name]) for name in sorted(self.collecting)},
            "opaque": sorted(number[id] for id in self.opaque),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TestMap:
        """Return the map from the result of `to_json`. Raises `TestMapError` for any other value."""
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise TestMapError(
                f"This is not a test map of version {VERSION}.",
                hint="Record it again with this version of gistpoint.",
            )
        try:
            ids: list[str] = data["tests"]
            return cls(
                entered={
                    name: frozenset(ids[n] for n in numbers) for name, numbers in data["entered"].items()
                },
                at_import=frozenset(data["at_import"]),
                seconds=float(data["seconds"]),
                tests=dict(zip(ids, map(float, data["times"]), strict=False)),
                collecting={name: frozenset(files) for name, files in data["collecting"].items()},
                opaque=frozenset(ids[n] for n in data["opaque"]),
            )
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise TestMapError(f"The test map is damaged: {error}.", hint="Record it again.") from error
