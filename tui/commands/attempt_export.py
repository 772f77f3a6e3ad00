"""`gistpoint attempt export`: attempts as a table, as an archive of journals, or one as a recorded run is written."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.sessions.attempts import AttemptStore, AttemptSummary
from gistpoint.sessions.journal import JOURNAL
from gistpoint.tui.cli import DONE, NEGATIVE
from gistpoint.tui.commands.attempts import attempt_row, attempt_rows, attempt_store
from gistpoint.tui.commands.output import write_whole


def export(options: argparse.Namespace) -> int:
    """Write attempts, all of them if none is named; 1 if one of them is damaged, which is written all the same."""
    store = attempt_store()
    chosen = [store.summary(name) for name in dict.fromkeys(options.attempts)] or list(store.summaries())
    if not chosen:
        raise UserError("There are no attempts yet.")
    if (write := _WRITERS.get(options.to)) is None:
        return _as_run(options, chosen)
    data = write(store, chosen)
    if options.output is not None:
        write_whole(Path(options.output), [data])
        for summary in chosen:
            problem = f"  {summary.problem}" if summary.problem else ""
            print(f"{summary.attempt_id}  {summary.state.events} events  head {summary.head}{problem}")
    elif options.to == "archive":
        raise UserError("An archive is not for the terminal.", hint="Say where to with -o PATH.")
    else:
        sys.stdout.write(data.decode("utf-8"))
    return NEGATIVE if any(summary.problem for summary in chosen) else DONE


def _as_run(options: argparse.Namespace, chosen: Sequence[AttemptSummary]) -> int:
    from gistpoint.sessions.exports.registry import NAMES, exporter
    from gistpoint.tui.commands.runs import convert

    if options.to in NAMES and len(chosen) > 1:
        raise UserError(f"{options.to} holds one attempt, and these are {len(chosen)}.", hint="Name one of them.")
    exporter(options.to)
    return convert(argparse.Namespace(recorded=chosen[0].attempt_id, to=options.to, output=options.output))


def _table(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    rows = [dict(_flat(attempt_row(summary))) for summary in chosen]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _flat(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in row.items():
        if name == "milliseconds":
            found += [(f"{activity}_ms", ms) for activity, ms in value.items()]
        else:
            found.append((name, json.dumps(value) if isinstance(value, dict | list) else value))
    return found


def _json(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    document = {"schema": "gistpoint.attempts/1", **attempt_rows(chosen)}
    return (json.dumps(document, indent=1) + "\n").encode("ascii")


def _archive(store: AttemptStore, chosen: Sequence[AttemptSummary]) -> bytes:
    """Pack the journals, whole lines only, the same way every time; heads stay at home, where they prove something."""
    import zstandard

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for summary in sorted(chosen, key=lambda summary: summary.attempt_id):
            data = (store.folder(summary.attempt_id) / JOURNAL).read_bytes()
            info = tarfile.TarInfo(f"{summary.attempt_id}/{JOURNAL}")
            data = data[: data.rfind(b"\n") + 1]
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    return zstandard.ZstdCompressor(level=10).compress(buffer.getvalue())


_WRITERS: Mapping[str, Callable[[AttemptStore, Sequence[AttemptSummary]], bytes]] = {
    "csv": _table,
    "json": _json,
    "archive": _archive,
}
