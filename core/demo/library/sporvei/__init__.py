"""Timetables, journeys, fares and seats of a small railway."""

from sporvei.network import Network, Station, parse_network
from sporvei.planner import Journey, plan
from sporvei.timetable import Timetable, Trip, parse_timetable

__all__ = [
    "Journey",
    "Network",
    "Station",
    "Timetable",
    "Trip",
    "parse_network",
    "parse_timetable",
    "plan",
]
