from datetime import date

import pytest

from sporvei.boards import departure_board, itinerary, overview, table, ticket, via
from sporvei.clock import Window
from sporvei.fares import Tariff, Traveller
from sporvei.network import Network, parse_network
from sporvei.planner import plan
from sporvei.seats import Reservations, SeatError
from sporvei.timetable import Timetable, parse_timetable

MONDAY = date(2024, 6, 10)
SATURDAY = date(2024, 6, 15)


def show(text: str) -> list[str]:
    """Split a text into lines, with plain spaces for no-break ones."""
    return text.replace("\xa0", " ").splitlines()


def test_a_table_is_aligned_by_what_is_seen() -> None:
    rows = [("Vik", "7"), ("東京", "12"), ("A\u030as", "[/x]")]
    assert table(rows, "<>").splitlines() == ["Vik      7", "東京    12", "A\u030as    [/x]"]


@pytest.mark.parametrize(
    ("code", "expected"), [("HAV", "via Bruheim, Elvestø …"), ("MJØ", "via Tinnåsen"), ("TIN", "")]
)
def test_via(timetable: Timetable, network: Network, code: str, expected: str) -> None:
    connection = timetable.departures(network.station(code), MONDAY, Window.parse("06:00-07:00"))[0]
    assert via(connection) == expected


def test_departure_board(timetable: Timetable, network: Network) -> None:
    board = departure_board(timetable, network.station("ELV"), MONDAY, Window.parse("07:20-07:59"))
    assert show(board) == [
        "Elvestø",
        "07:22  L1  Åsgård      via Skåldal, Mjølfjell …",
        "07:30  L2  Kærvik-Øst  via Vik",
        "07:30  X1  Åsgård      via Mjølfjell",
    ]


def test_a_board_explains_its_marks(timetable: Timetable, network: Network) -> None:
    board = departure_board(timetable, network.station("SKA"), MONDAY, Window.parse("06:00-23:00"), limit=1)
    assert show(board) == ["Skåldal", "06:33  L1  Åsgård  via Mjølfjell, Tinnåsen  [x]", "[x] stops on request"]


def test_an_empty_board(timetable: Timetable, network: Network) -> None:
    assert departure_board(timetable, network.station("KÆR"), MONDAY, Window(0, 1439)) == "Kærvik-Øst: no departures"


def test_itinerary(timetable: Timetable) -> None:
    (journey,) = plan(timetable, MONDAY, "skåldal", "åsgård", Window.parse("06:00-07:00"))
    assert show(itinerary(journey)) == ["L1 11 to Åsgård", "06:33  Skåldal  [x]", "07:10  Åsgård"]


def test_an_itinerary_tells_the_time_to_change(timetable: Timetable) -> None:
    (journey,) = plan(timetable, MONDAY, "BRU", "VIK", Window.parse("06:00-07:00"))
    assert show(itinerary(journey)) == [
        "L1 11 to Åsgård",
        "06:10  Bruheim",
        "06:20  Elvestø",
        "  change at Elvestø, 10m",
        "L2 51 to Kærvik-Øst",
        "06:30  Elvestø",
        "06:36  Vik",
    ]


@pytest.mark.parametrize(
    ("day", "ends", "window", "expected"),
    [
        (
            MONDAY,
            "HAV ÅSG",
            "06:00-07:30",
            ["06:00–07:10  1h10  direct  kr 143,–", "07:15–08:05   50m  direct  kr 172,–"],
        ),
        (MONDAY, "HAV VIK", "06:00-06:30", ["06:00–06:36  36m  1×  kr 73,–"]),
        (SATURDAY, "ELV MJØ", "08:00-09:00", ["08:23–08:50  27m  direct  kr 73,–"]),
        (MONDAY, "ELV MJØ", "00:00-00:30", ["00:02–00:27  25m  direct  kr 73,–"]),
        (SATURDAY, "HAV MJØ", "23:00-23:59", ["23:40–00:27⁺¹  47m  direct  kr 108,–"]),
        (MONDAY, "KÆR VIK", "00:00-23:59", ["no journeys"]),
    ],
)
def test_overview(timetable: Timetable, day: date, ends: str, window: str, expected: list[str]) -> None:
    origin, destination = ends.split()
    assert show(overview(timetable, Tariff(), day, origin, destination, Window.parse(window))) == expected


def test_ticket(timetable: Timetable) -> None:
    journey = plan(timetable, SATURDAY, "HAV", "ÅSG", Window.parse("07:00-09:00"))[0]
    party = [Traveller(41), Traveller(38, "student"), Traveller(9), Traveller(4)]
    assert show(ticket(timetable, Tariff(), Reservations(), SATURDAY, journey, party)) == [
        "Havnøy → Åsgård, 2024-06-15",
        "L1 31 to Åsgård",
        "08:00  Havnøy",
        "09:15  Åsgård",
        "31: 1A 1B 1C 1D",
        "2 adult, 1 child, 1 infant: kr 301,–",
    ]


def test_no_ticket_without_seats(timetable: Timetable) -> None:
    journey = plan(timetable, SATURDAY, "HAV", "ÅSG", Window.parse("07:00-09:00"))[0]
    with pytest.raises(SeatError, match="no 5 seats"):
        ticket(timetable, Tariff(), Reservations(rows=1), SATURDAY, journey, [Traveller(30)] * 5)


def test_a_railway_from_its_notation_to_the_traveller() -> None:
    network = parse_network(
        """
        station NOR "Nørdal" zone 1
        station SØR "Sørdal" zone 2 change 3
        station ØYA "Øya" zone 2
        track NOR SØR 12.0
        track SØR ØYA 3.5
        """
    )
    timetable = parse_timetable(
        network,
        """
        calendar schooldays Mo-Fr not 2024-06-11
        trip 1 S1 schooldays
          NOR 08:00
          SØR 08:14
        trip 2 S2 schooldays
          SØR 08:16
          ØYA 08:21 [/x]
        repeat every 15 until 08:46
        """,
    )
    window = Window.parse("07:30-09:30")
    assert show(overview(timetable, Tariff(), MONDAY, "nordal", "oya", window)) == ["08:00–08:36  36m  1×  kr 88,–"]
    assert overview(timetable, Tariff(), date(2024, 6, 11), "nordal", "oya", window) == "no journeys"
