"""The results of a probe, joined with test map and call graph."""

from __future__ import annotations

from pathlib import Path

from fake_benches import Shop

from gistpoint.core.generation.trials.evidence import evidence_of, function_of_test
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeFailure, ProbeReport
from gistpoint.core.tasks.model import Target


def test_test_is_named_as_the_call_graph_names_it() -> None:
    assert function_of_test("tests/t.py::TestA::test_b[x::y[1]]") == "tests/t.py::TestA.test_b"
    assert function_of_test("tests/t.py::test_b") == "tests/t.py::test_b"


def test_evidence_counts_failures_and_steps_from_the_tests(tmp_path: Path) -> None:
    shop = Shop(
        tmp_path, tests="import shop\n\n\ndef test_bill():\n    shop.bill([], 1)\n\n\ndef test_price(): ...\n"
    )
    failed = {
        "tests/test_shop.py::test_bill[1]": ProbeFailure("one", assertion=True),
        "tests/test_shop.py::test_bill[2]": ProbeFailure("two", through_target=True),
        "tests/test_shop.py::test_price[0]": ProbeFailure("two", assertion=True),
    }
    target = Target("shop.py", "price", "def price(a):\n    b\n    c", "def price(a):\n    x\n    c")
    evidence = evidence_of(ProbeReport(RunStatus.FINISHED, failed, 9, 0.1), target, shop.library())
    assert (evidence.failing, evidence.by_assertion, evidence.through_target) == (3, 2, 1)
    assert evidence.entering == 16
    assert evidence.distances == (2, 2, None)
    assert (evidence.own_tests, evidence.messages, evidence.changed_lines) == (1, 2, 1)
    assert evidence.rank is not None
