"""Every format is recognised by its content and yields as many records as a direct count."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

import pytest
from recorded_runs import make_all

from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import StepKind
from gistpoint.sessions.runs.opening import join_name, list_runs, open_run

ROOT = Path(tempfile.mkdtemp(prefix="gistpoint-runs-"))
atexit.register(shutil.rmtree, ROOT, ignore_errors=True)
MADE = {made.path.name: made for made in make_all(ROOT)}


@pytest.mark.parametrize("name", MADE)
def test_every_format_is_found_by_content_and_counts_right(name: str) -> None:
    made = MADE[name]
    listed = list(list_runs([made.path]))
    assert [entry.problem for entry in listed] == [""] * len(listed)
    assert {entry.header.format for entry in listed if entry.header} == {made.format}
    assert {entry.name for entry in listed} == {join_name(str(made.path), id) for id in made.records}
    for id, records in made.records.items():
        document = open_run(join_name(str(made.path), id))
        document.build()
        assert (document.record_count, document.step_count) == (records, made.steps[id])
        assert not document.warnings
        assert not [step.index for step in document.steps() if step.kind is StepKind.DAMAGED]


def test_a_folder_lists_all_its_runs() -> None:
    assert len(list(list_runs([ROOT]))) == sum(len(made.records) for made in MADE.values())


@pytest.mark.parametrize("name", MADE)
def test_an_id_that_is_not_listed_is_no_run(name: str) -> None:
    made = MADE[name]
    ids = [*made.records]
    near = (near for id in ids for near in (f"0{id}", f"{id}0", f"{id}x", f"{id} ", id[:-1], id.swapcase()))
    wrong = {"0", "1", "2", "99", "-1", "٣", "x", "attempt-9", "subagent-1", "1_epoch_9", *near}
    for id in sorted(wrong.difference(ids, [""])):
        with pytest.raises(RunFileError):
            pytest.fail(f"opened {open_run(join_name(str(made.path), id)).name}")
