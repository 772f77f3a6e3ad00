"""What passengers read: departure boards, itineraries and tickets, as plain text."""

from collections.abc import Sequence
from datetime import date

from sporvei.clock import Window, format_duration, format_time
from sporvei.fares import Tariff, Traveller, format_money, quote, quote_party
from sporvei.network import Station
from sporvei.notation import cell_width, pad
from sporvei.planner import Journey, plan
from sporvei.seats import Reservations
from sporvei.timetable import REQUEST, SET_DOWN, Connection, Timetable

LEGEND = {REQUEST: "stops on request", SET_DOWN: "sets down only"}


def table(rows: Sequence[Sequence[str]], aligns: str) -> str:
    """Lay rows out in columns two spaces apart; `aligns` has `<` or `>` for each column."""
    widths = [max(cell_width(cell) for cell in column) for column in zip(*rows, strict=True)]
    laid = [
        "  ".join(pad(cell, width, align) for cell, width, align in zip(row, widths, aligns, strict=True))
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in laid)


def via(connection: Connection, limit: int = 2) -> str:
    """Name the next stations before the last one, as in `via Bruheim, Elvestø …`; empty if there are none."""
    calls = connection.trip.calls
    between = calls[calls.index(connection.leaves) + 1 : -1]
    if not between:
        return ""
    more = " …" if len(between) > limit else ""
    return "via " + ", ".join(call.station.name for call in between[:limit]) + more


def departure_board(timetable: Timetable, station: Station, day: date, window: Window, limit: int = 8) -> str:
    """Show the next departures from a station."""
    leaving = timetable.departures(station, day, window)[:limit]
    if not leaving:
        return f"{station.name}: no departures"
    rows = [
        (format_time(each.leaves.departure), each.trip.line, each.trip.destination.name, via(each), each.leaves.mark)
        for each in leaving
    ]
    legend = [f"{mark} {meaning}" for mark, meaning in LEGEND.items() if any(row[-1] == mark for row in rows)]
    return "\n".join([station.name, table(rows, "<<<<<"), *legend])


def itinerary(journey: Journey) -> str:
    """Show a journey leg by leg, with the time there is to change trains."""
    shown: list[str] = []
    for before, leg in zip((None, *journey.legs), journey.legs, strict=False):
        if before is not None:
            wait = leg.board.departure - before.alight.arrival
            shown.append(f"  change at {leg.board.station.name}, {format_duration(wait)}")
        rows = [
            (format_time(leg.board.departure), leg.board.station.name, leg.board.mark),
            (format_time(leg.alight.arrival), leg.alight.station.name, leg.alight.mark),
        ]
        shown.append(f"{leg.trip.line} {leg.trip.number} to {leg.trip.destination.name}\n{table(rows, '><<')}")
    return "\n".join(shown)


def overview(timetable: Timetable, tariff: Tariff, day: date, origin: str, destination: str, window: Window) -> str:
    """Show the journeys between two stations, one a line, with duration, changes and an adult's fare."""
    adult = Traveller(30)
    rows = [
        (
            f"{format_time(journey.departure)}–{format_time(journey.arrival)}",
            format_duration(journey.arrival - journey.departure),
            f"{len(journey.legs) - 1}×" if len(journey.legs) > 1 else "direct",
            format_money(quote(tariff, timetable.network, journey, day, adult)),
        )
        for journey in plan(timetable, day, origin, destination, window)
    ]
    return table(rows, "<>>>") if rows else "no journeys"


def ticket(
    timetable: Timetable,
    tariff: Tariff,
    reservations: Reservations,
    day: date,
    journey: Journey,
    party: Sequence[Traveller],
) -> str:
    """Reserve seats for a party and print its ticket."""
    seats = reservations.book(journey, len(party))
    price = quote_party(tariff, timetable.network, journey, day, party)
    kinds = [traveller.category() for traveller in party]
    people = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    heading = f"{journey.origin.name} → {journey.destination.name}, {day.isoformat()}"
    places = [f"{leg.trip.number}: {' '.join(block)}" for leg, block in zip(journey.legs, seats, strict=True)]
    return "\n".join([heading, itinerary(journey), *places, f"{people}: {format_money(price)}"])
