"""Durations, times and large numbers in human-readable form."""

from __future__ import annotations

from datetime import UTC, datetime


def whole_seconds(ms: float) -> int:
    """Return the number of completed seconds in a duration in milliseconds; 0 if it is negative.

    All durations are rounded down like this, as a running clock must be. Otherwise, a list would show a
    different time from the screen of the same attempt.
    """
    return max(0, round(ms) // 1000)


def duration(ms: float) -> str:
    """Return a duration in milliseconds as `m:ss`, or `h:mm:ss` from one hour up; `0:00` if negative."""
    seconds = whole_seconds(ms)
    hours, minutes, rest = seconds // 3600, seconds // 60 % 60, seconds % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def thousands(number: float, *, exact: bool = False) -> str:
    """Return a number as an integer, in thousands (`12k`) or in millions (`1.2M`).

    The number is an integer up to 500, or below 1,000 with `exact`, which also adds a decimal to thousands.
    """
    least_thousand, least_million = (1000, 999_950) if exact else (501, 999_500)
    if number < least_thousand:
        return f"{number:.0f}"
    if number < least_million:
        return f"{number / 1e3:,.1f}k" if exact else f"{number / 1e3:,.0f}k"
    is_long = number >= 1e8 and not exact
    return f"{number / 1e6:,.0f}M" if is_long else f"{number / 1e6:,.1f}M"


def percent_words(share: float) -> str:
    """Return a share as a whole percentage; `0%` and `100%` only if it is exactly 0 or 1."""
    words = f"{100 * share:.0f}%"
    if words == "0%" and share > 0:
        return "less than 1%"
    return "more than 99%" if words == "100%" and share < 1 else words


def stamp(utc_ms: int) -> str:
    """Return a time with its zone, in local time: `2026-01-31 09:05 CET`; empty for 0."""
    return _local(utc_ms).strftime("%Y-%m-%d %H:%M %Z") if utc_ms else ""


def moment(utc_ms: int, *, now_ms: int | None = None) -> str:
    """Return a date and time in local time, without the year if `now_ms` is in the same year; empty for 0."""
    if not utc_ms:
        return ""
    at = _local(utc_ms)
    return at.strftime(
        "%m-%d %H:%M" if now_ms is not None and _local(now_ms).year == at.year else "%Y-%m-%d %H:%M"
    )


def when(utc_ms: int, now_ms: int) -> str:
    """Return a short local time, such as `today 09:05`, `yesterday 09:05` or `31 Jan 09:05`.

    A time in another year is given as `31 Jan 2025`, and 0 as `–`.
    """
    if not utc_ms:
        return "–"
    at, now = _local(utc_ms), _local(now_ms)
    days = (now.date() - at.date()).days
    if days in (0, 1):
        return f"{'yesterday' if days else 'today'} {at:%H:%M}"
    return f"{at.day} {at:%b %H:%M}" if at.year == now.year else f"{at.day} {at:%b %Y}"


def time_of_day(utc_ms: int) -> str:
    """Return a time in local time without its day: `09:05:00`."""
    return _local(utc_ms).strftime("%H:%M:%S")


def utc_day(utc_ms: int) -> str:
    """Return the day of a time in UTC: `2026-01-31`."""
    return utc_datetime(utc_ms).strftime("%Y-%m-%d")


def utc_minute(utc_ms: int) -> str:
    """Return a time in UTC: `2026-01-31 09:05 UTC`."""
    return utc_datetime(utc_ms).strftime("%Y-%m-%d %H:%M UTC")


_LATEST_MS = 253_000_000_000_000
"""A time in the year 9987; later ones exceed the calendar in some time zone, or after an addition."""


def utc_datetime(utc_ms: int) -> datetime:
    """Return a time in milliseconds since 1970 as a `datetime` in UTC, limited to the range of the calendar.

    Times come from files that others wrote, and `datetime` raises for those outside of this range.
    """
    return datetime.fromtimestamp(min(max(utc_ms, 0), _LATEST_MS) / 1000, UTC)


def _local(utc_ms: int) -> datetime:
    return utc_datetime(utc_ms).astimezone()
