from datetime import date

import pytest

from sporvei.clock import Window
from sporvei.network import Network
from sporvei.planner import plan
from sporvei.seats import Reservations, SeatError, SeatMap
from sporvei.timetable import Timetable

MONDAY = date(2024, 6, 10)


@pytest.fixture
def seat_map(timetable: Timetable) -> SeatMap:
    """Return three rows on trip 11, from Havnøy to Åsgård."""
    return SeatMap(timetable.trips[0], rows=3)


@pytest.mark.parametrize(
    ("sizes", "block"),
    [
        ([3, 2, 1], ["1D"]),
        ([3, 3, 2], ["3A", "3B"]),
        ([3, 3, 4], ["3A", "3B", "3C", "3D"]),
        ([3, 2, 2], ["2C", "2D"]),
        ([6], ["1A", "1B", "1C", "1D", "2A", "2B"]),
        ([3, 2, 3, 3], ["2C", "2D", "1D"]),
    ],
    ids=str,
)
def test_parties_sit_together_in_the_fullest_row_that_holds_them(
    seat_map: SeatMap, network: Network, sizes: list[int], block: list[str]
) -> None:
    ends = network.station("HAV"), network.station("ÅSG")
    assert [seat_map.reserve(size, *ends) for size in sizes][-1] == block


def test_a_seat_serves_one_passenger_after_the_other(seat_map: SeatMap, network: Network) -> None:
    hav, elv, mjo = (network.station(code) for code in ("HAV", "ELV", "MJØ"))
    assert seat_map.reserve(12, hav, elv) == seat_map.reserve(12, elv, mjo)
    with pytest.raises(SeatError, match="trip 11 has no 1 seats from Bruheim to Skåldal"):
        seat_map.reserve(1, network.station("BRU"), network.station("SKA"))


def test_released_seats_are_free_again(seat_map: SeatMap, network: Network) -> None:
    hav, elv, mjo = (network.station(code) for code in ("HAV", "ELV", "MJØ"))
    seat_map.reserve(12, hav, mjo)
    seat_map.release(["2B", "3D", "9A"], hav, elv)
    assert seat_map.reserve(2, hav, elv) == ["2B", "3D"]
    with pytest.raises(SeatError):
        seat_map.reserve(1, elv, mjo)


def test_nobody_needs_no_seat(seat_map: SeatMap, network: Network) -> None:
    with pytest.raises(SeatError, match=r"not \[0\]"):
        seat_map.reserve(0, network.station("HAV"), network.station("ÅSG"))


def test_trains_go_one_way(seat_map: SeatMap, network: Network) -> None:
    with pytest.raises(SeatError, match="trip 11 does not go from Åsgård to Havnøy"):
        seat_map.reserve(1, network.station("ÅSG"), network.station("HAV"))


def test_seats_are_booked_on_every_leg(timetable: Timetable) -> None:
    journey = plan(timetable, MONDAY, "HAV", "KÆR", Window.parse("06:00-06:30"))[0]
    reservations = Reservations(rows=2)
    assert reservations.book(journey, 3) == [["1A", "1B", "1C"], ["1A", "1B", "1C"]]
    assert reservations.book(journey, 2) == [["2A", "2B"], ["2A", "2B"]]


def test_a_journey_is_booked_whole_or_not_at_all(timetable: Timetable) -> None:
    reservations = Reservations(rows=1)
    branch = plan(timetable, MONDAY, "ELV", "KÆR", Window.parse("06:00-06:30"))[0]
    through = plan(timetable, MONDAY, "HAV", "KÆR", Window.parse("06:00-06:30"))[0]
    reservations.book(branch, 3)
    with pytest.raises(SeatError, match="trip 51 has no 2 seats"):
        reservations.book(through, 2)
    assert reservations.book(through, 1) == [["1A"], ["1D"]]
