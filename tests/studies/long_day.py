"""Simulates a day of `gistpoint serve` and of `agent watch`, and checks that their resources do not grow.

Usage: PYTHONPATH=src:tests python tests/studies/long_day.py [WINDOWS [ATTEMPTS]] (default: 1000, 200)

The server's participants open and leave WINDOWS windows, six at a time, one in ten without closing it; their
programs are short scripts. The watched run makes ATTEMPTS attempts, one after the other. In the middle of the
day the machine sleeps: the process is stopped for a few seconds. After each tenth, prints the resident memory,
the open files, the threads, the child processes and the temporary folders. Exit code 1 if the memory at the
end is more than a tenth above that after the third tenth, or anything else has grown.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple, dataclass
from pathlib import Path

import psutil

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "benchmarks")]

PARTS, SETTLED, ASLEEP_S, AT_ONCE, CALLS = 10, 3, 3.0, 6, 5
SCRIPT = """
import os
os.write(1, b"__GANGLION__\\n")
os.write(1, b"D" + (99).to_bytes(4, "big") + b"x" * 99)
while data := os.read(0, 65536):
    if b"quit" in data:
        break
"""


@dataclass(frozen=True)
class Held:
    """The resources that a process holds."""

    megabytes: float
    files: int
    threads: int
    children: int
    folders: int

    @classmethod
    def by(cls, process: psutil.Process, scratch: Path) -> Held:
        return cls(
            process.memory_info().rss / 1e6,
            process.num_fds(),
            process.num_threads(),
            len(process.children(recursive=True)),
            sum(1 for _ in scratch.iterdir()),
        )

    def __str__(self) -> str:
        return (
            f"{self.megabytes:.1f} MB, {self.files} files, {self.threads} threads, {self.children} children,"
            f" {self.folders} temporary folders"
        )


def is_flat(found: list[Held]) -> bool:
    """Whether nothing has grown since the process has settled."""
    settled, last = found[SETTLED - 1 : -1], found[-1]
    most = Held(*map(max, zip(*map(astuple, settled), strict=True)))
    counts = zip(astuple(last)[1:], astuple(most)[1:], strict=True)
    return last.megabytes <= 1.1 * settled[0].megabytes and all(now <= before for now, before in counts)


def sleep(process: psutil.Process) -> None:
    """Stop a process for a few seconds, as if its machine slept."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(ASLEEP_S)
    process.send_signal(signal.SIGCONT)


# gistpoint serve


async def serve() -> None:
    """Serve scripts to eight participants; print the address and their tokens."""
    from fakes import FakeClock

    from gistpoint.tui.serving.links import Assigned, LinkBook
    from gistpoint.tui.serving.server import ParticipantServer, ServedPlace
    from gistpoint.tui.serving.session import ParticipantSession

    ParticipantSession.command_line = lambda self: [sys.executable, "-S", "-E", "-c", SCRIPT]  # type: ignore[method-assign]
    people = [f"P{number:02}" for number in range(8)]
    book = LinkBook(Path(os.environ["GISTPOINT_HOME"]) / "links.json", FakeClock())
    tokens = book.assign({who: Assigned(("a",)) for who in people})
    server = ParticipantServer(
        book,
        people,
        ServedPlace("127.0.0.1", 0),
        lambda who, assigned: [],
        sessions=8,
        log=lambda words: None,
    )
    await server.run(lambda url: print(url, *(tokens[who] for who in people), flush=True))


async def visit(url: str, token: str, *, farewell: bool) -> None:
    """Open a window, wait for its first picture, and leave it."""
    import aiohttp

    headers = {"Origin": url, "Cookie": f"gistpoint={token}"}
    async with aiohttp.ClientSession() as http:
        socket = await http.ws_connect(f"{url}/s/ws?width=100&height=30", headers=headers)
        while (await socket.receive()).type is not aiohttp.WSMsgType.BINARY:
            pass
        await socket.send_json(["stdin", "x"])
        if farewell:
            await socket.close()


