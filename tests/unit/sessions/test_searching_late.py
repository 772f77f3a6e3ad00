"""A search finds the same text however much of a run's index is known when it begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_runs import make_all

from gistpoint.sessions.runs import document as document_module
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.searching import Hit, Query, search_document


def hits_of(name: str, query: Query, *, indexed: bool) -> list[Hit]:
    document = open_run(name)
    if indexed:
        document.build()
    return sorted(search_document(document, query), key=lambda hit: (hit.step is None, str(hit)))


@pytest.fixture(params=["slow", "fast"], autouse=True)
def speed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Index one record at a time, as on a busy machine, or a whole run at once."""
    monkeypatch.setattr(document_module, "_SLICE_S", -1.0 if request.param == "slow" else 60.0)


@pytest.mark.parametrize("pattern", ["a", "result", r"[\w/]+\.py"])
def test_runs_of_all_formats_are_searched_whole_at_any_speed(tmp_path: Path, pattern: str) -> None:
    make_all(tmp_path)
    query, found = Query(pattern, regex="+" in pattern), 0
    for listed in list_runs([tmp_path]):
        hits = hits_of(listed.name, query, indexed=False)
        assert hits == hits_of(listed.name, query, indexed=True), listed.name
        found += len(hits)
    assert found


@pytest.mark.parametrize("between", [0, 10, 300])
@pytest.mark.parametrize("pattern", ["needle", "needle|nothing", "dle"])
def test_a_result_is_found_however_late_it_is_recorded(tmp_path: Path, between: int, pattern: str) -> None:
    id = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "find needle"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "a needle is here"}
    messages = [
        ("user", "look for it"),
        ("assistant", [id]),
        *(("user", f"message {number}") for number in range(between)),
        ("user", [answer]),
    ]
    lines = [
        {
            "type": role,
            "uuid": str(number),
            "sessionId": "s",
            "version": "2.0.0",
            "message": {"role": role, "content": content},
        }
        for number, (role, content) in enumerate(messages)
    ]
    run = tmp_path / "run.jsonl"
    run.write_text("\n".join(map(json.dumps, lines)))
    hits = hits_of(str(run), Query(pattern, regex="|" in pattern), indexed=False)
    assert [(hit.step, hit.scope.value) for hit in hits] == [(1, "call"), (1, "result")]
