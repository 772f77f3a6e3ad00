"""Each command in README and the guides is a valid call, and a test runs it or a reason is given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from project_files import ROOT

from gistpoint.core.demo.tasks import recorded_runs
from gistpoint.tui import cli

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
_FENCED = re.compile(r"^```.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
_SPAN = re.compile(r"`(gistpoint [^`]+)`")
_BEFORE = re.compile(r"^(?:uv run (?:--extra \w+ )?|\$ )")
_EXPLAINED = re.compile(r"\s+#.*$|\s{2,}\S.*$|(?<=:8000) a server .*$|(?<=bp-2)  one .*$| > [\w.~/-]+\.\w+$")
_ODD = ("COMMAND", "--fuction", "task new:")
"""Parts of lines that are not calls or are deliberately wrong."""

RUN_BY: Mapping[str, str] = {
    "findings judge": "tests/integration/tui/test_findings_command.py",
    "findings read": "tests/integration/tui/test_findings_command.py",
    "findings report": "tests/integration/tui/test_findings_command.py",
    "admin baseline": "tests/unit/sessions/test_study_people.py",
    "admin clean": "tests/unit/tui/test_doctor.py",
    "agent resume": "tests/integration/tui/test_agent_commands.py",
    "agent run": "tests/integration/tui/test_agent_commands.py",
    "agent settle": "tests/integration/tui/test_agent_commands.py",
    "agent show": "tests/integration/tui/test_agent_commands.py",
    "agent stop": "tests/integration/tui/test_agent_commands.py",
    "agent watch": "tests/integration/tui/test_agent_commands.py",
    "attempt accept": "tests/unit/tui/test_confirming_commands.py",
    "attempt confirm": "tests/unit/tui/test_confirming_commands.py",
    "attempt export": "tests/unit/tui/test_attempt_commands.py",
    "attempt object": "tests/unit/tui/test_confirming_commands.py",
    "attempt reject": "tests/unit/tui/test_attempt_commands.py",
    "attempt show": "tests/unit/tui/test_cli.py",
    "code": "tests/unit/tui/test_code_command.py",
    "demo": "tests/integration/tui/test_played_demo.py",
    "doctor": "tests/unit/tui/test_doctor.py",
    "gist new": "tests/integration/tui/test_gist_commands.py",
    "gist reference": "tests/integration/tui/test_gist_commands.py",
    "gist score": "tests/integration/tui/test_gist_commands.py",
    "glance": "tests/unit/tui/test_glance_command.py",
    "mcp": "tests/unit/tui/test_mcp_command.py",
    "replay": "tests/unit/tui/test_run_commands.py",
    "rescore": "tests/unit/tui/test_rescore.py",
    "review": "tests/e2e/test_early_keys.py",
    "reviews merge": "tests/unit/tui/test_reviews_command.py",
    "serve": "tests/unit/tui/test_serving.py",
    "solve": "tests/unit/tui/test_cli.py",
    "store check": "tests/integration/sessions/test_team_study.py",
    "store init": "tests/integration/sessions/test_team_store.py",
    "store sync": "tests/integration/sessions/test_team_store.py",
    "study amend": "tests/integration/tui/test_study_commands.py",
    "study analyse": "tests/unit/tui/test_study_report_command.py",
    "runs watch": "tests/unit/tui/test_run_watch.py",
    "study audit": "tests/unit/tui/test_study_attempt_commands.py",
    "study close": "tests/unit/tui/test_study_report_command.py",
    "study confirm": "tests/unit/tui/test_study_confirm_command.py",
    "study correct": "tests/unit/tui/test_study_attempt_commands.py",
    "study demo": "tests/integration/tui/test_study_simulation.py",
    "study exclude": "tests/unit/tui/test_study_attempt_commands.py",
    "study export": "tests/unit/tui/test_study_attempt_commands.py",
    "study include": "tests/unit/tui/test_study_attempt_commands.py",
    "study pay": "tests/integration/tui/test_study_commands.py",
    "study power": "tests/integration/tui/test_study_simulation.py",
    "study report": "tests/unit/tui/test_study_report_command.py",
    "study return": "tests/integration/tui/test_study_progress.py",
    "study share": "tests/integration/sessions/test_team_study.py",
    "study simulate": "tests/integration/tui/test_study_simulation.py",
    "study solvers": "tests/unit/tui/test_study_attempt_commands.py",
    "study sync": "tests/integration/tui/test_study_commands.py",
    "task check": "tests/unit/tui/test_cli.py",
    "task control": "tests/unit/tui/test_confirming_commands.py",
    "task delete": "tests/unit/tui/test_exports.py",
    "task generate": "tests/integration/tui/test_generate_command.py",
    "task import": "tests/unit/tui/test_task_import.py",
    "task new": "tests/unit/tui/test_cli.py",
    "task validate": "tests/e2e/test_validating.py",
}
"""Tests elsewhere that run commands of the pages, by command."""
NOT_RUN: Mapping[str, str] = {
    "store use": "needs a PostgreSQL server; tests/integration/sessions/test_team_store.py opens stores without it",
    "study compare": "runs the suites of real tasks for minutes; its function is in tests/contract/test_equivalence.py",
    "study join": "is a screen; tests/screens/flows/test_study.py drives it by keys",
    "study read": "is a screen; tests/screens/test_blind_reading.py drives it by keys",
}
"""Reasons why no test runs a command literally, by command."""
HERE = (
    "version",
    "tasks",
    "help task new",
    "admin paths",
    "admin cache",
    "admin completion bash",
    "attempt list",
    "agent list",
    "store status",
    "task list",
    "task list --where 'discovery glance_rate < 0.2' --ids",
    "task show dear-tickets",
    "task export seats-together dear-tickets --to swebench -o FOLDER",
    "task export dear-tickets --to archive -o FILE",
    "task validations dear-tickets",
    "gist list",
    "gist conditions whole-railway -o CONDITIONS",
    "runs PATH",
    "runs PATH --profile",
    "runs compare PATH",
    "show RUN",
    "show RUN --profile",
    "show RUN --step 9",
    "search fare RUN",
    "convert RUN --to html -o run.html",
    "convert RUN --to markdown -o run.md",
    "reviews export PATH --to csv -o out.csv",
    "reviews summary PATH",
    "study new mine --tasks demo",
    "study check mine --prereg",
    "study open mine",
    "study enrol mine --code ME --role author",
    "study progress mine",
    "admin backup home.tar.zst",
    "admin restore home.tar.zst --replace",
)
"""Calls of the pages that are run in this module, in order, on the demo's tasks and runs."""


