"""Files of a codebase are read in their own encodings, for gists and for everything compared with them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gist_tasks import build_gist_task
from small_trees import tree_of

from gistpoint.core.code.source_text import python_text
from gistpoint.core.entrypoints.runs import OriginalRun, TestRun, TestsRun
from gistpoint.core.kinds.gist.flags import Flags
from gistpoint.core.kinds.gist.found_tests import found_tests
from gistpoint.core.kinds.gist.judge import sources_of
from gistpoint.core.kinds.gist.kind import Gist
from gistpoint.core.kinds.gist.original_test import ready_text
from gistpoint.core.kinds.gist.rates import Originals, line_existence
from gistpoint.core.kinds.gist.score import GistJudgement, GistScore
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.tasks.leaks import leaks_of
from gistpoint.core.tasks.model import Target

CODE = "NAME = 'élan'\n\n\ndef größe(x):\n    return x + 'ß'\n"
TEST = "def test_it():\n    assert größe('é') == 'éß'\n"
ENCODINGS = {
    "utf-8": lambda text: text.encode(),
    "with a mark": lambda text: text.encode("utf-8-sig"),
    "with a mark and CRLF": lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"),
    "declared": lambda text: f"# -*- coding: latin-1 -*-\n{text}".encode("latin-1"),
    "declared on the second line": lambda text: f"#!/bin/py\n# vim: fileencoding=cp1252 :\n{text}".encode("cp1252"),
    "declared as what it is": lambda text: f"# coding: utf-8\n{text}".encode(),
}  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lines_and_tests_are_those_that_python_reads(encoding: str, tmp_path: Path) -> None:
    encoded = ENCODINGS[encoding]
    tree = tree_of({"pkg.py": encoded(CODE), "test_pkg.py": encoded(TEST)}, tmp_path)
    originals = Originals(sources_of(tree))
    assert originals.unparsed == []
    report = line_existence(CODE + TEST, originals)
    assert (report.distinct.part, report.distinct.whole) == (5, 5)
    run = TestsRun(RunStatus.FINISHED, {"test_pkg.py::test_it": TestRun(Outcome.PASSED)})
    test = found_tests(tree, OriginalRun(run, 0.1))
    spliced = ready_text(f"{CODE}def test_it(): ...\n", test, ("pkg",))
    assert spliced is not None
    assert spliced.text == CODE + TEST


@pytest.mark.parametrize(
    "data", [b"x = '\xe9'\n", b"# coding: nonsense\nx = '\xe9'\n", b"# coding: utf-8\n\xe9"]
)
def test_a_file_that_python_can_not_decode_is_read_as_far_as_possible(data: bytes) -> None:
    assert python_text(data) == data.decode("utf-8", "replace")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_copy_of_the_original_is_found_in_every_encoding(encoding: str, tmp_path: Path) -> None:
    original = (
        "def settle(orders):\n"
        "    label = 'déjà réglé' if all(order.paid for order in orders) else 'à régler'\n"
        "    return label, sum(order.amount for order in orders)"
    )
    target = Target("money.py", "settle", original, "def settle(orders):\n    pass")
    encoded = ENCODINGS[encoding]
    files = {
        "money.py": encoded(target.corrupted),
        "old/copy.py": encoded(original),
        "logo.png": b"\x89PNG\0\xff",
    }
    (found,) = leaks_of(tree_of(files, tmp_path), (target,))
    assert found.startswith("old/copy.py contains the original lines")


def test_a_gist_with_a_mark_is_judged_without_it(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    seen: list[str] = []

    def judge(text: str) -> GistJudgement:
        seen.append(text)
        return GistJudgement(GistScore(None, False, None, None, None, None, Flags()))

    judging: Any = SimpleNamespace(task=task, judge=judge)
    for data in (CODE.encode(), CODE.encode("utf-8-sig"), b"\xef\xbb\xbf# \xe9"):
        Gist().rejudged(judging, {"test_gist.py": data})
    assert seen == [CODE, CODE, "# \udce9"]
