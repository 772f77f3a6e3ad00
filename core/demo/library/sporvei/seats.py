"""Seats on trains, reserved from one call to another."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sporvei.network import Station
from sporvei.planner import Journey
from sporvei.timetable import Trip

LETTERS = "ABCD"


class SeatError(ValueError):
    """Seats that can't be had."""


@dataclass(slots=True)
class SeatMap:
    """The seats of one trip on one day: rows from 1 on, each of four seats A to D.

    Between two calls that follow each other a seat is taken or free, so it can serve several passengers
    one after the other.
    """

    trip: Trip
    rows: int
    _taken: dict[str, set[int]] = field(default_factory=dict)

    def stretches(self, origin: Station, destination: Station) -> range:
        """Return the stretches between calls that a ride covers, by the index of the call before each."""
        start, end = self.trip.index_of(origin), self.trip.index_of(destination)
        if end <= start:
            raise SeatError(f"trip {self.trip.number} does not go from {origin.name} to {destination.name}")
        return range(start, end)

    def free_in_row(self, row: int, stretches: range) -> list[str]:
        """Return the seats of a row that are free on all the stretches, from the left."""
        labels = [f"{row}{letter}" for letter in LETTERS]
        return [label for label in labels if self._taken.get(label, set()).isdisjoint(stretches)]

    def find_block(self, size: int, stretches: range) -> list[str]:
        """Choose seats for a party of that size, all free on the given stretches; too few free seats give [].

        If one row can hold the party, the row with the fewest free seats that suffice is used, so that
        emptier rows stay whole for larger parties. Otherwise rows are filled one after the other, the one
        with the most free seats first, until everyone sits. Of equal rows the one with the lowest number
        comes first, and within a row seats are given from the left. The seats come in the order given out.
        """
        free = {row: self.free_in_row(row, stretches) for row in range(1, self.rows + 1)}
        fitting = [row for row in free if len(free[row]) >= size]
        if fitting:
            row = min(fitting, key=lambda row: (len(free[row]), row))
            return free[row][:size]
        block: list[str] = []
        for row in sorted(free, key=lambda row: (-len(free[row]), row)):
            block.extend(free[row][: size - len(block)])
        return block if len(block) == size else []

    def reserve(self, size: int, origin: Station, destination: Station) -> list[str]:
        """Take seats for a party between two calls and return them; `SeatError` if too few are free."""
        if size < 1:
            raise SeatError(f"a party has one member or more, not [{size}]")
        stretches = self.stretches(origin, destination)
        block = self.find_block(size, stretches)
        if not block:
            raise SeatError(f"trip {self.trip.number} has no {size} seats from {origin.name} to {destination.name}")
        for label in block:
            self._taken.setdefault(label, set()).update(stretches)
        return block

    def release(self, seats: Iterable[str], origin: Station, destination: Station) -> None:
        """Give seats back between two calls; those that were free stay free."""
        stretches = self.stretches(origin, destination)
        for label in seats:
            self._taken.get(label, set()).difference_update(stretches)


@dataclass(slots=True)
class Reservations:
    """The seat maps of all trips of one day, by trip number and made when first needed."""

    rows: int = 10
    maps: dict[int, SeatMap] = field(default_factory=dict)

    def book(self, journey: Journey, size: int) -> list[list[str]]:
        """Reserve seats on every leg and return them leg by leg; on `SeatError` nothing stays reserved."""
        booked: list[list[str]] = []
        try:
            for leg in journey.legs:
                seat_map = self.maps.setdefault(leg.trip.number, SeatMap(leg.trip, self.rows))
                booked.append(seat_map.reserve(size, leg.board.station, leg.alight.station))
        except SeatError:
            for leg, seats in zip(journey.legs, booked, strict=False):
                self.maps[leg.trip.number].release(seats, leg.board.station, leg.alight.station)
            raise
        return booked
