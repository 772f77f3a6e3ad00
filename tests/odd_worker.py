"""Makes a Dask worker odd, as ODD_WORKER specifies; loaded with `dask worker --preload`.

`old` has another version of gistpoint, `ahead` a clock that is ten minutes ahead, `slow` is slow, `dying` is
killed unnoticed after its second job, and `lying:KIND,KIND` returns false attempts of these kinds in turn and
replays without calls. `waiting:SECONDS` waits before each job, and adds the times of its start and its end to
the file named by ODD_WORKER_LOG.
"""

from __future__ import annotations

import json
import os
import signal
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from itertools import count, cycle
from pathlib import Path
from typing import Any

import gistpoint

AHEAD_S = 600
ODD, _, KINDS = os.environ.pop("ODD_WORKER", "").partition(":")  # Dask loads the file twice
if ODD == "old":
    gistpoint.__version__ = "0.0.1"
if ODD == "ahead":
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + AHEAD_S
    time.time_ns = lambda: true_time_ns() + AHEAD_S * 10**9

from gistpoint.core.attempts.events import AttemptStarted  # noqa: E402 (the version and the clock come first)
from gistpoint.core.logs import line_hash  # noqa: E402
from gistpoint.sessions.agentruns import cluster_work  # noqa: E402
from gistpoint.sessions.journal import encode, journal_in  # noqa: E402

if ODD:
    honest, honestly_replayed = cluster_work.attempted, cluster_work.replayed
    numbers, kinds = count(1), cycle(KINDS.split(","))


def slowly(order: bytes, archive: bytes, **given: Any) -> bytes:
    time.sleep(0.5)
    return honest(order, archive, **given)


def waited(seconds: float, work: Callable[..., Any], order: bytes, *given: Any, **named: Any) -> Any:
    began = time.time()
    time.sleep(seconds)
    done = work(order, *given, **named)
    with Path(os.environ["ODD_WORKER_LOG"]).open("a", encoding="ascii") as log:
        log.write(f"{began} {time.time()}\n")
    return done


def dying(order: bytes, archive: bytes, **given: Any) -> bytes:
    reply = honest(order, archive, **given)
    if next(numbers) == 3:  # the second job: the first reply only requested the task
        os.kill(os.getpid(), signal.SIGKILL)
    return reply


def rewritten(journal: bytes, change: Callable[[int, Any], Any]) -> bytes:
    """Return the journal with changed events and a valid chain of hashes."""
    lines, head = [], ""
    for event in journal_in(journal).events:
        data = change(event.seq, event.data)
        lines.append(encode(type(event)(event.seq, event.type, event.utc_ms, event.mono_ms, data, head)))
        head = line_hash(lines[-1])
    return b"".join(lines)


def other_bytes(number: int, data: Any) -> Any:
    return (
        type(data)(**{**fields(data), "tree_sha256": "0" * 64}) if isinstance(data, AttemptStarted) else data
    )


def other_job(number: int, data: Any) -> Any:
    if not isinstance(data, AttemptStarted):
        return data
    return type(data)(**{**fields(data), "solver": {**data.solver, "job": "0" * 64}})  # type: ignore[dict-item]


def fields(data: Any) -> dict[str, Any]:
    return {name: getattr(data, name) for name in data.__struct_fields__}


def lying(order: bytes, archive: bytes, **given: Any) -> bytes:
    reply = json.loads(honest(order, archive, **given))
    if reply["kind"] != "done":
        return json.dumps(reply).encode()
    kind, result = next(kinds), reply["result"]
    journal = b64decode(result["journal"])
    match kind:
        case "reply":
            reply["job"] = "0" * 64
        case "chain":
            journal = journal.replace(b'"prev":"', b'"prev":"0', 2)
        case "task":
            journal = rewritten(journal, other_bytes)
        case "job":
            journal = rewritten(journal, other_job)
        case "ending":
            result["problem"] = "solved"
    result["journal"] = b64encode(journal).decode()
    written = json.dumps(result, separators=(",", ":")).encode()
    reply["sha256"] = "0" * 64 if kind == "hash" else sha256(written).hexdigest()
    reply["result"] = None
    return json.dumps(reply, separators=(",", ":")).encode().replace(b'"result":null', b'"result":' + written)


def replayed_otherwise(order: bytes, archive: bytes, **given: Any) -> bytes:
    reply = json.loads(honestly_replayed(order, archive, **given))
    if reply["kind"] != "done":
        return json.dumps(reply).encode()
    written = json.dumps({**reply["result"], "calls": []}, separators=(",", ":")).encode()
    reply |= {"sha256": sha256(written).hexdigest(), "result": None}
    return json.dumps(reply, separators=(",", ":")).encode().replace(b'"result":null', b'"result":' + written)


if ODD == "slow":
    cluster_work.attempted = slowly
if ODD == "dying":
    cluster_work.attempted = dying
if ODD == "lying":
    cluster_work.attempted = lying
    cluster_work.replayed = replayed_otherwise
if ODD == "waiting":
    from functools import partial, wraps

    from gistpoint.sandbox import cluster_steps

    for module, name in ((cluster_work, "attempted"), (cluster_work, "replayed"), (cluster_steps, "stepped")):
        work = getattr(module, name)
        setattr(module, name, wraps(work)(partial(waited, float(KINDS), work)))
