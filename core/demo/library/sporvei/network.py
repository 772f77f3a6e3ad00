"""Stations and the tracks between them."""

import heapq
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise

from sporvei.notation import NotationError, fold, lines, numbered

DEFAULT_CHANGE = 4


class UnknownStation(LookupError):
    """A name that no station bears; the message suggests some that do exist."""


@dataclass(frozen=True, slots=True)
class Station:
    """A place where trains call; `change` is the time in minutes that it takes to change trains there."""

    code: str
    name: str
    zone: int
    change: int = DEFAULT_CHANGE


@dataclass(slots=True)
class Network:
    """Stations by their code, and the metres of track from each to its neighbours, by their codes."""

    stations: dict[str, Station] = field(default_factory=dict)
    tracks: dict[str, dict[str, int]] = field(default_factory=dict)

    def add_station(self, station: Station) -> None:
        """Add a station whose code is new."""
        if station.code in self.stations:
            raise ValueError(f"the code [{station.code}] is taken by {self.stations[station.code].name}")
        self.stations[station.code] = station
        self.tracks[station.code] = {}

    def add_track(self, one: str, other: str, metres: int) -> None:
        """Join two stations, named in any way that `station` knows; the shorter of two parallel tracks counts."""
        a, b = self.station(one).code, self.station(other).code
        if a == b or metres <= 0:
            raise ValueError(f"no track of {metres} m can join [{one}] and [{other}]")
        length = min(metres, self.tracks[a].get(b, metres))
        self.tracks[a][b] = self.tracks[b][a] = length

    def station(self, name: str) -> Station:
        """Return the station of that code or name, however it is typed, or raise `UnknownStation`."""
        if name in self.stations:
            return self.stations[name]
        wanted = fold(name)
        for station in self.stations.values():
            if wanted in (fold(station.code), fold(station.name)):
                return station
        names = {fold(station.name): station.name for station in self.stations.values()}
        likely = [names[folded] for folded in get_close_matches(wanted, names, n=2)]
        hint = f"; did you mean {' or '.join(likely)}?" if likely else ""
        raise UnknownStation(f"no station [{name}]{hint}")

    def reach(self, origin: Station) -> dict[Station, tuple[int, Station]]:
        """Find the shortest way to every station that tracks lead to (Dijkstra).

        Returns, for each of them, its distance in metres and the station before it on the way;
        the origin is at distance 0 and comes before itself.
        """
        best = {origin: (0, origin)}
        queue = [(0, origin.code)]
        while queue:
            metres, code = heapq.heappop(queue)
            here = self.stations[code]
            if metres > best[here][0]:
                continue
            for neighbour, length in self.tracks[code].items():
                there = self.stations[neighbour]
                total = metres + length
                if there not in best or total < best[there][0]:
                    best[there] = (total, here)
                    heapq.heappush(queue, (total, there.code))
        return best

    def route(self, origin: Station, destination: Station) -> list[Station]:
        """Return the stations of the shortest way, both ends included; `ValueError` if there is none."""
        best = self.reach(origin)
        if destination not in best:
            raise ValueError(f"no tracks lead from {origin.name} to {destination.name}")
        way = [destination]
        while way[-1] != origin:
            way.append(best[way[-1]][1])
        return way[::-1]

    def distance(self, origin: Station, destination: Station) -> int:
        """Return the metres of the shortest way; `ValueError` if there is none."""
        way = self.route(origin, destination)
        return sum(self.tracks[a.code][b.code] for a, b in pairwise(way))

    def zones(self, origin: Station, destination: Station) -> list[int]:
        """Return the fare zones that the shortest way touches, in the order of their first station."""
        return list(dict.fromkeys(station.zone for station in self.route(origin, destination)))


@numbered
def _read_line(network: Network, fields: list[str]) -> None:
    match fields:
        case ["station", code, name, "zone", zone]:
            network.add_station(Station(code, name, int(zone)))
        case ["station", code, name, "zone", zone, "change", change]:
            network.add_station(Station(code, name, int(zone), int(change)))
        case ["track", one, other, kilometres]:
            network.add_track(one, other, round(float(kilometres) * 1000))
        case _:
            raise NotationError(f"neither a station nor a track: {fields}")


def parse_network(text: str) -> Network:
    """Read a network of lines such as `station ÅSG "Åsgård" zone 4 change 3` and `track TIN ÅSG 9.8`."""
    network = Network()
    for number, fields in lines(text):
        _read_line(network, number, fields)
    return network
