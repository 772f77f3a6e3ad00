"""Trains: where they call and when, and which of them run on a day."""

from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import pairwise

from sporvei.calendars import Calendar, parse_calendar
from sporvei.clock import DAY, Window, parse_time, ticks
from sporvei.network import Network, Station
from sporvei.notation import NotationError, lines, numbered

REQUEST = "[x]"
SET_DOWN = "[/x]"


@dataclass(frozen=True, slots=True)
class Call:
    """A train's stop at a station; `mark` is empty, `[x]` (on request) or `[/x]` (to set down only)."""

    station: Station
    arrival: int
    departure: int
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Trip:
    """One train on its way over the line, on every day of its calendar."""

    number: int
    line: str
    calendar: Calendar
    calls: tuple[Call, ...]

    def __post_init__(self) -> None:
        if len(self.calls) < 2:
            raise ValueError(f"trip {self.number} needs two calls or more")
        for call, following in pairwise(self.calls):
            if following.arrival < call.departure:
                raise ValueError(
                    f"trip {self.number} reaches {following.station.name} before it leaves {call.station.name}"
                )

    @property
    def start(self) -> int:
        """The minute of its first departure."""
        return self.calls[0].departure

    @property
    def destination(self) -> Station:
        """The station where it ends."""
        return self.calls[-1].station

    def index_of(self, station: Station) -> int:
        """Return the place of the first call at that station; `ValueError` if it doesn't call there."""
        for index, call in enumerate(self.calls):
            if call.station == station:
                return index
        raise ValueError(f"trip {self.number} does not call at {station.name}")

    def shifted(self, minutes: int, number: int | None = None) -> "Trip":
        """Return the trip that many minutes later, under another number if one is given."""
        calls = tuple(
            replace(call, arrival=call.arrival + minutes, departure=call.departure + minutes) for call in self.calls
        )
        return replace(self, number=self.number if number is None else number, calls=calls)


@dataclass(frozen=True, slots=True)
class Connection:
    """A train's way from one call to its next."""

    trip: Trip
    leaves: Call
    reaches: Call


@dataclass(frozen=True, slots=True)
class Timetable:
    """All trips on a network."""

    network: Network
    trips: tuple[Trip, ...]

    def running_on(self, day: date) -> list[Trip]:
        """Return the trips that are under way at some minute of that day, earliest first.

        A trip that started on the day before and goes on past midnight is among them, in the minutes
        of this day: its calls before midnight are negative.
        """
        eve = day - timedelta(days=1)
        running = [trip for trip in self.trips if trip.calendar.runs_on(day)]
        for trip in self.trips:
            if trip.calls[-1].arrival >= DAY and trip.calendar.runs_on(eve):
                running.append(trip.shifted(-DAY))
        return sorted(running, key=lambda trip: (trip.start, trip.number))

    def connections(self, day: date) -> list[Connection]:
        """Return every connection that leaves on that day in scanning order: by departure, then by arrival."""
        found = [Connection(trip, *pair) for trip in self.running_on(day) for pair in pairwise(trip.calls)]
        leaving = [each for each in found if each.leaves.departure >= 0]
        return sorted(leaving, key=lambda each: (each.leaves.departure, each.reaches.arrival))

    def departures(self, station: Station, day: date, window: Window) -> list[Connection]:
        """Return the connections on which passengers can leave the station within the window."""
        return [
            each
            for each in self.connections(day)
            if each.leaves.station == station and each.leaves.departure in window and each.leaves.mark != SET_DOWN
        ]


@dataclass(slots=True)
class _Draft:
    """What has been read of a timetable so far; the last trip is still without its end."""

    network: Network
    calendars: dict[str, Calendar] = field(default_factory=dict)
    trips: list[Trip] = field(default_factory=list)
    header: tuple[int, str, str] | None = None
    calls: list[Call] = field(default_factory=list)

    def finish_trip(self) -> None:
        """Close the trip whose calls were being read, if there is one."""
        if self.header is not None:
            number, line, name = self.header
            self.trips.append(Trip(number, line, self.calendars[name], tuple(self.calls)))
        self.header, self.calls = None, []

    def repeat(self, every: int, until: int) -> None:
        """Repeat the last trip at a fixed interval, its number growing by two each time."""
        self.finish_trip()
        if not self.trips:
            raise NotationError("there is no trip to repeat")
        model = self.trips[-1]
        for count, start in enumerate(ticks(model.start + every, until, every), start=1):
            self.trips.append(model.shifted(start - model.start, model.number + 2 * count))


def _read_call(network: Network, fields: list[str]) -> Call:
    mark = fields[-1] if fields[-1] in (REQUEST, SET_DOWN) else ""
    place, *times = fields[:-1] if mark else fields
    minutes = [parse_time(text) for text in times]
    if len(minutes) not in (1, 2) or minutes[-1] < minutes[0]:
        raise NotationError(f"a call has one time, or arrival and departure, not {times}")
    return Call(network.station(place), minutes[0], minutes[-1], mark)


@numbered
def _read_line(draft: _Draft, fields: list[str]) -> None:
    match fields:
        case ["calendar", name, *rest]:
            draft.calendars[name] = parse_calendar(rest)
        case ["trip", number, line, name]:
            draft.finish_trip()
            if name not in draft.calendars:
                raise NotationError(f"no calendar [{name}]")
            draft.header = (int(number), line, name)
        case ["repeat", "every", interval, "until", time]:
            draft.repeat(int(interval), parse_time(time))
        case [_, _, *_] if draft.header is not None:
            draft.calls.append(_read_call(draft.network, fields))
        case _:
            raise NotationError(f"neither a calendar, a trip, a call nor a repeat: {fields}")


def parse_timetable(network: Network, text: str) -> Timetable:
    """Read a timetable: calendars, and trips with their calls.

    calendar workdays Mo-Fr not 2024-05-16
    trip 11 L1 workdays
      HAV 06:00
      BRU 06:09 06:10 [x]
      ELV 06:20
    repeat every 60 until 08:00
    """
    draft = _Draft(network)
    for number, fields in lines(text):
        _read_line(draft, number, fields)
    draft.finish_trip()
    for trip, following in pairwise(sorted(draft.trips, key=lambda trip: trip.number)):
        if trip.number == following.number:
            raise NotationError(f"there are two trips {trip.number}")
    return Timetable(network, tuple(draft.trips))