async def serving_day(windows: int, process: subprocess.Popen[str], scratch: Path) -> list[Held]:
    assert process.stdout is not None
    url, *tokens = process.stdout.readline().split()
    server, found = psutil.Process(process.pid), list[Held]()
    for part in range(PARTS):
        for first in range(0, windows // PARTS, AT_ONCE):
            visits = [
                visit(url, tokens[number], farewell=(first + number) % 10 > 0) for number in range(AT_ONCE)
            ]
            await asyncio.gather(*visits)
        if part == PARTS // 2:
            sleep(server)
        await gone(server)
        found.append(Held.by(server, scratch))
        print(f"serve, {(part + 1) * windows // PARTS} windows: {found[-1]}", flush=True)
    return found


async def gone(server: psutil.Process) -> None:
    """Wait until the programs of all windows have ended."""
    while server.children():
        await asyncio.sleep(0.1)


# gistpoint agent watch


async def watch() -> None:
    """Watch a run, as `agent watch` does, until the input ends."""
    from gistpoint.core.locations import Locations
    from gistpoint.sessions.agentruns.store import AgentRunStore
    from gistpoint.tui.agent_watch_app import AgentWatchApp

    locations = Locations.of_user()
    run = AgentRunStore(locations.runs).open("r")
    app = AgentWatchApp(locations, run=run, services=lambda: None)  # type: ignore[arg-type,return-value]
    async with app.run_test(size=(160, 48)):
        print("watching", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def prepared(home: Path, attempts: int) -> list[dict[str, object]]:
    """Make a run with this many jobs, none of which has an attempt; return the first events of an attempt."""
    from agent_runs import Home
    from scripted_endpoint import reply

    own = Home(home / "data", script=(reply(content="I think that it is fine."),) * 3)
    task = own.task(1)
    own.work(own.run(task, name="seed"))
    seed = next(iter(own.runs.open("seed").jobs.values())).attempt
    own.run(task, repeats=attempts, name="r")
    lines = (own.attempts.folder(seed) / "journal.jsonl").read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    return [event for event in events if event["type"] not in ("model_turn", "attempt_ended")]


def watching_day(
    head: list[dict[str, object]], attempts: int, process: subprocess.Popen[str], scratch: Path
) -> list[Held]:
    from watching import exchange, numbered

    from gistpoint.core.locations import Locations
    from gistpoint.sessions.agentruns.jobs import JobAttempt, JobEnded
    from gistpoint.sessions.agentruns.store import AgentRunStore

    assert process.stdout is not None
    assert process.stdout.readline() == "watching\n"
    run, root = AgentRunStore(Locations.of_user().runs).open("r"), Locations.of_user().attempts
    watcher, found, waiting = psutil.Process(process.pid), list[Held](), [*run.jobs]
    for part in range(PARTS):
        for number in range(attempts // PARTS):
            key, name = waiting.pop(0), f"{part:010d}{number:010d}"
            (root / name).mkdir()
            journal = root / name / "journal.jsonl"
            numbered(journal, head, key)
            run.append([JobAttempt(job=key, attempt=name)])
            for call in range(CALLS):
                numbered(journal, exchange(call), first=100 + 3 * call)
                time.sleep(0.05)
            end: dict[str, object] = {"type": "attempt_ended", "data": {"reason": "calls_exhausted"}}
            numbered(journal, [end], first=1000)
            run.append([JobEnded(job=key, reason="calls_exhausted")])
        if part == PARTS // 2:
            sleep(watcher)
        time.sleep(2)  # several looks at the run
        found.append(Held.by(watcher, scratch))
        print(f"watch, {(part + 1) * attempts // PARTS} attempts: {found[-1]}", flush=True)
    return found


def main() -> int:
    windows, attempts = [*map(int, sys.argv[1:3]), *(1000, 200)[len(sys.argv) - 1 :]]
    flat = []
    with tempfile.TemporaryDirectory(prefix="long-day-") as place:
        home, scratch = Path(place) / "home", Path(place) / "scratch"
        home.mkdir()
        scratch.mkdir()
        os.environ |= {"GISTPOINT_HOME": str(home)}
        for what in ("serve", "watch"):
            head = prepared(home, attempts) if what == "watch" else []
            process = subprocess.Popen(
                [sys.executable, __file__, f"--{what}"],
                env={**os.environ, "TMPDIR": str(scratch)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            try:
                if what == "serve":
                    found = asyncio.run(serving_day(windows, process, scratch))
                else:
                    found = watching_day(head, attempts, process, scratch)
                flat.append(is_flat(found))
                print(f"{what}: {'flat' if flat[-1] else 'it grows'}", flush=True)
            finally:
                process.kill()
                process.wait()
    return int(not all(flat))


if __name__ == "__main__":
    if sys.argv[1:2] in (["--serve"], ["--watch"]):
        asyncio.run(serve() if sys.argv[1] == "--serve" else watch())
    else:
        sys.exit(main())
