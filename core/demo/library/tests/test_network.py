import pytest

from sporvei.network import DEFAULT_CHANGE, Network, Station, UnknownStation, parse_network
from sporvei.notation import NotationError


@pytest.mark.parametrize("name", ["MJØ", "Mjølfjell", " MJOLFJELL "])
def test_stations_are_found_however_typed(network: Network, name: str) -> None:
    assert network.station(name).code == "MJØ"


def test_an_unknown_station_gets_a_hint(network: Network) -> None:
    with pytest.raises(UnknownStation, match=r"^no station \[Asgaard\]; did you mean Åsgård\?$"):
        network.station("Asgaard")


def test_far_off_names_get_no_hint(network: Network) -> None:
    with pytest.raises(UnknownStation, match=r"^no station \[list\[int\]\]$"):
        network.station("list[int]")


def test_codes_are_used_once(network: Network) -> None:
    with pytest.raises(ValueError, match=r"\[VIK\] is taken by Vik"):
        network.add_station(Station("VIK", "Viken", 9))


def test_the_time_to_change_has_a_default(network: Network) -> None:
    assert network.station("Skåldal").change == DEFAULT_CHANGE
    assert network.station("Vik").change == 2


def test_the_shorter_of_parallel_tracks_counts(network: Network) -> None:
    for metres in (7000, 5800, 6100):
        network.add_track("Havnøy", "Bruheim", metres)
    assert network.distance(network.station("HAV"), network.station("BRU")) == 5800


def test_no_track_leads_back_to_its_own_station(network: Network) -> None:
    with pytest.raises(ValueError, match="no track of 1000 m can join"):
        network.add_track("HAV", "Havnøy", 1000)


@pytest.mark.parametrize(
    ("ends", "metres"),
    [("ELV KÆR", 16600), ("ÅSG MJØ", 15100), ("ÅSG ELV", 33500)],
)
def test_distance(network: Network, ends: str, metres: int) -> None:
    origin, destination = map(network.station, ends.split())
    assert network.distance(origin, destination) == metres


def test_a_route_avoids_the_longer_side_of_the_loop(network: Network) -> None:
    way = network.route(network.station("MJØ"), network.station("ELV"))
    assert [station.code for station in way] == ["MJØ", "SKA", "ELV"]


def test_no_way(network: Network) -> None:
    network.add_station(Station("ØYA", "Øya", 5))
    with pytest.raises(ValueError, match="no tracks lead from Vik to Øya"):
        network.route(network.station("VIK"), network.station("ØYA"))


@pytest.mark.parametrize(("ends", "zones"), [("HAV ÅSG", [1, 2, 3, 4]), ("KÆR VIK", [3, 2])])
def test_zones(network: Network, ends: str, zones: list[int]) -> None:
    origin, destination = map(network.station, ends.split())
    assert network.zones(origin, destination) == zones


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bridge A B 1", r"line 1: neither a station nor a track: \['bridge'"),
        ("\nstation A Aa zone x", "line 2: invalid literal"),
        ("station A Aa zone 1\ntrack A Bb 2", r"line 2: no station \[Bb\]"),
    ],
)
def test_not_a_network(text: str, complaint: str) -> None:
    with pytest.raises(NotationError, match=complaint):
        parse_network(text)
