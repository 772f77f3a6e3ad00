"""Messages of PostgreSQL's library when a server refuses a user, and gistpoint's messages for them."""

from __future__ import annotations

import pytest

from gistpoint.sessions.team.address import parse_address
from gistpoint.sessions.team.refusals import REFUSALS, unreachable

ADDRESS = parse_address("postgresql://ada@db.example.org/shop")
AT = 'connection to server at "10.0.0.1", port 5432 failed: '
SAID = {
    AT + 'FATAL:  database "shop" does not exist': "createdb --owner OWNER shop",
    AT + 'FATAL:  role "ada" does not exist': "createuser --pwprompt ada",
    AT + 'FATAL:  role "gistpoint_worker" is not permitted to log in': "name your own user",
    AT + 'FATAL:  password authentication failed for user "ada"': "HOST:PORT:shop:ada:PASSWORD",
    AT + "fe_sendauth: no password supplied": "PGPASSWORD",
    AT + 'FATAL:  Peer authentication failed for user "ada"': "pg_hba.conf",
    AT + 'FATAL:  no pg_hba.conf entry for host "10.0.0.2", user "ada", database "shop", SSL encryption': (
        "adds a line for ada, shop"
    ),
    AT + 'FATAL:  permission denied for database "shop"': "GRANT CONNECT ON DATABASE shop TO ada",
    AT + "FATAL:  sorry, too many clients already": "max_connections",
    AT + "FATAL:  remaining connection slots are reserved for roles with SUPERUSER": "max_connections",
    'connection failed: root certificate file "/none/ca.crt" does not exist': "sslrootcert=",
    AT + "SSL error: certificate verify failed": "sslrootcert=",
    AT + 'server certificate for "db" does not match host name "db.example.org"': "as the host of the URL",
    AT + "server does not support SSL, but SSL was required": "switches on `ssl`",
    'could not translate host name "db.example.org" to address: Name or service not known': "store use URL",
    "failed to resolve host 'db.example.org': [Errno -2] Name or service not known": "store use URL",
}


@pytest.mark.parametrize("message", SAID)
def test_a_refusal_has_a_way_out(message: str) -> None:
    error = unreachable(ADDRESS, message)
    assert "can't be connected to" in error.message
    assert message in error.message
    assert SAID[message] in (error.hint or "")


def test_each_refusal_is_met() -> None:
    met = [next(one for one in REFUSALS if one.message.search(message)) for message in SAID]
    assert set(met) == set(REFUSALS)


def test_a_server_that_does_not_answer_keeps_the_work() -> None:
    error = unreachable(ADDRESS, "connection timeout expired")
    assert "does not answer: connection timeout expired" in error.message
    assert "stays in files" in (error.hint or "")


def test_an_unknown_address_leaves_words_in_place() -> None:
    error = unreachable("postgresql://x/y", 'role "ada" does not exist')
    assert "createuser --pwprompt USER" in (error.hint or "")
