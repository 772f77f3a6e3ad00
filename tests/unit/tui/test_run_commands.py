"""Recorded runs on the command line: shown, searched, converted, listed and replayed, with exit codes."""

from __future__ import annotations

import json
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from atif import Trajectory
from builders import CHECKS, REPAIR, build_task
from fakes import FakeClock, FakeRunner
from recorded_runs.dialogues import mini_v2

from gistpoint import object_graph
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.core.text import visible_line
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.runs.found_lines import FoundLines
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.searching import Query, search_document
from gistpoint.tui import cli

Captured = pytest.CaptureFixture[str]
HOSTILE = "\x1b[31mred\x1b[0m [bold]list[int][/bold] \u202eabc"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def test_where_there_is_no_run_a_comparison_says_so(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "empty").mkdir()
    assert cli.main(["runs", "compare", "empty"]) == 1
    assert capsys.readouterr().out == "There is no recorded run in empty.\n"


@pytest.fixture
def task(home: Path) -> Task:
    return build_task(home / "data" / "tasks")


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    runner = FakeRunner(CHECKS)
    monkeypatch.setattr(object_graph, "build_runner", lambda options, demo=False, **more: runner)
    return runner


@pytest.fixture
def attempt(home: Path, task: Task) -> str:
    judge = RepairJudge(task, read_answer(task), FakeRunner(CHECKS))
    opened = AttemptStore(home / "data" / "attempts", FakeClock(), "test").start(task, judge, Enrolment())
    opened.attempt.call("read_file", {"file_path": "shop/prices.py"}, thought="where are the Prices")
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    opened.close()
    return opened.attempt.state.attempt_id


@pytest.fixture
def chat(tmp_path: Path) -> str:
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": "Find the fault."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": HOSTILE},
    ]
    (tmp_path / "chat.json").write_text(json.dumps(messages))
    return "chat.json"


@pytest.fixture
def several(tmp_path: Path) -> str:
    tests = {"success": False}
    lines = [
        {"problem": name, "score": 0.0, "config": {"model_name": "m", "mode": "remove"},
         "metadata": {"tool_usage": [{"tool": "list_directory", "args": {"path": ""}}], "test_info": tests}}
        for name in ("first one", "second")
    ]  # fmt: skip
    (tmp_path / "several.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "several.jsonl"


def test_a_run_is_shown_with_control_characters_visible(chat: str, capsys: Captured) -> None:
    assert cli.main(["show", chat]) == 0
    shown = capsys.readouterr().out
    assert "format       chat" in shown
    assert "v     2  bash ls" in shown
    assert cli.main(["show", chat, "--step", "2"]) == 0
    shown = capsys.readouterr().out
    assert "␛[31mred␛[0m [bold]list[int][/bold] ⇄abc" in shown
    assert not set(shown) & {"\x1b", "\u202e"}


@pytest.mark.parametrize("long", [30_000, 3_000_000])
def test_a_step_is_shown_whole_or_with_the_true_number_of_what_is_left_out(
    long: int, tmp_path: Path, capsys: Captured
) -> None:
    text = "é".join(f"{number:>9}" for number in range(long // 10))
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "done"}]
    path = tmp_path / "long.json"
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    assert cli.main(["show", str(path), "--step", "1"]) == 0
    shown = capsys.readouterr().out
    assert f"[... {len(text) - 20_000} characters of this text left out ...]" in shown
    assert text[-6_000:] in shown
    assert cli.main(["show", str(path), "--step", "1", "--whole"]) == 0
    assert text in capsys.readouterr().out


def test_a_run_is_shown_as_atif(chat: str, capsys: Captured) -> None:
    assert cli.main(["show", chat, "--json"]) == 0
    printed = capsys.readouterr().out
    trajectory = json.loads(printed)
    Trajectory.model_validate(trajectory)
    assert printed.isascii()
    assert cli.main(["show", chat, "--json", "--step", "2"]) == 0
    assert json.loads(capsys.readouterr().out) == trajectory["steps"][1]


def test_an_attempt_is_shown_by_its_id(attempt: str, capsys: Captured) -> None:
    assert cli.main(["show", attempt]) == 0
    assert attempt in capsys.readouterr().out
    assert cli.main(["show", attempt[:12], "--step", "2"]) == 0
    assert "where are the Prices" in capsys.readouterr().out


def test_one_run_of_a_file_is_named_by_its_id(several: str, capsys: Captured) -> None:
    assert cli.main(["runs", several]) == 0
    names = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == ["several.jsonl#first%20one", "several.jsonl#second"]
    for name in names:
        assert cli.main(["show", name]) == 0
        assert "list_directory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "nope"], "nope does not exist."),
        (["show", "chat.json", "--step", "9"], "chat.json has 2 steps: there is no step 9."),
        (["show", "chat.json", "--whole"], "--whole is about the text of one step."),
        (["show", "chat.json#x"], "contains only one run"),
        (["show", "several.jsonl"], "several.jsonl contains several runs."),
        (["show", "."], ". is a folder of several files."),
        (["show", "one"], "Name the file in it: one/run.json."),
        (["show", "none"], "none is an empty folder."),
        (["show", "\x1b[31m"], "\u241b[31m does not exist."),
        (["search", "", "chat.json"], "An argument is empty."),
        (["search", "(", "chat.json", "--regex"], "The pattern is not a regular expression"),
        (["search", "x", "nope"], "nope does not exist."),
        (["runs", "nope"], "nope does not exist."),
        (["convert", "chat.json", "--to", "word"], "There is no export format 'word'."),
        (["convert", "nope", "--to", "atif"], "nope does not exist."),
        (["convert", "chat.json", "--to", "atif", "-o", "chat.json"], "chat.json is the run itself."),
        (["convert", "chat.json", "--to", "atif", "-o", "."], ". is a folder."),
        (
            ["convert", "chat.json", "--to", "atif", "-o", "no/where"],
            "no/where can't be written: No such file",
        ),
        (["replay", "nope"], "nope does not exist."),
        (["replay", "chat.json"], "chat.json does not name the task"),
        (["replay", "chat.json", "--task", "nope"], "There is no task 'nope'."),
    ],
)
@pytest.mark.usefixtures("chat", "several", "runner")
def test_mistakes_are_told_in_a_line_or_two(arguments: list[str], said: str, capsys: Captured) -> None:
    Path("one").mkdir()
    Path("one/run.json").write_text("[]")
    Path("none").mkdir()
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.startswith("gistpoint: ")
    assert len(captured.err.splitlines()) <= 2
    assert json.loads(Path("chat.json").read_text())


