from __future__ import annotations

import textwrap

from msgspec import structs

from gistpoint.core.attempts.state import AttemptState, Submission
from gistpoint.core.kinds.kind import ExpectedText
from gistpoint.core.tools.declaration import Replacement
from gistpoint.tui.screens.summary import compared

TRUE = '''\
def reach(self, origin):
    """Return what can be reached.

    One line more.
    """
    text = """
  kept as it is
"""
    return {origin: text}
'''


def page(original: str, submitted: str) -> tuple[str, str, str]:
    expected = ExpectedText("network.py::Network.reach", original.replace("origin:", "None:"), original)
    submission = Submission(1, "call-1", Replacement("network.py", "Network.reach", submitted))
    (found,) = compared((expected,), structs.replace(AttemptState(), submissions=(submission,)))
    return found.yours, found.true, found.legend


def test_the_true_function_and_the_solvers_are_compared_at_one_margin() -> None:
    indented = textwrap.indent(TRUE, "    ", lambda line: "kept" not in line and line != '"""\n')
    for original in (TRUE, indented):
        for submitted in (TRUE, indented, f"{indented}\n\n", indented.replace("\n", "\r\n")):
            yours, true, legend = page(original, submitted)
            assert yours == true == TRUE
            assert "which is correct" in legend


def test_what_differs_is_kept_and_code_that_is_none_is_compared_too() -> None:
    yours, true, legend = page(TRUE, "    def reach(self, origin):\n        return {}\n")
    assert (yours, true) == ("def reach(self, origin):\n    return {}\n", TRUE)
    assert "- as you last wrote it" in legend
    assert page(TRUE, "    nonsense (\n      more")[0] == "nonsense (\n  more\n"
