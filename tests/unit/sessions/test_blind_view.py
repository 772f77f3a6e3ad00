"""A blind reviewer's view of a run has neither its author nor its outcome, in any format."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from recorded_runs import make_all

from gistpoint.sessions.records.model import Actor, Noted, Run, TextScope, parts_of
from gistpoint.sessions.runs.blind_view import HIDDEN, blind_run, blind_step, reveals_outcome, search_blind
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.rendering import row_words
from gistpoint.sessions.runs.run_queries import has_content
from gistpoint.sessions.runs.searching import Query, search_document
from gistpoint.tui.screens.review.loading import has_error
from gistpoint.tui.screens.review.pages.texts import run_text
from gistpoint.tui.screens.review.step_view import compose


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[RunDocument]:
    root = tmp_path_factory.mktemp("runs")
    found: list[RunDocument] = []
    for made in make_all(root):
        for id in made.records:
            found.append(open_run(f"{made.path}#{id.replace('#', '%23')}" if id else str(made.path)))
    return found


def test_no_step_shows_its_model_or_the_outcome(runs: list[RunDocument]) -> None:
    revealing: set[str] = set()
    for document in runs:
        for step in document.steps():
            seen = blind_step(step)
            assert (seen.model, seen.cost, seen.also) == ("", None, ())
            assert seen.actor is not Actor.PERSON
            if not reveals_outcome(step):
                assert row_words(seen) == row_words(step)
                continue
            revealing.add(document.header.format)
            assert row_words(seen) == HIDDEN
            assert not has_error(seen)
            shown = compose(step, hides=True).text
            assert [text for _, _, text in parts_of(step) if len(text) > 8 and text in shown] == []
    assert {"breakpoint", "terminal-bench", "harbor", "inspect", "gistpoint", "claude-stream"} <= revealing


def test_no_search_finds_the_outcome(runs: list[RunDocument]) -> None:
    for document in runs:
        for step in document.steps():
            words = {
                word
                for scope, _, text in parts_of(step)
                if reveals_outcome(step) or scope is TextScope.ALSO
                for word in re.findall(r"[A-Za-z_]\w+", text)
            }
            for word in sorted(words, key=len)[-2:]:
                found = list(search_blind(document, Query(word)))
                every = [hit for hit in search_document(document, Query(word)) if hit.step is not None]
                assert not [hit for hit in found if reveals_outcome(document.step(hit.step or 0))]
                assert found == [
                    hit
                    for hit in every
                    if hit.scope is not TextScope.ALSO and not reveals_outcome(document.step(hit.step or 0))
                ]
                if not found:
                    assert not has_content(document, ("text", word), headers=False)


def test_the_page_of_a_run_shows_only_facts_that_reveal_nothing() -> None:
    kept = {
        "format",
        "format_version",
        "id",
        "task",
        "prompt",
        "started",
        "duration_s",
        "step_count",
        "tokens",
    }
    kept |= {"submissions", "naive", "derived", "links", "warnings", "not_shown"}
    secret = {field.name: "SECRET" for field in fields(Run) if field.type == "str" and field.name not in kept}
    more = {"suspicious": ("SECRET",), "extra": {"grade": "SECRET"}, "also": (Noted("grade", "SECRET"),)}
    run = replace(Run("swe-agent"), **secret, **more, actor=Actor.PERSON, score=0.123, cost=7.25)
    assert set(secret) >= {"model", "agent", "verdict", "confirmation", "exit_status", "submission"}
    shown = run_text(run, "/runs/SECRET-model/a.json", blind=True)
    assert not re.search(r"SECRET|0\.123|7\.25|person|^(actor|agent|model) ", shown, re.MULTILINE)
    assert "a.json" in shown
    changed = {
        field.name for field in fields(Run) if getattr(run, field.name) != getattr(blind_run(run), field.name)
    }
    assert changed == {*secret, *more, "actor", "score", "cost"}
