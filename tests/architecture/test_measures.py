"""The measures of the code may only improve: `numbers.toml` has their limits, `measures.py` their figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from architecture.measures import (
    NUMBERS,
    Source,
    budgets,
    doubts,
    faults,
    held,
    read_module,
    tightened,
)
from project_files import source_files

pytestmark = pytest.mark.xdist_group("house")


def test_nothing_is_worse_than_its_number_and_no_number_lags_behind(source: Source) -> None:
    print("\n".join(budgets(source)))
    assert doubts(source) == []


def test_every_module_is_measured_and_every_measure_has_a_number(source: Source) -> None:
    assert sorted(module.path for module in source.modules.values()) == source_files()
    assert set(faults(source)) == set(held("counts"))


def test_a_raised_number_says_what_it_was_and_why() -> None:
    raised = [number for name in ("counts", "decisions a code line") for number in held(name).values()]
    assert all(number.was < number.limit and number.because for number in raised if number.was is not None)


def house(tmp_path: Path, files: dict[str, str]) -> Source:
    """Write a small checkout, and return its measured modules."""
    pages = {"docs/glossary.md": "| term | meaning |\n| --- | --- |\n| task | a question |\n"}
    for path, text in (pages | files).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return Source(tmp_path)


BRANCHES = """
def plain(): return 1

def many(x):
    \"\"\"Not code.\"\"\"
    # nor this
    for y in [z for z in x if z]:
        while y and x or y:
            try:
                y = 1 if x else 2
            except ValueError:
                pass
    match x:
        case 1:
            def inner(): return x if x else 0
        case _:
            pass
"""


def test_complexity_and_lines_are_those_that_the_definition_says() -> None:
    module = read_module("one", "core/one.py", BRANCHES)
    # for, comprehension and its if, while, and, or, conditional, except, two cases
    assert {f.name: f.complexity for f in module.functions} == {"plain": 1, "many": 11, "inner": 2}
    assert (module.lines.docstrings, module.lines.comments, module.lines.blank) == (1, 1, 2)


def test_each_fault_is_found(tmp_path: Path) -> None:
    source = house(
        tmp_path,
        {
            "core/a/__init__.py": "",
            "core/a/one.py": "from gistpoint.core.b import two\nfrom gistpoint.core.small import X\n",
            "core/b/two.py": "from gistpoint.core.a.one import X\nclass Named: pass\n",
            "core/small.py": "class Named: pass\nX = 1\n\n",
            "core/kinds/gist/model.py": "from gistpoint.core.kinds.gist.runs import Y\n",
            "tui/screens/first.py": (
                "import gistpoint.core.kinds.gist.model\nNAME = 'gistpoint.core.kinds.repair.model'\n"
                "def is_one(task, mode): return task.mode == 'gist' or mode == X or task.mode is Mode.GIST\n"
                "X = (1,\n  2)  # fmt: skip\n"
            ),
            "tui/widgets/second.py": (
                "class A: pass  # what is untold, the newest first\nclass BenchTold(A): pass\n"
                "class B(A): pass\nclass DeepScreen(B): pass\n"
            ),
        },
    )
    found = {name: places for name, places in faults(source).items() if places}
    assert found == {
        "modules below 80 lines that one other uses": ["gistpoint.core.small <- gistpoint.core.a.one"],
        "places that ask for the mode": ["gistpoint.tui.screens.first:3"] * 3,
        "modules outside core/kinds that name a kind": ["gistpoint.tui.screens.first:1,2"],
        "circles of modules": ["gistpoint.core.a.one, gistpoint.core.b.two"],
        "circles of packages": ["core/a, core/b"],
        "terms of the glossary": ["task"],
        "words that slide back": [
            "gistpoint.tui.widgets.second:1: , the newest first",
            "gistpoint.tui.widgets.second:2: bench",
            "gistpoint.tui.widgets.second:2: told",
        ],
        "lines that overrule the formatter": ["gistpoint.tui.screens.first:5"],
        "public class names with two meanings": ["Named: gistpoint.core.b.two, gistpoint.core.small"],
        "screens more than two classes deep": ["DeepScreen"],
    }


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ("Return a text in lower case.", "a text"),
        ("Return the texts of a step.", "texts of"),
        ("It runs in a process of its own.", "a process of its own"),
        ("Hold what is typed until then.", "what is typed"),
        ("The number of characters of a line.", "number of characters of"),
        ("The event that a tool was called.", "the event that a tool was"),
        ("None also if nothing was read.", "also if"),
        ("Number of the lines of a file.", '"""number of'),
        ("The number of lines of a file; return the event that names it.", None),
        ("Return a text field of a step; texts are drawn in their own pane.", None),
    ],
)
def test_phrases_are_found_within_a_line(line: str, phrase: str | None) -> None:
    sliding = read_module("one", "core/one.py", f'"""{line}"""\n').sliding
    assert sliding == (((1, phrase),) if phrase else ())


@pytest.mark.parametrize(
    ("number", "warn_if_doubtful"),
    [("0", "at most 0"), ("1", None), ("6", None), ("7", "only 1, the number is 7")],
)
def test_a_number_may_lag_a_little_and_never_be_exceeded(
    tmp_path: Path, number: str, warn_if_doubtful: str | None
) -> None:
    names = dict.fromkeys(held("counts"), "0") | {"terms of the glossary": number}
    text = "[counts]\n" + "".join(f'"{name}" = {value}\n' for name, value in names.items())
    text += '["decisions a code line"]\n"all" = 0\n["comment lines per 100 code lines"]\n"all" = 0\n'
    found = doubts(house(tmp_path, {"core/one.py": "X = 1\n"}), text)
    assert [warn_if_doubtful in line for line in found if warn_if_doubtful] == [True] * bool(warn_if_doubtful)
    assert len(found) == bool(warn_if_doubtful)
    gone = doubts(Source(tmp_path), text.replace('"circles of modules" = 0', '"circles of modules" = 1'))
    assert [line for line in gone if line.startswith("circles of modules: only 0")]


def test_tightening_only_lowers_numbers_and_removes_outdated_reasons(source: Source) -> None:
    text = NUMBERS.read_text(encoding="utf-8")
    terms = len(faults(source)["terms of the glossary"])

    def with_terms(value: str) -> str:
        return re.sub(r'(?m)^("terms of the glossary" = ).*$', lambda line: line[1] + value, text)

    def tight(value: str) -> str:
        return next(
            line for line in tightened(source, with_terms(value)).splitlines() if line.startswith('"terms')
        )

    assert tight(str(terms + 9)) == f'"terms of the glossary" = {terms}'
    assert tight(str(terms - 1)) == f'"terms of the glossary" = {terms - 1}'
    raised = '{{ limit = {}, was = {}, because = "so" }}'
    assert tight(raised.format(terms + 9, terms - 2)).endswith(raised.format(terms, terms - 2))
    assert tight(raised.format(terms + 9, terms + 2)) == f'"terms of the glossary" = {terms}'
    assert doubts(source, tightened(source, text)) == []
