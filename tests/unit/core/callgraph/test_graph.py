"""The graph as a value: names, reasons, certainty, odd files, joined runs and drawings."""

import random
import sys
import threading
from pathlib import Path

import pytest
from code_corpus import __file__ as corpus_file

from gistpoint.core.callgraph import (
    CallEdge,
    CallEvidence,
    CallGraph,
    CallRecordError,
    CodeLocation,
    ObservedCall,
    build_call_graph,
    draw_neighbourhood,
    read_calls,
    read_folder,
    resolve_calls,
    write_calls,
)
from gistpoint.core.callgraph.graph import SURENESS
from gistpoint.core.code.index import DefinitionKind, index_source

SOURCE = b"""\
import functools

class Stack:
    def __init__(self):
        self.items = []

    @property
    def top(self):
        return self.items[-1]

    @functools.lru_cache
    def push(self, item):
        def check():
            return self.top
        return [check() for _ in (1, 2)]

def use(stack: Stack):
    return list(map(lambda item: stack.push(item), [1]))

def use(stack):
    stack.push(2)

def again(stack: Stack):
    use(Stack())
"""


def graph() -> CallGraph:
    return build_call_graph({"pkg/stack.py": SOURCE})


def test_nodes_carry_kind_and_lines() -> None:
    nodes = graph().nodes
    push = nodes["pkg/stack.py::Stack.push"]
    assert (push.kind, push.first_line, push.def_line, push.last_line) == ("method", 11, 12, 15)
    assert nodes["pkg/stack.py::Stack.top"].kind == "property"
    assert nodes["pkg/stack.py::use#2"].def_line == 20
    assert nodes["pkg/stack.py::<module>"].is_module


def test_names_are_those_of_the_index() -> None:
    sources = {
        "a.py": SOURCE,
        "b.py": b"class A: ...\ndef A():\n    def x(): ...\n    def x(): ...\nx = lambda: 0\n",
    }
    for path in (Path(corpus_file), Path(__file__)):
        sources[path.name] = path.read_bytes()
    ours = {node.id for node in build_call_graph(sources).functions()}
    theirs = {
        f"{path}::{item.ref.qualname}"
        for path, source in sources.items()
        for item in index_source(path, source).definitions
        if item.kind is not DefinitionKind.CLASS
    }
    assert ours == theirs


def test_an_edge_says_how_it_was_found_and_how_sure_it_is() -> None:
    found = {(edge.caller[14:], edge.callee[14:]): edge for edge in graph().edges}
    assert found["Stack.push.<locals>.check", "Stack.top"].found == (CallEvidence.PROPERTY,)
    assert found["again", "Stack.__init__"].found == (CallEvidence.CONSTRUCTOR,)
    assert found["use", "Stack.push"].sureness == SURENESS[CallEvidence.METHOD]
    assert set(SURENESS) == set(CallEvidence)
    assert all(0 < sure <= 1 for sure in SURENESS.values())


def test_weak_calls_can_be_dropped() -> None:
    weak = build_call_graph(
        {"m.py": b"class C:\n    def odd(self): ...\ndef f(x): x.odd()\ndef g(x): f(x)\n"}
    )
    assert {(edge.caller, edge.callee) for edge in weak.edges} == {
        ("m.py::f", "m.py::C.odd"),
        ("m.py::g", "m.py::f"),
    }
    assert [edge.callee for edge in weak.at_least(SURENESS[CallEvidence.DIRECT]).edges] == ["m.py::f"]


def test_networkx_has_the_attributes() -> None:
    made = graph().to_networkx()
    assert made.nodes["pkg/stack.py::Stack.push"]["last_line"] == 15
    assert made.edges["pkg/stack.py::use", "pkg/stack.py::Stack.push"]["found"] == ("method",)
    assert "pkg/stack.py::<module>" not in graph().to_networkx(modules=False)


def test_the_order_of_files_changes_nothing() -> None:
    files = {f"p/m{n}.py": SOURCE.replace(b"Stack", b"Stack%d" % n) for n in range(6)}
    files["p/__init__.py"] = b"from .m1 import *\nfrom .m2 import *\n"
    first = build_call_graph(files)
    for seed in range(3):
        paths = list(files)
        random.Random(seed).shuffle(paths)
        assert build_call_graph({path: files[path] for path in paths}) == first


@pytest.mark.parametrize(
    "source",
    [
        b"def f(:\n",
        b"\xff\xfe\x00",
        b"x = '\x00'",
        b"# coding: nonsense\nx = 1\n",
        b"def f():\n\tx\n        y\n",
    ],
)
def test_a_file_that_does_not_parse_is_named(source: bytes) -> None:
    made = build_call_graph({"bad.py": source, "good.py": b"def f(): g()\ndef g(): ...\n"})
    assert list(made.skipped) == ["bad.py"]
    assert made.skipped["bad.py"]
    assert [(edge.caller, edge.callee) for edge in made.edges] == [("good.py::f", "good.py::g")]


def test_deep_expressions() -> None:
    limit = sys.getrecursionlimit()
    deep = b"def f(): return " + b" + ".join([b"g()"] * 2500) + b"\ndef g(): ...\n"
    made = build_call_graph({"deep.py": deep})
    assert [(edge.caller, edge.callee) for edge in made.edges] == [("deep.py::f", "deep.py::g")]
    assert sys.getrecursionlimit() == limit


