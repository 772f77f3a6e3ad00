"""The days on which trains run. On a public holiday they run as on a Sunday."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache

DAY_NAMES = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
SUNDAY = 6


class CalendarError(ValueError):
    """Days that can't be understood."""


def easter(year: int) -> date:
    """Return Easter Sunday of a Gregorian year, by the anonymous algorithm of 1876 (Meeus, chapter 8)."""
    golden = year % 19
    century, of_century = divmod(year, 100)
    leap, rest = divmod(century, 4)
    moon = (19 * golden + century - leap - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * rest + 2 * (of_century // 4) - moon - of_century % 4) % 7
    late = (golden + 11 * moon + 22 * weekday) // 451
    month, day = divmod(moon + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


@cache
def holidays(year: int) -> frozenset[date]:
    """Return the public holidays of a year: five fixed ones, and five that move with Easter."""
    fixed = [(1, 1), (5, 1), (5, 17), (12, 25), (12, 26)]
    after_easter = [-3, -2, 1, 39, 50]
    sunday = easter(year)
    return frozenset(
        [date(year, month, day) for month, day in fixed] + [sunday + timedelta(days=days) for days in after_easter]
    )


def service_weekday(day: date) -> int:
    """Return the weekday whose timetable holds, 0 for Monday to 6 for Sunday and every public holiday."""
    return SUNDAY if day in holidays(day.year) else day.weekday()


def parse_days(text: str) -> frozenset[int]:
    """Read days such as `Mo-Fr,Su` as weekday numbers; a range may run over the week's end, as in `Sa-Mo`."""
    days: set[int] = set()
    for part in text.replace("–", "-").split(","):
        names = [name.strip().capitalize() for name in part.split("-")]
        if len(names) > 2 or not set(names) <= set(DAY_NAMES):
            raise CalendarError(f"not a weekday or range: [{part}]; weekdays are {', '.join(DAY_NAMES)}")
        start, end = DAY_NAMES.index(names[0]), DAY_NAMES.index(names[-1])
        days.update((start + step) % 7 for step in range((end - start) % 7 + 1))
    return frozenset(days)


@dataclass(frozen=True, slots=True)
class Calendar:
    """Weekdays within a season, with single days added and removed; a removal outweighs all else."""

    days: frozenset[int]
    first: date = date.min
    last: date = date.max
    added: frozenset[date] = field(default=frozenset())
    removed: frozenset[date] = field(default=frozenset())

    def runs_on(self, day: date) -> bool:
        """Tell whether trains of this calendar start on that day."""
        if day in self.removed:
            return False
        if day in self.added:
            return True
        return self.first <= day <= self.last and service_weekday(day) in self.days


def parse_calendar(fields: Sequence[str]) -> Calendar:
    """Read `Mo-Fr from 2024-01-08 until 2024-06-14 not 2024-05-16 also 2024-06-15`; the words in any order."""
    if not fields:
        raise CalendarError("a calendar needs its days")
    bounds = {"from": date.min, "until": date.max}
    exceptions: dict[str, set[date]] = {"also": set(), "not": set()}
    if len(fields) % 2 == 0:
        raise CalendarError(f"no date follows [{fields[-1]}]")
    for word, text in zip(fields[1::2], fields[2::2], strict=True):
        try:
            day = date.fromisoformat(text)
        except ValueError:
            raise CalendarError(f"not a date: [{text}]") from None
        if word in bounds:
            bounds[word] = day
        elif word in exceptions:
            exceptions[word].add(day)
        else:
            raise CalendarError(f"unknown word [{word}]; they are from, until, also, not")
    return Calendar(
        parse_days(fields[0]),
        bounds["from"],
        bounds["until"],
        frozenset(exceptions["also"]),
        frozenset(exceptions["not"]),
    )
