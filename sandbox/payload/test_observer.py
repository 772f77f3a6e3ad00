"""A pytest plugin that reports each test's output and exception, and any tampering with pytest itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from operator import attrgetter, is_
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import pytest

_STREAM = 100_000
_MESSAGE = 4000
_DEPTH = 200
_NESTED = 8
_CODE = attrgetter("__code__")


class TestObserver:
    """A plugin that reports the outcome of each test, and whether the run tampered with pytest or a test.

    `report` is called with the kind `outcome` for each test, with `tampered` once if pytest or a test was
    changed, and with `event` if an import of the codebase fails. `begin` is called before anything is
    collected. `finish` is called at the end of the session, and reports the measurements. `measure` is called
    with True before each test of the file at `path`, and with False after each test. `look` is called before
    and after each test of that file, with the global names that the test sees and its module. `guard`
    describes the test in the file: its lines `first` to `last`, or the lines in `places` by the qualified
    name of a test; whether it is `decorated`; `pytest_names`, the names that the file imports from pytest,
    each with the attribute of pytest that it must be bound to (an empty string for pytest itself); and
    `doctests`, the hashes of docstrings by name. `owned` are the top-level names of the codebase.
    """

    __test__ = False

    def __init__(
        self,
        report: Callable[..., None],
        begin: Callable[[], None],
        finish: Callable[[], None],
        measure: Callable[[bool], None],
        look: Callable[[Mapping[str, object], object], None],
        path: str,
        guard: Mapping[str, Any],
        owned: Iterable[str],
    ) -> None:
        self._report, self._begin, self._finish, self._measure, self._look = (
            report,
            begin,
            finish,
            measure,
            look,
        )
        self._path, self._guard, self._owned = path, guard, frozenset(owned)
        self._raised: list[str] | None = None
        self._phase = ""
        self._streams = ("", "")
        self._origin: dict[str, Any] = {}
        self._definitions: list[PytestParts] = []
        self._tampered = False
        self._function: object = None
        self.operands: Any = None
        """The observer of the values that the tests use (`operands.Operands`), or None."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Remember the functions and classes of pytest, and begin to measure."""
        # Recorded before any test module is imported, since its top level could replace parts of pytest.
        self._definitions = [PytestParts(*part) for part in _parts()]
        self._begin()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Pause measuring until the first test, and start the observer of the values that tests use."""
        self._measure(False)
        if self.operands is not None:
            self.operands.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure only the tests of the file, not the sentinels, whose outcomes are known beforehand."""
        self._origin = _origin(item)
        self._measure(str(item.path) == self._path)
        try:
            return (yield)
        finally:
            self._measure(False)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Forget the previous test's outcome."""
        self._raised, self._phase, self._streams, self._function = None, "", ("", ""), None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Check the names that the test sees, before and after it runs, and observe its values."""
        module = getattr(item, "module", None)
        if self.operands is not None and getattr(item, "dtest", None) is not None:
            self.operands.observe_doctest(item.dtest)  # type: ignore[attr-defined]
        if getattr(module, "__file__", None) != self._path:
            return (yield)
        function = self._test_in(_function_of(item), _qualname(item))
        names = getattr(function, "__globals__", None) or vars(module)
        self._look(names, module)
        # Checked before the call too: what replaces the test or a part of pytest could undo that when called.
        self._check()
        self._check_test(item)
        if self.operands is not None:
            self.operands.observe(function)
            self.operands.begin(function, names)
            self._function = function
        try:
            return (yield)
        finally:
            self._look(names, module)
            if self.operands is not None:
                self.operands.end(function, names)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep the type and message of a phase's exception, which the report has only within a string."""
        report = yield
        if call.excinfo is not None and self._raised is None:
            kind = call.excinfo.type
            self._phase = call.when
            self._raised = [f"{kind.__module__}.{kind.__qualname__}", str(call.excinfo.value)[:_MESSAGE]]
        # Checked right after the call as well: a later test could restore what this test replaced.
        if call.when == "call":
            self._check()
            self._check_test(item)
            if self.operands is not None and report.passed:
                self.operands.require_called(self._function, item.name)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the captured output: the report of each phase contains all output up to then."""
        self._streams = (report.capstdout, report.capstderr)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Report the outcome of the test."""
        out, err = (_bounded(text) for text in self._streams)
        observed = {"raised": self._raised, "phase": self._phase, "stdout": out, "stderr": err}
        self._report("outcome", id=nodeid, **observed, **self._origin)

    def pytest_exception_interact(self, call: pytest.CallInfo[Any]) -> None:
        """Report a failed import of the codebase, since the import blocker may have been removed earlier."""
        error = call.excinfo.value if call.excinfo is not None else None
        for _ in range(_DEPTH):
            if error is None:
                return
            name = getattr(error, "name", None) if isinstance(error, ImportError) else None
            if isinstance(name, str) and name.partition(".")[0] in self._owned:
                self._report("event", what="import", name=name)
                return
            # The chain is followed because a library may catch the ImportError and raise another error.
            error = error.__cause__ or error.__context__

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Check pytest one last time, and report the measurements."""
        self._check()
        self._finish()

    def _check(self) -> None:
        if self._tampered:
            return
        for definitions in self._definitions:
            if not definitions.are_unchanged():
                self._report_tampering(f"{definitions.replaced()} was replaced")
                return

    def _check_test(self, item: pytest.Item) -> None:
        doctest = getattr(item, "dtest", None)
        if doctest is not None:
            self._check_doctest(doctest)
            return
        module = getattr(item, "module", None)
        if self._tampered or not self._guard or getattr(module, "__file__", None) != self._path:
            return
        for name, attribute in self._guard["pytest_names"].items():
            wanted = getattr(pytest, attribute, None) if attribute else pytest
            if getattr(module, name, wanted) is not wanted:
                self._report_tampering(f"{name} is not that of pytest")
                return
        if self._test_in(_function_of(item), _qualname(item)) is None:
            self._report_tampering(f"{item.name} is not the test that was put in")

    def _check_doctest(self, doctest: Any) -> None:
        # A doctest has no function whose lines could be checked, so the hash of its docstring is.
        name = self._origin.get("doctest")  # after the run, the doctest no longer has its module's name
        wanted = self._guard.get("doctests", {}).get(name) if self._guard else None
        if not self._tampered and wanted is not None and _docstring_sha256(doctest.docstring) != wanted:
            self._report_tampering(f"the docstring of {doctest.name} is not the one that was put in")

    def _test_in(self, function: object, qualname: str) -> object | None:
        """Return the test beneath the decorators of the function that pytest calls; None if none is found."""
        if not self._guard:
            return None
        places = self._guard.get("places") or {}
        first, last = places.get(qualname, (0, 0)) if places else (self._guard["first"], self._guard["last"])
        # Breadth first: the outermost function on the test's own lines is the one that pytest was given.
        waiting = [function]
        seen: set[int] = set()
        while waiting and len(seen) < _DEPTH:
            found = waiting.pop(0)
            if found is None or id(found) in seen:
                continue
            seen.add(id(found))
            code = getattr(found, "__code__", None)
            if isinstance(code, CodeType) and self._is_in_file(code, first, last):
                return found
            waiting += self._wrapped_in(found)
        return None

    def _is_in_file(self, code: CodeType, first: int, last: int) -> bool:
        return code.co_filename == self._path and first <= code.co_firstlineno <= last

    def _wrapped_in(self, function: object) -> list[object]:
        """Return the objects that a function may wrap; only a decorated test can be in a closure."""
        names = ["__wrapped__", "__func__"]
        cells: Iterable[Any] = ()
        if self._guard["decorated"]:
            names += ["func", "function", "__call__"]
            cells = getattr(function, "__closure__", None) or ()
        return [*(getattr(function, name, None) for name in names), *map(_content, cells)]

    def _report_tampering(self, what: str) -> None:
        self._tampered = True
        self._report("tampered", what=what)


class PytestParts:
    """The functions and classes of one module or class of pytest, as they were before the tested code ran."""

    def __init__(self, holder: Any, values: Mapping[str, Any]) -> None:
        self._holder = holder
        self._names, self._values = tuple(values), tuple(values.values())
        self._functions = tuple(value for value in self._values if isinstance(value, FunctionType))
        self._codes = tuple(function.__code__ for function in self._functions)

    def are_unchanged(self) -> bool:
        """Whether each name has the same value as before, and each function the same code."""
        # Compared without a loop in Python: a run does this for 1,700 names after each test.
        now = map(self._holder.__dict__.get, self._names)
        return all(map(is_, now, self._values)) and all(map(is_, map(_CODE, self._functions), self._codes))

    def replaced(self) -> str:
        """Return the qualified name of a definition that has changed."""
        # Without `strict`, which Python 3.8 does not know; the lengths are equal.
        codes = dict(zip(self._functions, self._codes))  # noqa: B905
        for name, value in zip(self._names, self._values):  # noqa: B905
            now = self._holder.__dict__.get(name)
            if now is not value or getattr(value, "__code__", None) is not codes.get(value):
                return f"{getattr(self._holder, '__name__', self._holder)}.{name}"
        return f"A part of {getattr(self._holder, '__name__', self._holder)}"  # restored in the meantime


def _parts() -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the modules and classes of pytest, each with the functions, classes and methods in it by name."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in ("pytest", "_pytest") or not isinstance(module, ModuleType):
            continue
        found = {key: value for key, value in list(vars(module).items()) if _is_of_pytest(value)}
        yield module, found
        for value in found.values():
            if isinstance(value, type) and value.__module__ == name:
                methods = list(vars(value).items())
                yield value, {key: member for key, member in methods if isinstance(member, FunctionType)}


def _is_of_pytest(value: object) -> bool:
    return isinstance(value, (FunctionType, type)) and str(value.__module__).startswith("_pytest")


def _function_of(item: pytest.Item) -> object:
    """Return the function of a test, which some items have as `obj`; None if there is none."""
    return getattr(item, "function", None) or getattr(item, "obj", None)


def _qualname(item: pytest.Item) -> str:
    """Return the qualified name of a test, without its parameters."""
    return item.nodeid.partition("[")[0].partition("::")[2].replace("::", ".")


def _name_of_doctest(doctest: Any) -> str:
    module = str(doctest.globs.get("__name__", ""))
    name = str(doctest.name)
    return name[len(module) :].lstrip(".") if name.startswith(module) else name


def _docstring_sha256(text: object) -> str:
    import hashlib

    lines = [line.strip() for line in str(text or "").strip().splitlines()]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def _origin(item: pytest.Item) -> dict[str, Any]:
    """Return where a test is defined, and hashes of the data that it was made from.

    `at` is a list of the relative path and the first line, or None outside of the repository; `fixed` has the
    hashes, separated by spaces. A doctest has only its name, as `doctest`.
    """
    doctest = getattr(item, "dtest", None)
    if doctest is not None:
        return {"doctest": _name_of_doctest(doctest)}
    function = _function_of(item)
    root = os.path.realpath(str(item.config.rootpath)) + os.sep
    place: list[object] | None = None
    fixed: list[str] = []
    for _ in range(_DEPTH):
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            path = os.path.realpath(code.co_filename)
            place = (
                [path[len(root) :].replace(os.sep, "/"), code.co_firstlineno]
                if path.startswith(root)
                else None
            )
            # Tests made in a loop share one code object, and differ only in their data.
            fixed += [_fixed(function, code)] if place else []
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if inner is None:
            break
        function = inner
    return {"at": place, "fixed": " ".join(fixed).strip()}


def _fixed(function: object, code: CodeType) -> str:
    """Return a hash of the plain data in a function made by another function: its closure and defaults.

    Returns an empty string if the function has no such data.
    """
    if "<locals>" not in str(getattr(function, "__qualname__", "")) and not getattr(
        function, "__closure__", None
    ):
        return ""
    cells = getattr(function, "__closure__", None) or ()
    found = {name: _content(cells[n]) for n, name in enumerate(code.co_freevars)}
    if "<locals>" in str(getattr(function, "__qualname__", "")):
        found["()"] = getattr(function, "__defaults__", None) or ()
        found["{}"] = getattr(function, "__kwdefaults__", None) or {}
    described = {name: _plain(value, _NESTED) for name, value in found.items()}
    texts = {name: text for name, text in described.items() if text is not None}
    if not texts:
        return ""
    import hashlib

    return hashlib.sha256(repr(sorted(texts.items())).encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: object, depth: int) -> str | None:
    """Return a string for plain data; None for any other value.

    In the string, parts that are not plain data, or are nested deeper than `depth`, appear as `None`.
    """
    if value is None or type(value) in (str, bytes, int, float, complex, bool):
        return repr(value)
    if depth == 0:
        return None
    if type(value) in (list, tuple, set, frozenset):
        parts: list[str | None] = [_plain(one, depth - 1) for one in value]  # type: ignore[attr-defined]
        if type(value) in (set, frozenset):
            # The order in which a set is iterated depends on the hash seed.
            parts.sort(key=str)
    elif type(value) is dict:
        parts = [_plain(one, depth - 1) for pair in value.items() for one in pair]
    else:
        return None
    return f"{type(value).__name__}({', '.join(str(part) for part in parts)})"


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _bounded(text: str) -> str:
    if len(text) <= _STREAM:
        return text
    import hashlib

    digest = hashlib.sha256(text[_STREAM:].encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_STREAM]}\n[{len(text) - _STREAM} characters more, sha256 {digest}]\n"