def test_a_file_that_this_python_can_not_parse_is_named() -> None:
    """Python 3.12 has a lower limit than those before and after it, which also keeps it from importing the file."""
    made = build_call_graph({"deep.py": b"def f(): return " + b" + ".join([b"f()"] * 9000) + b"\n"})
    assert bool(made.edges) != ("deep.py" in made.skipped)


def test_an_expression_too_deep_for_any_stack_is_skipped_or_read_but_never_fatal() -> None:
    deeper = b"x = " + b"-" * 200_000 + b"1\n"
    made = build_call_graph({"deeper.py": deeper, "ok.py": b"def f(): f()\n"})
    assert ("ok.py::f", "ok.py::f") in {(edge.caller, edge.callee) for edge in made.edges}


def test_odd_but_valid_files() -> None:
    files = {
        "empty.py": b"",
        "crlf.py": b"def f():\r\n    g()\r\ndef g():\r\n    pass\r\n",
        "bom.py": b"\xef\xbb\xbfdef f(): ...\n",
        "latin.py": b"# coding: latin-1\nx = '\xe9'\ndef f(): ...\n",
        "cycle_a.py": b"from cycle_b import *\nclass A(B): ...\n",
        "cycle_b.py": b"from cycle_a import *\nclass B(A): ...\n",
        "self_base.py": b"class C(C): ...\nx = x\nimport self_base\nself_base.self_base.C()\n",
        "conflict.py": b"class A: ...\nclass B(A): ...\nclass C(A, B): ...\nC().m()\n",
        "outside.py": b"def f():\n    yield\nawait_ = 1\ndel await_\nreturn_ = [*()]\n",
        "data.txt": b"not python",
    }
    made = build_call_graph(files)
    assert not made.skipped
    assert "data.txt::<module>" not in made.nodes


def test_two_threads_at_once() -> None:
    results: list[CallGraph] = []
    threads = [threading.Thread(target=lambda: results.append(graph())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [graph()] * 3


def test_a_folder(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.py").write_bytes(b"x")
    (tmp_path / "a" / "c.txt").write_bytes(b"x")
    assert read_folder(tmp_path) == {"a/b.py": b"x"}


def test_observed_calls_join_the_static_ones() -> None:
    inner = CodeLocation("pkg/stack.py", 18, "use.<locals>.<lambda>")
    calls = [
        ObservedCall(inner, CodeLocation("pkg/stack.py", 11, "Stack.push"), 3),
        ObservedCall(
            CodeLocation("pkg/stack.py", 20, "use"), CodeLocation("pkg/stack.py", 4, "Stack.__init__"), 1
        ),
        ObservedCall(
            CodeLocation("elsewhere.py", 1, "f"), CodeLocation("pkg/stack.py", 4, "Stack.__init__"), 1
        ),
        ObservedCall(CodeLocation("pkg/stack.py", 17, "use"), inner, 9),
    ]
    static = graph()
    joined = static.with_observed(resolve_calls(static, read_calls(write_calls(calls))))
    known = {(edge.caller[14:], edge.callee[14:]): edge for edge in joined.edges}
    assert known["use", "Stack.push"] == CallEdge(
        "pkg/stack.py::use", "pkg/stack.py::Stack.push", (CallEvidence.METHOD, CallEvidence.OBSERVED), 3
    )
    assert known["use#2", "Stack.__init__"].found == (CallEvidence.OBSERVED,)
    assert known["use#2", "Stack.__init__"].sureness == 1.0
    assert ("use", "use") not in known
    assert len(joined.edges) == len(static.edges) + 1


@pytest.mark.parametrize(
    "lines",
    [
        ["not json"],
        ['{"format": "other", "version": 1}'],
        ['{"format": "gistpoint-calls", "version": 2}'],
        ['{"format": "gistpoint-calls", "version": 1}', "[1, 2]"],
        ["[]"],
    ],
)
def test_a_record_that_is_none_is_refused(lines: list[str]) -> None:
    with pytest.raises(CallRecordError):
        list(read_calls(lines))


def test_a_drawing_shows_both_sides_and_survives_hostile_names() -> None:
    text = draw_neighbourhood(graph(), "pkg/stack.py::Stack.push", depth=2)
    above, below = text.split("●")
    assert "pkg/stack.py::use  [method, 0." in above
    assert "Stack.push.<locals>.check" in below
    assert "Stack.top" in below
    hostile = build_call_graph({"a\x1b[2J.py": b"def f(): g()\ndef g(): ...\n"})
    assert "\x1b" not in draw_neighbourhood(hostile, "a\x1b[2J.py::f")


def test_a_drawing_of_many_neighbours_is_bounded() -> None:
    many = "".join(f"def g{n}(): ...\n" for n in range(50)) + "def f():\n"
    many += "".join(f"    g{n}()\n" for n in range(50))
    text = draw_neighbourhood(build_call_graph({"m.py": many.encode()}), "m.py::f", most=10)
    assert "and 40 more" in text
