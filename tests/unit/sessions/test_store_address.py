"""The address of a team's store never contains a password; only local addresses may omit TLS."""

from __future__ import annotations

import pytest

from gistpoint.sessions.team.address import TeamStoreError, parse_address


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql:///team", None),
        ("postgresql://localhost/team", None),
        ("postgresql://me@[::1]:5433/team", None),
        ("postgresql:///team?host=/var/run/postgresql", None),
        ("postgresql://db.example/team", "verify-full"),
        ("postgresql://127.0.0.1.evil.example/team", "verify-full"),
        ("postgresql:///team?host=localhost,db.example", "verify-full"),
        ("postgresql:///team?host=/tmp,db.example", "verify-full"),
        ("postgresql://localhost/team?service=elsewhere", "verify-full"),
    ],
)
def test_tls_is_asked_of_every_other_machine(url: str, mode: str | None) -> None:
    assert parse_address(url).parameters.get("sslmode") == mode


@pytest.mark.parametrize(
    ("name", "value"), [("PGHOST", "db.example"), ("PGHOSTADDR", "10.0.0.1"), ("PGSERVICE", "x")]
)
def test_the_environment_does_not_lead_elsewhere_without_tls(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert parse_address("postgresql:///team").parameters["sslmode"] == "verify-full"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@db.example/team",
        "postgresql://db.example/team?password=secret",
        "postgresql://db.example/team?passfile=secret",
        "postgresql://db.example/team?sslmode=require",
        "postgresql:///team?service=x&sslmode=prefer",
        "postgresql://db.example/team?options=-csecret",
        "postgresql:///team?host=db.example&port=secret",
        "postgresql://db.example",
        "mysql://db.example/team",
        "postgresql://db.example:secret/team",
        "postgresql://db.example/team%00secret",
        "postgresql://db.example/team?sslrootcert=secret%0a",
        "postgresql://db%20secret/team",
        "postgresql://50%secret@db.example/team",
    ],
)
def test_what_is_unsafe_or_no_address_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(TeamStoreError) as refused:
        parse_address(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["postgresql://me@db.example:5433/team", "postgresql:///team?host=%2Fvar%2Frun"]
)
def test_an_address_is_read_again_as_it_was(url: str) -> None:
    address = parse_address(url)
    assert parse_address(address.url) == address


@pytest.mark.parametrize(
    ("url", "same", "shown", "for_others"),
    [
        (
            "postgresql:///?host=db.example&port=5433&user=me&dbname=team",
            "postgresql://me@db.example:5433/team",
            "postgresql://me@db.example:5433/team",
            "postgresql://USER@db.example:5433/team",
        ),
        (
            "postgresql://me@127.0.0.1:5433/team?sslkey=me.key",
            "postgresql://me@127.0.0.1:5433/team?sslkey=me.key",
            "postgresql://me@127.0.0.1:5433/team",
            "postgresql://USER@HOST:5433/team",
        ),
        (
            "postgresql://me@/team?host=%2Frun%2Fpg&sslrootcert=ca.crt",
            "postgresql://me@/team?host=/run/pg&sslrootcert=ca.crt",
            "postgresql://me@/team?host=/run/pg",
            "postgresql://USER@HOST/team?sslrootcert=ca.crt",
        ),
        (
            "postgresql:///?service=lab",
            "postgresql:///?service=lab",
            "postgresql:///?service=lab",
            "postgresql:///?service=lab",
        ),
    ],
)
def test_an_address_says_where_it_is_and_tells_others_what_is_theirs(
    url: str, same: str, shown: str, for_others: str
) -> None:
    address = parse_address(url)
    assert (address.url, str(address), address.for_others) == (same, shown, for_others)
