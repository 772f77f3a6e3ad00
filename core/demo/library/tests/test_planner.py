from datetime import date

import pytest

from sporvei.clock import Window, format_time
from sporvei.network import Network, UnknownStation
from sporvei.planner import Journey, beats, earliest_arrival, plan, scan, undominated
from sporvei.timetable import Timetable

MONDAY = date(2024, 6, 10)
SATURDAY = date(2024, 6, 15)


def told(journey: Journey) -> str:
    """Write a journey as `06:00 11 ELV 06:20, 06:30 51 KÆR 06:52`."""
    return ", ".join(
        f"{format_time(leg.board.departure)} {leg.trip.number} "
        f"{leg.alight.station.code} {format_time(leg.alight.arrival)}"
        for leg in journey.legs
    )


@pytest.mark.parametrize(
    ("day", "ends", "window", "journeys"),
    [
        (MONDAY, "HAV BRU", "06:00-07:00", ["06:00 11 BRU 06:09", "07:00 13 BRU 07:09"]),
        (MONDAY, "HAV KÆR", "06:00-06:59", ["06:00 11 ELV 06:20, 06:30 51 KÆR 06:52"]),
        (MONDAY, "HAV ÅSG", "07:00-07:59", ["07:15 71 ÅSG 08:05"]),
        (MONDAY, "BRU ÅSG", "06:30-07:30", ["07:10 13 ELV 07:20, 07:30 71 ÅSG 08:05"]),
        (SATURDAY, "HAV MJØ", "07:00-11:00", ["08:00 31 MJØ 08:50", "10:00 33 MJØ 10:50"]),
        (MONDAY, "KÆR HAV", "06:00-23:00", []),
        (MONDAY, "ÅSG KÆR", "07:00-09:00", ["07:30 12 ELV 08:18, 08:30 55 KÆR 08:52"]),
        (MONDAY, "ELV MJØ", "00:00-01:00", ["00:02 91 MJØ 00:27"]),
        (SATURDAY, "VIK MJØ", "00:05-00:10", ["00:09 91 MJØ 00:27"]),
        (MONDAY, "HAV MJØ", "23:00-23:59", ["23:40 91 MJØ 00:27⁺¹"]),
    ],
)
def test_plan(timetable: Timetable, day: date, ends: str, window: str, journeys: list[str]) -> None:
    origin, destination = ends.split()
    assert [told(each) for each in plan(timetable, day, origin, destination, Window.parse(window))] == journeys


def test_a_journey_may_arrive_after_the_window(timetable: Timetable) -> None:
    (journey,) = plan(timetable, MONDAY, "havnoy", "asgard", Window.parse("09:00-09:05"))
    assert (journey.origin.code, journey.destination.code) == ("HAV", "ÅSG")
    assert (journey.departure, journey.arrival) == (540, 610)


def test_a_tight_change_is_missed(timetable: Timetable, network: Network) -> None:
    connections = [each for each in timetable.connections(MONDAY) if each.trip.number in (71, 53)]
    rides = scan(connections, network.station("HAV"), 0)
    assert network.station("KÆR") not in rides
    assert rides[network.station("ÅSG")].trip.number == 71


def test_a_journey_ends_elsewhere(timetable: Timetable, network: Network) -> None:
    vik = network.station("VIK")
    assert earliest_arrival(timetable, MONDAY, vik, vik, 0) is None
    with pytest.raises(ValueError, match="from Vik ends where it starts"):
        plan(timetable, MONDAY, "Vik", "vik", Window(0, 1))


def test_plan_wants_stations_that_exist(timetable: Timetable) -> None:
    with pytest.raises(UnknownStation, match="did you mean Tinnåsen"):
        plan(timetable, MONDAY, "Vik", "Tinåsen", Window(0, 1))


def test_beating(timetable: Timetable, network: Network) -> None:
    hav, asg = network.station("HAV"), network.station("ÅSG")
    slow = earliest_arrival(timetable, MONDAY, hav, asg, 360)
    fast = earliest_arrival(timetable, MONDAY, hav, asg, 420)
    assert slow is not None
    assert fast is not None
    assert not beats(slow, slow)
    assert not beats(slow, fast)
    assert undominated([fast, slow]) == [slow, fast]
