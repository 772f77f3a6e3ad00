"""The web page of a run: its content, and no interpretation of anything from outside."""

from __future__ import annotations

import base64
import hashlib
import re
from html import unescape
from pathlib import Path

import pytest
from agent_runs import LOOK, RIGHT, WRONG, Home
from scripted_endpoint import reply

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.events import ModelTurn
from gistpoint.core.attempts.parts import AttemptCall, Handover
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.chat import ChatFailure, ChatProblem, Usage
from gistpoint.sessions.agentruns import run_page as page_module
from gistpoint.sessions.agentruns.run_page import entries_of, run_page
from gistpoint.sessions.agentruns.store import AgentRun, RunSettings

HOSTILE = "</pre></details><script>alert(1)</script>\x1b[31m\u202e<img src=x onerror=alert(1)> {{x}} '\""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def page(home: Home, run: AgentRun, title: str = "Tickets & <b>trains</b>") -> str:
    pieces = run_page(run, home.figures(run), home.attempts, lambda task: title, "0.0-test")
    return "".join(pieces)


def test_the_page_has_condition_attempts_rates_and_calls(home: Home) -> None:
    usage = Usage(100, 10, cost_usd=0.25)
    home.script = (reply(LOOK, content="First I look.", usage=usage), reply(WRONG, usage=usage), reply(RIGHT))
    run = home.run(home.task(1), home.task(2), repeats=2)
    home.work(run)
    text = page(home, run)
    assert "4 jobs, 4 ended" in text
    assert "4 of 4 [51, 100]" in text
    assert "pass@2" in text
    assert text.count('<tr><td class="n"><a href="#job-') == 4
    assert text.count('<details class="job good"') == 4
    assert text.count('class="range"') == 5
    assert text.count("<code>list_directory</code>") == 4
    assert "First I look." in text
    assert "5 of 6 tests" in text
    assert "<dt>system prompt</dt><dd>agent-2</dd>" in text
    assert "$0.5000" in text
    assert "Tickets &amp; &lt;b&gt;trains&lt;/b&gt; (repeat 2)" in text
    assert text.endswith("</body>\n</html>\n")


def test_halted_and_missing_attempts_have_their_reasons(home: Home) -> None:
    home.script = (reply(LOOK), ChatFailure(ChatProblem.REJECTED, "It answered 400: no such tool."))
    run = home.run(home.task(1))
    home.work(run)
    other = home.run(home.task(2))
    text = page(home, other)
    assert "halted" in text
    assert "request rejected" in text
    assert text.count("It answered 400: no such tool.") >= 2
    assert "There is no attempt to show." in text
    assert "2 jobs, 0 ended, 2 left" in text


def test_texts_from_outside_are_never_markup(home: Home) -> None:
    home.settings = RunSettings(model=HOSTILE, host=HOSTILE, agent=AgentSettings())
    bad = ("read_file", {"file_path": HOSTILE, HOSTILE: HOSTILE})
    home.script = (
        reply(bad, content=HOSTILE),
        reply((HOSTILE, HOSTILE)),
        reply(("submit_attempt", {"func_code": HOSTILE})),
        ChatFailure(ChatProblem.REJECTED, HOSTILE),
    )
    run = home.run(home.task(1))
    home.work(run)
    text = page(home, run, title=HOSTILE)
    assert not set("\x1b\u202e") & set(text)
    assert text.count("&lt;script&gt;") >= 8
    tags = set(re.findall(r"<(\w+)", text))
    assert tags <= {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "p", "fieldset", "label",
        "input", "main", "div", "section", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "a",
        "span", "br", "details", "summary", "strong", "code", "pre", "ul", "li", "svg", "rect",
    }  # fmt: skip


def test_the_page_asks_for_nothing_and_its_style_has_the_hash_of_its_policy(home: Home) -> None:
    run = home.run(home.task(1))
    home.work(run)
    text = page(home, run)
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1])  # type: ignore[index]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy
    assert set(re.findall(r'(?:src|href)="(.)', text)) == {"#"}
    assert not re.findall(r"url\(|@import| style=", text)


def test_long_texts_are_cut_and_large_pages_cut_them_earlier(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.script = (reply(LOOK, content="x" * 50_000), reply(LOOK, content="y" * 50_000), reply(RIGHT))
    run = home.run(home.task(1))
    home.work(run)
    text = page(home, run)
    assert text.count("⋯ 10,000 characters are not on this page.") == 2
    monkeypatch.setattr(page_module, "LARGE", 0)
    assert page(home, run).count("⋯ 48,000 characters are not on this page.") == 2


def test_entries_are_in_order_also_if_a_person_had_control() -> None:
    def call(number: int, turn: int, *, requested: bool) -> AttemptCall:
        return AttemptCall(f"c{number}", turn, "t", {}, number=number, requested=requested)

    turns = tuple(ModelTurn(turn=n) for n in (1, 2, 3))
    state = AttemptState(
        turns=turns,
        calls=(
            call(1, 1, requested=True),
            call(2, 1, requested=True),
            call(3, 3, requested=False),
            call(4, 3, requested=True),
        ),
        handovers=(Handover("person", "p07", "", 2, 2), Handover("model", "", "hint", 2, 3)),
    )
    found = [(type(of).__name__, [one.number for one in calls]) for of, calls in entries_of(state)]
    assert found == [
        ("ModelTurn", [1, 2]),
        ("ModelTurn", []),
        ("Handover", []),
        ("NoneType", [3]),
        ("Handover", []),
        ("ModelTurn", [4]),
    ]
