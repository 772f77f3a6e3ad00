"""The ways to get from one station to another on a day."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from sporvei.clock import Window
from sporvei.network import Station
from sporvei.timetable import SET_DOWN, Call, Connection, Timetable, Trip


@dataclass(frozen=True, slots=True)
class Leg:
    """A ride on one train, from one of its calls to another."""

    trip: Trip
    board: Call
    alight: Call


@dataclass(frozen=True, slots=True)
class Journey:
    """One leg or more, each from where the one before it ends."""

    legs: tuple[Leg, ...]

    @property
    def origin(self) -> Station:
        """The station where it starts."""
        return self.legs[0].board.station

    @property
    def destination(self) -> Station:
        """The station where it ends."""
        return self.legs[-1].alight.station

    @property
    def departure(self) -> int:
        """The minute at which it starts."""
        return self.legs[0].board.departure

    @property
    def arrival(self) -> int:
        """The minute at which it ends."""
        return self.legs[-1].alight.arrival


def scan(connections: Iterable[Connection], origin: Station, after: int) -> dict[Station, Leg]:
    """Find for each station the ride on which one gets there first (connection scan, Dibbelt et al. 2013).

    The connections come in scanning order. Passengers start at the origin from minute `after` on, get on where
    that is allowed, and need a station's time to change between two trains; staying on a train needs none.
    """
    arrivals: dict[Station, int] = {}
    rides: dict[Station, Leg] = {}
    boarded: dict[tuple[int, int], Call] = {}
    for connection in connections:
        leaves, reaches, trip = connection.leaves, connection.reaches, connection.trip
        key = (trip.number, trip.start)
        if key not in boarded:
            if leaves.station == origin:
                ready = after
            elif leaves.station in arrivals:
                ready = arrivals[leaves.station] + leaves.station.change
            else:
                continue
            if leaves.departure < ready or leaves.mark == SET_DOWN:
                continue
            boarded[key] = leaves
        if reaches.station != origin and reaches.arrival < arrivals.get(reaches.station, reaches.arrival + 1):
            arrivals[reaches.station] = reaches.arrival
            rides[reaches.station] = Leg(trip, boarded[key], reaches)
    return rides


def earliest_arrival(
    timetable: Timetable, day: date, origin: Station, destination: Station, after: int
) -> Journey | None:
    """Return the journey that arrives first of those that leave at minute `after` or later, or None."""
    rides = scan(timetable.connections(day), origin, after)
    legs: list[Leg] = []
    place = destination
    while place != origin:
        if place not in rides:
            return None
        legs.append(rides[place])
        place = legs[-1].board.station
    return Journey(tuple(reversed(legs))) if legs else None


def profile(
    timetable: Timetable, day: date, origin: Station, destination: Station, window: Window
) -> Iterator[Journey]:
    """Yield one journey after the other, each the first to arrive of those that leave after the one before.

    They leave within the window, and may arrive after it.
    """
    after = window.start
    while (journey := earliest_arrival(timetable, day, origin, destination, after)) is not None:
        if journey.departure not in window:
            return
        yield journey
        after = journey.departure + 1


def beats(one: Journey, other: Journey) -> bool:
    """Tell whether `one` leaves no earlier, arrives no later, changes no more often, and differs in one of them."""
    ours = (-one.departure, one.arrival, len(one.legs))
    theirs = (-other.departure, other.arrival, len(other.legs))
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def undominated(journeys: Iterable[Journey]) -> list[Journey]:
    """Keep the journeys that no other one beats, by departure and then by arrival."""
    candidates = list(journeys)
    kept = [each for each in candidates if not any(beats(other, each) for other in candidates)]
    return sorted(kept, key=lambda journey: (journey.departure, journey.arrival))


def plan(timetable: Timetable, day: date, origin: str, destination: str, window: Window) -> list[Journey]:
    """Return the journeys worth taking between two stations, named as people type them."""
    network = timetable.network
    start, end = network.station(origin), network.station(destination)
    if start == end:
        raise ValueError(f"the journey from {start.name} ends where it starts")
    return undominated(profile(timetable, day, start, end, window))
