from datetime import date

import pytest

from sporvei.clock import Window
from sporvei.fares import FareError, Tariff, Traveller, format_money, percent_of, quote, quote_party, round_to
from sporvei.planner import Journey, plan
from sporvei.timetable import Timetable

MONDAY = date(2024, 6, 10)
SATURDAY = date(2024, 6, 15)
HOLIDAY = date(2024, 5, 17)


def first(timetable: Timetable, day: date, ends: str, window: str = "00:30-23:59") -> Journey:
    origin, destination = ends.split()
    return plan(timetable, day, origin, destination, Window.parse(window))[0]


@pytest.mark.parametrize(("amount", "step", "rounded"), [(149, 100, 100), (150, 100, 200), (1230, 500, 1000)])
def test_round_to(amount: int, step: int, rounded: int) -> None:
    assert round_to(amount, step) == rounded


@pytest.mark.parametrize(("amount", "percent", "part"), [(333, 10, 33), (335, 10, 34)])
def test_percent_of(amount: int, percent: int, part: int) -> None:
    assert percent_of(amount, percent) == part


@pytest.mark.parametrize(
    ("ore", "text"),
    [
        (123450, "kr\xa01\xa0234,50"),
        (-9900, "−kr\xa099,–"),
    ],
)
def test_format_money(ore: int, text: str) -> None:
    assert format_money(ore) == text


@pytest.mark.parametrize(
    ("age", "card", "category", "share"),
    [
        (5, "", "infant", 0),
        (6, "", "child", 50),
        (20, "student", "adult", 60),
        (40, "commuter", "adult", 75),
        (67, "commuter", "senior", 50),
    ],
)
def test_categories(age: int, card: str, category: str, share: int) -> None:
    traveller = Traveller(age, card)
    assert (traveller.category(), traveller.share()) == (category, share)


def test_cards_are_known() -> None:
    with pytest.raises(FareError, match=r"unknown card \[golden\]"):
        Traveller(30, "golden").share()


def test_an_age_is_checked_whenever_it_is_set() -> None:
    traveller = Traveller(15)
    traveller.age += 1
    assert traveller.category() == "adult"
    with pytest.raises(FareError, match=r"\[-1\]"):
        traveller.age = -1
    assert traveller.age == 16


@pytest.mark.parametrize(
    ("day", "minute", "peak"),
    [
        (MONDAY, 540, False),
        (SATURDAY, 420, False),
        (HOLIDAY, 420, False),
    ],
)
def test_peak(day: date, minute: int, peak: bool) -> None:
    assert Tariff().is_peak(day, minute) is peak


@pytest.mark.parametrize(
    ("day", "ends", "fare"),
    [
        (MONDAY, "HAV BRU", 3000 + 2 * 800),
        (MONDAY, "HAV KÆR", 3000 + 7 * 800 + 2 * 1100),
        (MONDAY, "HAV MJØ", 3000 + 7 * 800 + 2 * 1100),
        (MONDAY, "HAV ÅSG", 3000 + 10 * 800 + 3 * 1100),
        (SATURDAY, "ELV ÅSG", 3000 + 7 * 800 + 2 * 1100),
        (HOLIDAY, "ELV MJØ", 3000 + 4 * 800 + 1100),
    ],
)
def test_full_fare(timetable: Timetable, day: date, ends: str, fare: int) -> None:
    assert Tariff().full_fare(timetable.network, first(timetable, day, ends), day) == fare


def test_the_peak_is_dearer(timetable: Timetable) -> None:
    journey = first(timetable, MONDAY, "HAV ÅSG", "07:00-08:00")
    assert Tariff().full_fare(timetable.network, journey, MONDAY) == 14300 + 2860


def test_each_fare_is_rounded(timetable: Timetable) -> None:
    journey = first(timetable, SATURDAY, "HAV ÅSG")
    student = quote(Tariff(rounding=500), timetable.network, journey, SATURDAY, Traveller(22, "student"))
    assert student == 8500


@pytest.mark.parametrize(
    ("ages", "price"),
    [([30, 30], 28600), ([30, 8, 3], 14300 + 7200), ([70, 30, 30, 30, 2], 50100), ([30] * 5, 64500), ([], 0)],
    ids=str,
)
def test_parties(timetable: Timetable, ages: list[int], price: int) -> None:
    journey = first(timetable, SATURDAY, "HAV ÅSG")
    party = [Traveller(age) for age in ages]
    assert quote_party(Tariff(), timetable.network, journey, SATURDAY, party) == price
