"""Watching files of runs while they are written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recorded_runs import make_all
from screens.review.reviewing import TURNS, mini_run

from gistpoint.sessions.runs.watching import QUIET_S, FolderWatch, WatchState, news_first


class Bench:
    """A folder that is watched with a clock that the test advances."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.time = folder, 1_000_000.0
        self.watch = FolderWatch([folder], now=lambda: self.time, clock=lambda: self.time)

    def look(self, after: float = 2.0) -> list[tuple[str, str]]:
        """Return the news and the names of the files, after some seconds."""
        self.time += after
        reports = self.watch.look()
        return [(report.news.value, Path(report.run.listed.name).name) for report in reports]

    def written(self, path: Path) -> Path:
        """Set the time of a file that was just written to."""
        os.utime(path, (self.time, self.time))
        return path

    def lines(self, name: str, *records: object, half: str = "", mode: str = "w") -> Path:
        path = self.folder / name
        with path.open(mode, encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
            file.write(half)
        return self.written(path)

    def mini(self, name: str, change: Callable[[dict[str, Any]], object] = lambda document: None) -> Path:
        path = mini_run(self.folder / name, TURNS, task="mean")
        document = json.loads(path.read_text("utf-8"))
        change(document)
        path.write_text(json.dumps(document), "utf-8")
        return self.written(path)

    def state(self, path: Path) -> WatchState:
        return self.watch.runs[str(path)].state


def said(role: str, text: str, number: int) -> dict[str, Any]:
    """Return a record of Claude Code."""
    message = {"role": role, "content": text, **({"id": f"m{number}"} if role == "assistant" else {})}
    return {
        "type": role, "uuid": f"u{number}", "sessionId": "s", "version": "2.0", "cwd": "/x",
        "timestamp": f"2026-01-01T00:00:{number:02}Z", "message": message,
    }  # fmt: skip


def with_status(status: str) -> Callable[[dict[str, Any]], object]:
    return lambda document: document["info"].update(exit_status=status)


def test_runs_that_were_there_are_no_failures_of_the_watch(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    old = bench.mini("old.traj.json", with_status("RuntimeError"))
    (tmp_path / "README.md").write_text("notes")
    assert bench.look() == [("new", "old.traj.json")]
    assert bench.state(old) is WatchState.FAILED
    assert bench.watch.runs[str(old)].failed_at is None
    assert bench.look() == []


def test_a_failure_is_told_once_and_comes_first(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.mini("good.traj.json", with_status("Submitted"))
    bench.look()
    bad = bench.mini("bad.traj.json", with_status("RuntimeError"))
    later = bench.mini("later.traj.json", with_status("Submitted"))
    assert sorted(bench.look()) == [("ended", "later.traj.json"), ("failed", "bad.traj.json")]
    bench.written(bad)
    bench.written(later)
    assert ("failed", "bad.traj.json") not in bench.look()
    names = [Path(run.listed.name).name for run in news_first(bench.watch.runs.values())]
    assert names == ["bad.traj.json", "later.traj.json", "good.traj.json"]


def test_a_half_written_record_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.look()
    run = bench.lines("s.jsonl", said("user", "Fix it", 1), half='{"type": "assist')
    assert bench.look() == [("new", "s.jsonl")]
    assert (bench.state(run), bench.watch.runs[str(run)].warning) == (WatchState.WRITING, "")
    run.write_text(run.read_text("utf-8").split('{"type": "assist')[0], "utf-8")
    bench.lines("s.jsonl", said("assistant", "Done", 2), mode="a")
    assert bench.look() == [("grew", "s.jsonl")]
    assert bench.watch.runs[str(run)].listed.header.step_count == 2  # type: ignore[union-attr]
    bench.lines("s.jsonl", half='{"type": "us', mode="a")
    bench.look()
    assert bench.look(after=QUIET_S + 1) == [("quiet", "s.jsonl")]
    bench.look()
    assert "cut off" in bench.watch.runs[str(run)].warning


def test_a_run_has_not_ended_while_its_last_record_is_incomplete(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.look()
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Done"}]}
    begun = {"type": "system", "subtype": "init", "session_id": "s", "model": "m", "cwd": "/x", "tools": []}
    ended = {"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": "s"}
    said_so = {"type": "assistant", "session_id": "s", "message": message}
    run = bench.lines("a.jsonl", begun, said_so, ended, half='{"type": "system", "subty')
    assert bench.look() == [("new", "a.jsonl")]
    assert bench.state(run) is WatchState.WRITING
    bench.lines("a.jsonl", begun, said_so, ended)
    assert bench.look() == [("failed", "a.jsonl")]


def test_a_file_that_is_no_run_yet_is_told_only_after_it_has_been_quiet(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.look()
    path = tmp_path / "x.traj.json"
    path.write_text('{"info": {"exit', "utf-8")
    bench.written(path)
    assert bench.look() == []
    assert bench.look() == []
    bench.mini("x.traj.json", with_status("Submitted"))
    assert bench.look() == [("ended", "x.traj.json")]
    other = tmp_path / "y.json"
    other.write_text("{", "utf-8")
    bench.written(other)
    assert bench.look() == []
    assert bench.look(after=QUIET_S + 1) == [("not read", "y.json")]
    assert bench.watch.runs[str(other)].listed.problem


def test_a_run_fails_by_its_recorded_outcome_or_by_an_error_at_its_end_only(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.look()
    limit = bench.mini("limit.traj.json", with_status("LimitsExceeded"))
    error = {**said("assistant", "API Error: 529", 2), "isApiErrorMessage": True}
    broken = bench.lines("broken.jsonl", said("user", "Fix it", 1), error)
    assert sorted(bench.look()) == [("ended", "limit.traj.json"), ("new", "broken.jsonl")]
    assert (bench.state(limit), bench.state(broken)) == (WatchState.ENDED, WatchState.WRITING)
    assert bench.look(after=QUIET_S + 1) == [("quiet", "broken.jsonl")]
    assert bench.look() == [("failed", "broken.jsonl")]
    bench.lines("broken.jsonl", said("assistant", "Again", 3), mode="a")
    assert bench.look() == [("grew", "broken.jsonl")]
    assert bench.state(broken) is WatchState.WRITING


def test_a_file_may_vanish_or_be_replaced(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.look()
    run = bench.lines("s.jsonl", said("user", "Fix it", 1), said("assistant", "Done", 2))
    bench.look()
    new = bench.mini("new.traj.json", with_status("RuntimeError"))
    new.rename(run)
    assert sorted(bench.look()) == [("failed", "s.jsonl")]
    run.unlink()
    assert bench.look() == [("gone", "s.jsonl")]
    assert bench.watch.runs == {}


def test_a_file_that_never_rests_is_read_now_and_then(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.look()
    bench.lines("s.jsonl", said("user", "Fix it", 1))
    told: list[tuple[str, str]] = []
    for number in range(2, 30):
        bench.lines("s.jsonl", said("assistant", "more", number), mode="a")
        told += bench.look(after=0.5)
    assert 1 <= len(told) <= 4


def test_texts_of_runs_are_not_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    run = bench.mini("a.traj.json", lambda document: document["info"].update(submission="x" * 100_000))
    bench.look()
    header = bench.watch.runs[str(run)].listed.header
    assert header is not None
    assert len(repr(header)) < 5_000


def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    path = bench.mini("a.traj.json", with_status("Submitted_"))
    stat = path.stat()
    bench.look()
    assert bench.state(path) is WatchState.ENDED
    path.write_text(path.read_text("utf-8").replace("Submitted_", "ValueError"), "utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert bench.look() == [("failed", "a.traj.json")]


def test_a_folder_whose_files_have_the_same_sizes_and_times_is_read_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    make_all(tmp_path)
    folder = tmp_path / "d-folder"
    bench.look()
    event = sorted((folder / "events").iterdir())[-1]
    stat, text = event.stat(), event.read_text("utf-8")
    bench.look()
    assert bench.watch.waiting == 0
    known = bench.watch._files[folder].read_at
    event.write_text(text[::-1], "utf-8")
    os.utime(event, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    bench.look()
    bench.look()
    assert bench.watch._files[folder].read_at > known
