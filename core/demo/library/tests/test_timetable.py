from datetime import date

import pytest

from sporvei.clock import Window, format_time
from sporvei.network import Network
from sporvei.notation import NotationError
from sporvei.timetable import Timetable, parse_timetable

MONDAY = date(2024, 6, 10)
SATURDAY = date(2024, 6, 15)

HEAD = "calendar daily Mo-Su\ntrip 1 L1 daily\n"


def test_repeats_are_numbered_by_two(timetable: Timetable) -> None:
    first = [trip for trip in timetable.trips if 11 <= trip.number <= 17 and trip.number % 2]
    assert [(trip.number, format_time(trip.start)) for trip in first] == [
        (11, "06:00"),
        (13, "07:00"),
        (15, "08:00"),
        (17, "09:00"),
    ]
    assert {trip.destination.name for trip in first} == {"Åsgård"}


def test_a_call_has_arrival_departure_and_mark(timetable: Timetable) -> None:
    call = timetable.trips[0].calls[3]
    assert (call.station.name, call.arrival, call.departure, call.mark) == ("Skåldal", 392, 393, "[x]")


@pytest.mark.parametrize(
    ("day", "numbers"),
    [
        (MONDAY, {11, 13, 15, 17, 12, 14, 16, 51, 53, 55, 57, 71, 91}),
        (SATURDAY, {31, 33, 35, 12, 14, 16, 51, 53, 55, 57, 91}),
        (date(2024, 5, 17), {31, 33, 35, 12, 14, 16, 51, 53, 55, 57, 91}),
    ],
    ids=str,
)
def test_running_on(timetable: Timetable, day: date, numbers: set[int]) -> None:
    assert {trip.number for trip in timetable.running_on(day)} == numbers


def test_a_night_train_runs_on_two_days(timetable: Timetable) -> None:
    nights = [trip.start for trip in timetable.running_on(MONDAY) if trip.number == 91]
    assert nights == [-20, 1420]


def test_connections_are_in_scanning_order(timetable: Timetable) -> None:
    connections = timetable.connections(MONDAY)
    departures = [each.leaves.departure for each in connections]
    assert departures == sorted(departures)
    assert departures[0] == 2
    assert len(connections) == 4 * 6 + 3 * 4 + 4 * 2 + 3 + 3 + 2


def test_departures_leave_within_the_window(timetable: Timetable, network: Network) -> None:
    leaving = timetable.departures(network.station("Elvestø"), MONDAY, Window.parse("07:22-07:30"))
    assert [each.trip.number for each in leaving] == [13, 53, 71]


def test_nobody_gets_on_where_a_train_sets_down_only(timetable: Timetable, network: Network) -> None:
    leaving = timetable.departures(network.station("Mjølfjell"), MONDAY, Window.parse("07:50-07:53"))
    assert [each.trip.number for each in leaving] == [13, 12]


def test_trips_know_their_calls(timetable: Timetable, network: Network) -> None:
    trip = timetable.trips[0]
    assert trip.index_of(network.station("ELV")) == 2
    with pytest.raises(ValueError, match="trip 11 does not call at Vik"):
        trip.index_of(network.station("VIK"))


def test_a_shifted_trip_keeps_all_but_its_times(timetable: Timetable) -> None:
    trip = timetable.trips[0]
    later = trip.shifted(7)
    assert (later.number, later.line, later.calendar) == (trip.number, trip.line, trip.calendar)
    assert [call.arrival - 7 for call in later.calls] == [call.arrival for call in trip.calls]
    assert later.shifted(-7) == trip


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("HAV 06:00", r"line 1: neither a calendar, a trip, a call nor a repeat: \['HAV', '06:00'\]"),
        ("trip 1 L1 never", r"line 1: no calendar \[never\]"),
        (HEAD + "HAV 06:00 06:01 06:02", "line 3: a call has one time"),
        (HEAD + "Havn 06:00", r"line 3: no station \[Havn\]; did you mean Havnøy"),
        ("repeat every 60 until 07:00", "line 1: there is no trip to repeat"),
        (HEAD + "HAV 06:00\nBRU 06:09\nrepeat every 0 until 07:00", r"line 5: trains can't follow every \[0\]"),
    ],
)
def test_not_a_timetable(network: Network, text: str, complaint: str) -> None:
    with pytest.raises(NotationError, match=complaint):
        parse_timetable(network, text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD + "HAV 06:00", "trip 1 needs two calls"),
        (HEAD + "HAV 06:00\nBRU 05:59", "trip 1 reaches Bruheim before it leaves Havnøy"),
        (HEAD + "HAV 06:00\nBRU 06:09\ntrip 1 L1 daily\nHAV 07:00\nBRU 07:09", "there are two trips 1"),
    ],
)
def test_impossible_trips(network: Network, text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_timetable(network, text)