def calls_of(text: str) -> Iterator[str]:
    """Yield the calls of gistpoint on a page, without explanations."""
    blocks = [match[1] for match in _FENCED.finditer(text)]
    rest = _FENCED.sub("", text)
    blocks += [match[1] for match in _INDENTED.finditer(rest)]
    lines = [line for block in blocks for line in re.sub(r"\\\n\s*", "", block).splitlines()]
    lines += [match[1] for match in _SPAN.finditer(rest)]
    for line in lines:
        for part in _BEFORE.sub("", line.strip()).split(" && "):
            if part.startswith("gistpoint ") and not any(odd in part for odd in _ODD):
                yield _EXPLAINED.sub("", part).removeprefix("gistpoint ")


def words_of(call: str) -> list[str]:
    """Return the words of a call: the first of several alternatives, without `…` and optional brackets."""
    plain = re.sub(r"[…\[\]]", "", call)
    return [re.sub(r"^([\w-]+)\|.*", r"\1", word) for word in shlex.split(plain)]


def command_of(words: list[str]) -> str:
    names = {row.name for row in cli.COMMANDS}
    while words and words[0].startswith("-"):
        words = words[2:]
    pair, one = " ".join(words[:2]), " ".join(words[:1])
    return pair if pair in names else one


CALLS = sorted({call for page in PAGES for call in calls_of(page.read_text(encoding="utf-8"))})


def test_the_pages_call_most_commands() -> None:
    assert len(CALLS) > 150
    assert len({command_of(words_of(call)) for call in CALLS}) > 60


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_pages_is_understood(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A call parses; if it only names a command, required arguments may be missing."""
    words = words_of(call)
    try:
        cli._parsed(cli._without_aliases(words))
    except SystemExit as ended:
        code = ended.code
        if words[0] in ("help", "version"):
            assert not code
            return
        error = capsys.readouterr().err
        assert "Missing: " in error or "Which command?" in error or "expected one argument" in error, error


def test_each_command_is_run_by_a_test_or_has_a_reason() -> None:
    run_here = {command_of(words_of(call)) for call in HERE}
    groups = {row.name.split()[0] for row in cli.COMMANDS if " " in row.name}
    named = {command_of(words_of(call)) for call in CALLS}
    named -= {"", "help", "version", "tasks", *(groups - {row.name for row in cli.COMMANDS})}
    assert sorted(named - run_here - RUN_BY.keys() - NOT_RUN.keys()) == []
    assert sorted((RUN_BY.keys() | NOT_RUN.keys()) - named) == [], "no page names these any more"
    for command, path in RUN_BY.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        last = command.split()[-1]
        assert f'"{last}"' in text or f'"{last} ' in text or f" {last}" in text, (command, path)
    for reason in NOT_RUN.values():
        for path in re.findall(r"tests/\S+\.py", reason):
            assert (ROOT / path).is_file(), path


def test_the_calls_of_a_newcomer_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    runs = recorded_runs()
    places = {
        "PATH": str(runs),
        "RUN": str(runs / "dear-tickets.careful.traj.json"),
        "FOLDER": "exported",
        "FILE": "dear-tickets.tar.zst",
        "CONDITIONS": "conditions",
    }
    for call in HERE:
        words = [places.get(word, word) for word in words_of(call)]
        try:
            code = cli.main(words)
        except SystemExit as ended:
            code = int(str(ended.code or 0))
        printed = capsys.readouterr()
        assert code in (0, 1), (call, printed.err)
        assert "Traceback" not in printed.err, call
    assert (tmp_path / "run.html").is_file()
    assert (tmp_path / "exported" / "instances.jsonl").is_file()
