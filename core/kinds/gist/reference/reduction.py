"""Reduction of a faithful gist: first cuts code that never ran, then unused names, then whatever else can go."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.core.code.parsing import compile_module, parse
from gistpoint.core.code.scopes import bound_names
from gistpoint.core.kinds.gist.lines import (
    any_within,
    column_of,
    dedented,
    first_line,
    indented,
    last_line,
    physical_lines,
    type_of_function,
)

KEPT = "_kept"
"""Suffix of the names under which glue keeps an object that a rival's definition hides for a while."""


@dataclass(frozen=True, slots=True)
class Span:
    """Physical lines `first` to `last`, replaced by `text`."""

    first: int
    last: int
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """Spans that are cut together; `label` identifies the cut, so that a failed one is not tried again."""

    label: str
    spans: tuple[Span, ...]
    risky: bool = False
    """Whether code that ran names the thing cut, or a base class may need it."""


def apply_cuts(text: str, cuts: Sequence[Cut]) -> str:
    """Return `text` with the spans of all cuts replaced; of nested spans the outer one counts."""
    lines = physical_lines(text)
    spans = sorted({s for cut in cuts for s in cut.spans}, key=lambda span: (span.first, -span.last))
    result: list[str] = []
    line = 1
    for span in spans:
        if span.first < line:
            continue
        result.extend(lines[line - 1 : span.first - 1])
        result.extend(span.text)
        line = span.last + 1
    return "\n".join([*result, *lines[line - 1 :]]) + "\n"


