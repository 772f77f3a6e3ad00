"""Whatever query the list of runs accepts can be kept under a name, and then means the same."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from project_files import ROOT

from gistpoint.core.kept_queries import keep_query, kept_queries
from gistpoint.core.query_grammar import KeptQueries, QueryError
from gistpoint.tui import cli
from gistpoint.tui.commands.run_list import parsed_query

GUIDE = (ROOT / "docs/guide/queries.md").read_text(encoding="utf-8")
KEPT = KeptQueries({"loops": "looped and not edited"})


def accepted(query: str) -> bool:
    """Return whether the list accepts a query; code in the guide may also be a file or a command."""
    try:
        parsed_query(query, KEPT)
    except QueryError:
        return False
    return True


COMMANDS = [line for line in GUIDE.splitlines() if line.startswith("gistpoint") and "--where" in line]
EXAMPLES = sorted(
    {
        *(words[words.index("--where") + 1] for words in map(shlex.split, COMMANDS)),
        *filter(accepted, re.findall(r"`([^`\n]+)`", GUIDE.replace("```", ""))),
    }
)


def keep(config: Path, query: str) -> None:
    keep_query(config, "loops", KEPT.texts["loops"], parsed_query)
    keep_query(config, "x", query, parsed_query)
    kept = kept_queries(config)
    assert kept.texts["x"] == query
    asked, direct = parsed_query("@x", kept), parsed_query(query, KEPT)
    assert asked.content == direct.content


def test_the_guide_has_examples() -> None:
    assert {"tool:bash > 5", "meta.temperature > 0.5", "@loops", "not edited and tool:bash > 5"} <= {
        *EXAMPLES
    }


@pytest.mark.parametrize("query", [*EXAMPLES, "tool:bash>5", "steps > 20", "time != 3", "verdict:no -solved"])
def test_every_example_of_the_guide_can_be_kept(tmp_path: Path, query: str) -> None:
    keep(tmp_path, query)


PARTS = st.sampled_from(
    [
        *"()\"'-@:<>=!. \u2265",
        *(" ", " and ", " or ", "not ", " > ", " != "),
        *("steps", "time", "tool:", "bash", "meta.a", "text:", "outcome", "edited", "@loops"),
        *("5", "1:30", "0.5k"),
    ]
)


@given(st.lists(PARTS, max_size=9).map("".join).filter(accepted))
@example("meta.temperature > 0.5")
@example("call:x!y tool:a != 2")
def test_every_query_that_the_list_accepts_can_be_kept(
    tmp_path_factory: pytest.TempPathFactory, query: str
) -> None:
    keep(tmp_path_factory.mktemp("config"), query)


def test_the_command_keeps_what_it_accepts_and_refuses_a_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    assert cli.main(["runs", "--save-query", "often", "--where", "tool:bash > 5"]) == 0
    assert cli.main(["runs", "--save-query", "often", "--where", "edited or @often"]) == 2
    assert "@often names @often" in capsys.readouterr().err
    assert cli.main(["runs", "--queries"]) == 0
    assert "@often\ttool:bash > 5" in capsys.readouterr().out
