"""The team guide is followed word by word: a server in ten lines, TLS, passwords, roles, dump and restore."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders import build_task
from certificates import Authority
from postgres_server import PostgresServer, free_port, programs, running_server

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "team.md"
HOST, AT = "db.example.org", "127.0.0.2"
"""The host name in the guide, and its address in these tests, which doesn't count as this machine."""
OWNER = "keeper"
"""The role in place of the guide's `owner`, because `owner` is the superuser of the tests' server."""
PASSWORDS = {OWNER: "the-owners", "ada": "the-password", "eve": "another"}


def blocks() -> list[str]:
    """Return the contents of the guide's code blocks."""
    return re.findall(r"```\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)


def lines_with(word: str) -> list[str]:
    """Return the lines of the guide's code blocks that begin with a word, without comments."""
    found = [line.partition("  #")[0].strip() for block in blocks() for line in block.splitlines()]
    return [line for line in found if line.startswith(word)]


@dataclass
class Place:
    """A server as the guide makes it, and the homes of people who use it."""

    server: PostgresServer
    folder: Path
    authority: Authority

    def environment(self, who: str) -> dict[str, str]:
        passfile = self.folder / f"pgpass-{who}"
        passfile.write_text(f"{HOST}:{self.server.port}:gistpoint:{who}:{PASSWORDS[who]}\n")
        passfile.chmod(0o600)
        home = self.folder / who
        home.mkdir(exist_ok=True)
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PG")},
            "PATH": f"{Path(sys.executable).parent}:{programs()}:{os.environ['PATH']}",
            "GISTPOINT_HOME": str(home),
            "PGHOSTADDR": AT,
            "PGPORT": str(self.server.port),
            "PGPASSFILE": str(passfile),
            "PGSSLROOTCERT": str(self.authority.certificate),  # for PostgreSQL's own programs
            "PGSSLMODE": "verify-full",
        }

    def run(self, who: str, command: str, code: int = 0) -> str:
        """Run a line of the guide as a person, in a shell; return what it printed."""
        done = subprocess.run(
            ["bash", "-c", command],
            env=self.environment(who),
            cwd=self.folder / who,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def administer(self, statement: str, database: str = "gistpoint") -> None:
        """Execute a statement as the superuser, over the socket."""
        socket = ("-h", str(self.server.root / "socket"), "-p", str(self.server.port), "-U", "owner")
        self.server.run("psql", *socket, "-v", "ON_ERROR_STOP=1", "-c", statement, database)

    def url(self, who: str) -> str:
        return f"postgresql://{who}@{HOST}/gistpoint?sslrootcert={self.authority.certificate}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    authority = Authority(tmp_path / "keys")
    certificate, key = authority.sign(HOST, f"DNS:{HOST}")
    with running_server() as server:
        server.stop()
        data = server.root / "data"
        for source, name in ((certificate, "server.crt"), (key, "server.key")):
            shutil.copy(source, data / name)
            shutil.chown(data / name, data.owner(), data.group())
            (data / name).chmod(0o600)
        (hba,) = (line for line in lines_with("echo") if "hostssl" in line)
        with (data / "pg_hba.conf").open("a") as file:
            file.write(hba.split('"')[1].replace("10.0.0.0/8", f"{AT}/8") + "\n")
        server.port = free_port(AT)
        server.settings = (
            *("ssl=on", "ssl_cert_file=server.crt", "ssl_key_file=server.key"),
            f"listen_addresses={AT}",
        )
        server.start()
        made = Place(server, tmp_path, authority)
        made.administer(f"CREATE ROLE {OWNER} LOGIN CREATEROLE PASSWORD '{PASSWORDS[OWNER]}'", "postgres")
        made.administer(f"CREATE DATABASE gistpoint OWNER {OWNER}", "postgres")
        yield made


def test_the_guide_is_followed(place: Place) -> None:
    use, init = lines_with("gistpoint store use postgresql://owner")[0].split(" && ")
    assert (use, init) == (f"gistpoint store use postgresql://owner@{HOST}/gistpoint", "gistpoint store init")
    assert "no tables of gistpoint yet" in place.run(OWNER, f"gistpoint store use '{place.url(OWNER)}'")
    told = place.run(OWNER, init)
    assert "GRANT gistpoint_worker TO name" in told
    assert place.run(OWNER, init), "it can be repeated"

    # Users who are missing, and rights that are missing, are named with what to do.
    told = place.run("ada", f"gistpoint store use '{place.url('ada')}'", code=1)
    assert 'role "ada" does not exist' in told
    assert "createuser --pwprompt ada" in told
    for who in ("ada", "eve"):
        place.administer(f"CREATE ROLE {who} LOGIN PASSWORD '{PASSWORDS[who]}'")
    told = place.run("ada", f"gistpoint store use '{place.url('ada')}'", code=1)
    assert "GRANT gistpoint_worker TO" in told
    grant = next(line for line in lines_with("su postgres") if "GRANT" in line)
    place.administer(grant[grant.index("GRANT") : grant.index("'\"")])
    assert "your rights are those of: worker" in place.run("ada", f"gistpoint store use '{place.url('ada')}'")
    place.administer("GRANT gistpoint_reader TO eve")
    assert "those of: reader" in place.run("eve", f"gistpoint store use '{place.url('eve')}'")

    task = build_task(place.folder / "ada" / "data" / "tasks")
    assert "tasks\t1\t0" in place.run("ada", "gistpoint store sync")
    assert "tasks\t0\t1" in place.run("eve", "gistpoint store sync")
    assert not (place.folder / "eve" / "data" / "tasks" / task.id / "answer").exists()
    place.run("eve", "gistpoint store check", code=2)
    assert "agree" in place.run("ada", "gistpoint store check")

    # Dump, and restore into a database that lost everything.
    dump, restore = (
        lines_with(word)[0].replace("-U owner", f"-U {OWNER}") for word in ("pg_dump", "pg_restore")
    )
    place.run(OWNER, dump)
    place.administer("DROP DATABASE gistpoint", "postgres")
    told = place.run("ada", "gistpoint store sync", code=2)
    assert 'database "gistpoint" does not exist' in told
    assert "createdb --owner OWNER gistpoint" in told
    place.administer(f"CREATE DATABASE gistpoint OWNER {OWNER}", "postgres")
    place.run(OWNER, init)  # the roles are not part of a dump
    place.run(OWNER, restore)
    after = lines_with("gistpoint store sync &&")[0]
    assert "agree" in place.run("ada", after)
    place.run(OWNER, "gistpoint store sync")


def test_a_connection_that_proves_less_is_refused(place: Place) -> None:
    told = place.run(
        "ada", f"gistpoint store use 'postgresql://ada@{HOST}/gistpoint?sslmode=require'", code=2
    )
    assert "does not verify the server's identity" in told
    told = place.run("ada", f"gistpoint store use 'postgresql://ada:secret@{HOST}/gistpoint'", code=2)
    assert "secret" not in told
    assert "contains a password" in told
    other = Authority(place.folder / "others").certificate
    told = place.run(
        "ada", f"gistpoint store use 'postgresql://ada@{HOST}/gistpoint?sslrootcert={other}'", code=1
    )
    assert "certificate verify failed" in told
    assert "sslrootcert" in told
    missing = place.folder / "none.crt"
    told = place.run(
        "ada", f"gistpoint store use 'postgresql://ada@{HOST}/gistpoint?sslrootcert={missing}'", code=1
    )
    assert "sslrootcert=/path/ca.crt" in told