class CutFinder:
    """Finds cuts in one text, given the physical lines of it that ran; the test named `test` is left alone."""

    def __init__(self, text: str, executed: Collection[int], test: str, rejected: Collection[str] = ()) -> None:
        self.lines = physical_lines(text)
        self.tree = parse(text)
        self.seen = sorted(executed)
        self.test = test
        self.rejected = frozenset(rejected)
        self._heirs: set[str] = set()
        self._live_words = self._words(only_live=True)

    def idle(self) -> list[Cut]:
        """Return cuts of code that never ran: statements, branches, methods, functions."""
        return self._untried(self._in_body(self.tree.body, ""))

    def unused(self) -> list[Cut]:
        """Return cuts of top-level imports, assignments and definitions whose names occur nowhere else."""
        found: list[Cut] = []
        words = self._words()
        for statement in self.tree.body:
            names = _bound_names(statement)
            if not names or self._is_test(statement, "") or _is_future(statement):
                continue
            own = self._words(statement)
            if all(words.get(name, 0) <= own.get(name, 0) for name in names) and self._whole(statement):
                found.append(self._deletion(statement, ""))
        return self._untried(found)

    def restored(self) -> list[Cut]:
        """Return cuts of the glue that keeps a name and rebinds it after a rival's definition."""
        groups: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=value)) if self._whole(statement):
                    kept = next((name for name in (target, value) if name.endswith(KEPT)), "")
                    if kept:
                        groups.setdefault(kept, []).append(statement)
        return self._untried(
            Cut(f"restored {kept}", tuple(map(self._span, group)), True) for kept, group in groups.items()
        )

    def statements(self) -> list[Cut]:
        """Return a cut for every top-level statement, last one first."""
        found = [
            self._deletion(statement, "")
            for statement in reversed(self.tree.body)
            if not (self._is_test(statement, "") or _is_future(statement)) and self._whole(statement)
        ]
        return self._untried(found)

    def _untried(self, cuts: Iterable[Cut | None]) -> list[Cut]:
        return [cut for cut in cuts if cut is not None and cut.label not in self.rejected]

    def _words(self, node: ast.AST | None = None, *, only_live: bool = False) -> dict[str, int]:
        counts: dict[str, int] = {}
        for child in ast.walk(node or self.tree):
            if only_live and not self._is_live(child):
                continue
            match child:
                case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
                    names = [word]
                case ast.Constant(value=str(value)):
                    names = value.replace(".", " ").replace("[", " ").replace("]", " ").split()
                case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                    names = [word]
                case ast.alias():
                    names = [child.asname or child.name.partition(".")[0]]
                case ast.Global(names=words):
                    names = list(words)
                case _:
                    names = []
            for name in names:
                counts[name] = counts.get(name, 0) + 1
        return counts

    def _is_live(self, node: ast.AST) -> bool:
        """Whether the use of a name is on lines that ran; the name of a definition does not count."""
        return isinstance(node, ast.expr) and self._ran(node)

    def _ran(self, *nodes: ast.stmt | ast.expr) -> bool:
        """Whether a line of consecutive nodes ran."""
        return bool(nodes) and any_within(self.seen, first_line(nodes[0]), last_line(nodes[-1]))

    def _is_test(self, statement: ast.stmt, prefix: str) -> bool:
        name = prefix + str(getattr(statement, "name", ""))
        return bool(self.test) and (self.test == name or (self.test.startswith(name + ".") and name != prefix))

    def _whole(self, statement: ast.stmt) -> bool:
        """Whether the statement shares its physical lines with no other statement."""
        first, last = self.lines[statement.lineno - 1], self.lines[last_line(statement) - 1]
        before = first[: column_of(first, statement.col_offset)].strip()
        after = last[column_of(last, statement.end_col_offset or 0) :].strip()
        return (not before or first_line(statement) < statement.lineno) and (not after or after.startswith("#"))

    def _deletion(self, statement: ast.stmt, prefix: str) -> Cut:
        return Cut(f"{prefix}-{ast.unparse(statement)}", (self._span(statement),))

    def _span(self, statement: ast.stmt) -> Span:
        first = first_line(statement)
        while first > 1 and self.lines[first - 2].strip().startswith("#"):
            first -= 1
        return Span(first, last_line(statement))

    def _in_body(self, body: list[ast.stmt], prefix: str) -> Iterator[Cut]:
        rest: list[ast.stmt] = []
        cuts: list[Cut] = []
        emptied: list[Cut | None] = []
        for statement in body:
            cut = None if self._is_test(statement, prefix) else self._of_whole(statement, body, prefix)
            if cut is not None and cut.label not in self.rejected:
                cuts.append(cut)
                if cut.risky and isinstance(statement, type_of_function):
                    emptied.append(self._emptied(statement, f"{prefix}{statement.name}."))
            else:
                rest.append(statement)
        if not rest and body is not self.tree.body and cuts:
            rest.append(body[-1])
            cuts = [cut for cut in cuts if self._span(body[-1]) not in cut.spans]
        yield from cuts
        yield from self._untried(emptied)
        for statement in rest:
            if self.test != prefix + str(getattr(statement, "name", "\0")):
                yield from self._within(statement, prefix)

    def _of_whole(self, statement: ast.stmt, body: list[ast.stmt], prefix: str) -> Cut | None:
        if not self._whole(statement) or _is_docstring(statement):
            return None
        if isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal) or _is_future(statement):
            return None
        if isinstance(statement, type_of_function):
            alike = [s for s in body if isinstance(s, type_of_function) and s.name == statement.name]
            if any(self._ran(*_code(s.body)) or s.body[0].lineno == s.lineno for s in alike):
                return None
            if statement.name in self._live_words and not prefix:
                return None
            spans = tuple(self._span(s) for s in alike if self._whole(s))
            risky = statement.name in self._live_words or prefix in self._heirs or statement.name.startswith("__")
            return Cut(f"{prefix}def {statement.name}", spans, risky)
        if (
            isinstance(statement, ast.If)
            and not statement.orelse
            and all(isinstance(one, ast.Pass) for one in statement.body)
        ):
            return self._deletion(statement, prefix)
        if not self._ran(statement):
            annotation = isinstance(statement, ast.AnnAssign) and statement.value is None
            return None if annotation else self._deletion(statement, prefix)
        if isinstance(statement, ast.If | ast.For | ast.While) and not statement.orelse:
            idle = self._separate(statement.body, statement) and not self._ran(*statement.body)
            return self._deletion(statement, prefix) if idle else None
        return None

    def _separate(self, body: Sequence[ast.stmt], parent: ast.stmt) -> bool:
        return bool(body) and first_line(body[0]) > parent.lineno

    def _within(self, statement: ast.stmt, prefix: str) -> Iterator[Cut]:
        if isinstance(statement, ast.If) and statement.orelse and self._separate(statement.body, statement):
            branch = self._untried([self._branch(statement, prefix)])
            yield from branch
            if branch:
                return
        name = getattr(statement, "name", "")
        inner = f"{prefix}{name}." if name else prefix
        if isinstance(statement, ast.ClassDef) and statement.bases:
            self._heirs.add(inner)
        if isinstance(statement, type_of_function) and not self._ran(*_code(statement.body)):
            yield from self._untried([self._emptied(statement, inner)])
            return
        for name in ("body", "orelse", "finalbody"):
            yield from self._in_body(getattr(statement, name, []), inner)
        cases = statement.cases if isinstance(statement, ast.Match) else []
        any_ran = any(self._ran(*case.body) for case in cases)
        for case in cases:
            if any_ran and not self._ran(*case.body):
                span = Span(case.pattern.lineno, last_line(case.body[-1]))
                yield Cut(f"{inner}case {ast.unparse(case.pattern)}", (span,))
            else:
                yield from self._in_body(case.body, inner)

    def _emptied(self, function: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> Cut | None:
        """Cut everything but the docstring, or but one statement, from a function that never ran."""
        code = _code(function.body)
        if len(code) == len(function.body):
            simple = [s for s in code if not hasattr(s, "body")] or code
            code = [s for s in code if s is not simple[-1]]
        spans = tuple(self._span(s) for s in code if self._whole(s) and first_line(s) > function.lineno)
        return Cut(f"{prefix}body", spans) if spans else None

    def _branch(self, statement: ast.If, prefix: str) -> Cut | None:
        """Cut the arm of an `if` that never ran."""
        label = f"{prefix}if {ast.unparse(statement)}"
        other = statement.orelse
        chained = len(other) == 1 and isinstance(other[0], ast.If) and self._word(other[0]) == "elif"
        is_elif = self._word(statement) == "elif"
        margin = " " * statement.col_offset
        if not self._ran(*statement.body):
            start = first_line(other[0])
            text = self.lines[start - 1 : last_line(statement)]
            if chained:
                text = [text[0].replace("elif", "elif" if is_elif else "if", 1), *text[1:]]
            elif is_elif:
                text = [margin + "else:", *text]
            else:
                text = indented(dedented(text), margin)
            return Cut(label, (Span(statement.lineno, last_line(statement), tuple(text)),))
        if not self._ran(*other):
            return Cut(label, (Span(last_line(statement.body[-1]) + 1, last_line(statement)),))
        return None

    def _word(self, statement: ast.stmt) -> str:
        return self.lines[statement.lineno - 1].strip().partition(" ")[0].partition("(")[0]


def _code(body: list[ast.stmt]) -> list[ast.stmt]:
    return body[1:] if body and _is_docstring(body[0]) else body


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound_names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return list(bound_names(statement))


@dataclass(frozen=True, slots=True)
class OracleVerdict:
    """An oracle's verdict on a gist: whether it is faithful and self-contained, and which physical lines ran."""

    holds: bool
    executed: frozenset[int] = frozenset()


Oracle = Callable[[str], OracleVerdict]


@dataclass(slots=True)
class Reducer:
    """Delta debugging over statements; `thorough` also tries every top-level statement, at one query each or more."""

    oracle: Oracle
    out_of_time: Callable[[], bool]
    test: str = ""
    thorough: bool = False
    _rejected: set[str] = field(default_factory=set)

    def reduce(self, text: str, verdict: OracleVerdict) -> tuple[str, OracleVerdict]:
        """Return the smallest text found that the oracle accepts, with its verdict; it must accept `text` itself."""
        self._rejected.clear()
        while not self.out_of_time():
            finder = CutFinder(text, verdict.executed, self.test, self._rejected)
            cuts = [*finder.idle(), *finder.unused(), *finder.restored()]
            if not cuts and self.thorough:
                cuts = finder.statements()
            if not cuts:
                break
            safe = [cut for cut in cuts if not cut.risky]
            text, verdict = self._try(text, verdict, safe or cuts)
        return text, verdict

    def _try(self, text: str, verdict: OracleVerdict, cuts: Sequence[Cut]) -> tuple[str, OracleVerdict]:
        """Apply as many of the cuts as hold together; if some fail, try their halves, down to single cuts."""
        kept: list[Cut] = []
        best = (text, verdict)
        pending = [list(cuts)]
        while pending:
            group = pending.pop()
            if self.out_of_time():
                break
            candidate = apply_cuts(text, [*kept, *group])
            found = self._ask(candidate)
            if found.holds:
                kept += group
                best = (candidate, found)
            elif len(group) == 1:
                self._rejected.add(group[0].label)
            else:
                half = len(group) // 2
                pending += [group[half:], group[:half]]
        return best

    def _ask(self, text: str) -> OracleVerdict:
        try:
            compile_module(text, "<gist>")
        except (SyntaxError, ValueError):
            return OracleVerdict(False)
        return self.oracle(text)