@pytest.mark.parametrize(
    "arguments",
    [
        ["show"],
        ["show", "x", "--step", "0"],
        ["convert", "x"],
        ["search", "x"],
        ["search", "a", "b", "--scope", "x"],
    ],
)
def test_mistakes_in_the_call_are_exit_code_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("step", ["x", "0", "1.5"])
def test_what_is_no_step_is_told_what_one_is(step: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        cli.main(["show", "x", "--step", step])
    assert f"{step!r} is not a step: a step is given by its number, counted from 1" in capsys.readouterr().err


def test_search_prints_matches_and_is_negative_without_one(
    chat: str, attempt: str, home: Path, capsys: Captured
) -> None:
    folder = str(home / "data" / "attempts")
    assert cli.main(["search", "[31mred", chat, folder]) == 0
    assert capsys.readouterr().out == "chat.json:2:result: ␛[31mred␛[0m [bold]list[int][/bold] ⇄abc\n"
    assert cli.main(["search", "nowhere to be found", chat]) == 1
    assert capsys.readouterr().out == ""
    assert cli.main(["search", r"l\w+\[int", chat, "--regex", "--scope", "result"]) == 0
    assert cli.main(["search", "ls", chat, "--scope", "thought", "--scope", "diff"]) == 1
    assert cli.main(["search", "Prices", folder, "--scope", "thought"]) == 0
    assert ":thought: where are the Prices" in capsys.readouterr().out
    assert cli.main(["search", "Prices", attempt, "--scope", "thought"]) == 0
    assert f"{attempt}/journal.jsonl:" in capsys.readouterr().out
    assert cli.main(["search", "LIST[int]", chat]) == 1
    assert cli.main(["search", "red", chat, "nope"]) == 2, "what was found is printed, and the mistake told"


def test_a_line_with_several_matches_is_printed_once(chat: str, tmp_path: Path, capsys: Captured) -> None:
    text = "a [b] [c]\na [b] [c]\n[\n[\nother ["
    (tmp_path / "lines.json").write_text(json.dumps([{"role": "user", "content": text}] * 2))
    assert cli.main(["search", "[", "lines.json"]) == 0
    told = [f"lines.json:{step}:text: {line}" for step in (1, 2) for line in text.splitlines()]
    assert capsys.readouterr().out.splitlines() == told
    assert cli.main(["search", "[", "lines.json", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["hits"]) == 14
    assert cli.main(["search", "[", "nope", "lines.json", "--regex"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("gistpoint: The pattern is not a regular expression")
    assert "nope" not in "".join(told)


def printed_one_by_one(name: str, pattern: str) -> str:
    """Return what a search prints, worked out hit by hit."""
    found, printed = FoundLines(), list[str]()
    for hit in search_document(open_run(name), Query(pattern)):
        found.add([hit])
    for line in found.lines:
        step = "" if line.first.step is None else f":{line.first.step + 1}"
        error = f"  ({line.first.error})" if line.first.error else ""
        printed.append(visible_line(f"{name}{step}:{line.part}: {line.quoted}{error}") + "\n")
    return "".join(printed)


def many_hits(steps: int = 40) -> str:
    """Write a run with far more hits than are printed at once, and return its name."""
    text = f"a\x1b[1m a\n{'a ' * 2_500}\nTraceback (most recent call last):\n  a\nValueError: a\n"
    messages = [{"role": "user", "content": text + "line a\n" * 90, "note": "line a"}] * steps
    Path("many.json").write_text(json.dumps(messages))
    return "many.json"


def test_blocks_of_hits_are_printed_as_if_one_by_one(chat: str, capsys: Captured) -> None:
    name = many_hits()
    assert cli.main(["search", "a", name]) == 0
    assert capsys.readouterr().out == printed_one_by_one(name, "a")
    assert cli.main(["search", "a", chat]) == 0
    assert capsys.readouterr().out == printed_one_by_one(chat, "a")


def test_a_search_writes_once_for_many_hits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(StringIO):
        calls = 0

        def write(self, text: str) -> int:
            self.calls += 1
            return super().write(text)

        def isatty(self) -> bool:
            self.calls += 1
            return False

    stream = Counting()
    monkeypatch.setattr("sys.stdout", stream)
    assert cli.main(["search", "line", many_hits(20)]) == 0
    lines = stream.getvalue().count("\n")
    assert lines == 20 * 90
    assert stream.calls < lines / 20


def test_a_search_counts_lines_and_places_and_names_what_it_could_not_read(
    chat: str, capsys: Captured
) -> None:
    Path("more").mkdir()
    Path("more/chat.json").write_bytes(Path(chat).read_bytes())
    Path("more/none.json").write_text(json.dumps([{"role": "user", "content": "x"}] * 2))
    Path("more/odd.json").write_text('{"a": ')
    assert cli.main(["search", "i", "more", "--scope", "result"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1
    assert "gistpoint: 1 line (2 places) in 1 of 2 runs." in captured.err
    assert "more/odd.json is in no known format" in captured.err
    assert "1 file could not be searched." in captured.err
    assert cli.main(["search", "nowhere", "more"]) == 1
    assert "1 file could not be searched." in capsys.readouterr().err


def test_search_as_json(chat: str, capsys: Captured) -> None:
    assert cli.main(["search", "red", chat, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "gistpoint.search/1"
    (hit,) = printed["hits"]
    assert (hit["run"], hit["step"], hit["scope"], hit["part"], hit["line"]) == (
        chat,
        2,
        "result",
        1,
        HOSTILE,
    )
    assert HOSTILE[hit["start"] : hit["end"]] == "red"
    assert cli.main(["search", "green", chat, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hits"] == []


@pytest.mark.parametrize("count", [5, 250])
@pytest.mark.parametrize("columns", ["60", "120"])
def test_listed_runs_can_be_told_apart_on_a_terminal(
    count: int, columns: str, monkeypatch: pytest.MonkeyPatch, chat: str, tmp_path: Path
) -> None:
    folder = tmp_path / ("a" * 60) / ("b" * 40)
    folder.mkdir(parents=True)
    for number in range(count):
        name = f"OpenHands__and-a-long-name-with-a-number-at-its-end-{number}.json"
        (folder / name).write_text(json.dumps([{"role": "user", "content": f"do {number}"}] * 2))

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["runs", str(folder)]) == 0
    head, *lines = stream.getvalue().splitlines()
    assert head == f"in {folder}/"
    rows = [line.split()[0] for line in lines if "OpenHands__" in line]
    assert len(set(rows)) == len(rows) == count
    assert all(len(row) == 32 for row in rows)


def test_runs_lists_what_is_known_at_the_end_of_each(
    attempt: str, task: Task, chat: str, several: str, home: Path, capsys: Captured
) -> None:
    with zipfile.ZipFile("runs.zip", "w") as archive:
        archive.write(chat)
    assert cli.main(["runs", str(home / "data" / "attempts"), several, "runs.zip", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "gistpoint.runs/1"
    ours, first, second, zipped = printed["runs"]
    assert (ours["format"], ours["task"], ours["verdict"], ours["score"]) == (
        "gistpoint",
        task.id,
        "solved",
        1.0,
    )
    assert (ours["submissions"], ours["actor"], ours["steps"]) == (1, "person", 4)
    assert [run["verdict"] for run in (first, second)] == ["unsolved", "unsolved"]
    assert (zipped["run"], zipped["steps"]) == ("runs.zip#chat.json", 2)
    assert cli.main(["runs", several]) == 0
    heading, row, _ = capsys.readouterr().out.splitlines()
    assert heading.split("\t") == [
        "run", "format", "task", "solver", "outcome", "end reason", "steps", "tokens", "cost",
        "cause", "happened", "failing tests", "answer",
    ]  # fmt: skip
    assert row.split("\t")[:9] == [
        "several.jsonl#first%20one",
        "breakpoint remove",
        "first one",
        "m",
        "~unsolved",
        "",
        "2",
        "",
        "",
    ]
    Path("begun").mkdir()
    Path("begun/half.json").write_text('{"a": ')
    assert cli.main(["runs", several, "begun"]) == 0
    assert "gistpoint: begun/half.json is in no known format" in (said := capsys.readouterr().err)
    assert "1 file not read." in said
    assert cli.main(["runs", "begun", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["files_not_read"] == 1
    Path("empty").mkdir()
    assert cli.main(["runs", "empty"]) == 0
    assert "There is no recorded run in empty." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("format", "beginning"),
    [
        ("atif", "{"),
        ("chat", '{"messages"'),
        ("markdown", "# "),
        ("html", "<!doctype html>"),
        ("cast", '{"version": 2'),
    ],
)
def test_a_run_is_converted(format: str, beginning: str, chat: str, capsys: Captured) -> None:
    assert cli.main(["convert", chat, "--to", format]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(beginning)
    assert "\x1b" not in printed
    Path("old").write_text("old")
    Path("link").symlink_to("old")
    assert cli.main(["convert", chat, "--to", format, "-o", "link"]) == 0
    assert Path("old").read_text(encoding="utf-8") == printed
    assert Path("link").is_symlink()
    assert capsys.readouterr().out == ""
    assert not list(Path().glob(".*"))


def test_an_attempt_is_replayed(attempt: str, task: Task, runner: FakeRunner, capsys: Captured) -> None:
    assert cli.main(["replay", attempt, "--task", task.short_id]) == 0
    first, second, _, count, verdict = capsys.readouterr().out.splitlines()
    assert first.split() == ["2", "same", "read_file", "shop/prices.py"]
    assert second.split() == ["3", "same", "submit_attempt"]
    assert count == "2 calls: 2 same"
    assert verdict == "outcome then: solved, score 1.000; now, in fake: solved, score 1.000; the same"
    assert runner.runs == 1
    assert cli.main(["replay", attempt, "--json"]) == 0, "an attempt tells its task itself"
    printed = json.loads(capsys.readouterr().out)
    assert (printed["schema"], printed["same"], printed["task"]) == ("gistpoint.replay/1", True, task.id)
    assert [call["result"] for call in printed["calls"]] == ["same", "same"]
    assert printed["budgets"] == {"tool_uses": 16, "submissions": 4}


@pytest.mark.usefixtures("runner")
def test_a_replay_that_differs_is_negative_and_names_the_step(
    attempt: str, task: Task, home: Path, capsys: Captured
) -> None:
    journal = home / "data" / "attempts" / attempt / "journal.jsonl"
    Path("edited").write_text(journal.read_text().replace("Prices in cents", "Prices in \\u001b[31m euros"))
    assert cli.main(["replay", "edited", "--task", task.id]) == 1
    printed = capsys.readouterr().out
    assert "     2  differs        read_file shop/prices.py" in printed
    assert "Prices in ␛[31m euros" in printed
    assert "2 calls: 1 same, 1 differs" in printed
    other = build_task(home / "data" / "tasks", Mode.DISCOVERY)
    assert cli.main(["replay", attempt, "--task", other.id]) == 2
    assert "was recorded on the task" in capsys.readouterr().err


@pytest.mark.usefixtures("runner")
def test_a_replay_of_foreign_tools_is_negative_with_the_reason(
    chat: str, task: Task, capsys: Captured
) -> None:
    assert cli.main(["replay", chat, "--task", task.id]) == 1
    assert "could not run  bash ls  (There is no tool 'bash' here" in capsys.readouterr().out


def test_a_chat_says_what_it_leaves_out(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "run.json"
    path.write_text(
        json.dumps(
            {
                "info": {"submission": "", "note": "kept"},
                "messages": [{"role": "user", "content": "Fix é"}],
                "trajectory_format": "mini-swe-agent-1",
            }
        )
    )
    assert cli.main(["convert", str(path), "--to", "chat"]) == 0
    told = capsys.readouterr()
    assert "kept" not in told.out
    assert (
        told.err
        == "gistpoint: The chat leaves out of the header info.note: html, markdown and atif contain them.\n"
    )
    assert cli.main(["convert", str(path), "--to", "html"]) == 0
    assert not capsys.readouterr().err


def test_a_value_of_several_lines_forges_no_fact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "forged.traj.json"
    run = {**mini_v2(), "instance_id": "x\nverdict      solved"}
    file.write_text(json.dumps(run), encoding="utf-8")
    cli.main(["show", str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert "task         x" in lines
    assert not any(line.startswith("outcome") and "solved" in line for line in lines)
