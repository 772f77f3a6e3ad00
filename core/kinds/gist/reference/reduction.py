"""Reduces a faithful gist: cuts code that never ran, then unused names, then everything else it can."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gistpoint.core.code.bindings import bound_names
from gistpoint.core.code.nodes import inside, only
from gistpoint.core.code.parsing import compile_module, first_line, parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.kinds.gist.lines import (
    any_within,
    column_of,
    dedented,
    indented,
    last_line,
    type_of_function,
)

KEPT = "_kept"
"""The suffix of the names under which glue keeps an object that another definition hides for a while."""

UNNAMED, NAMED, ALIVE = 0.01, 0.2, 0.9
"""The risks of cutting code that nothing names, code that something may use indirectly, and code that ran."""


@dataclass(frozen=True, slots=True)
class Span:
    """Physical lines `first` to `last`, to be replaced with `text`, which begins at line `origin`."""

    first: int
    last: int
    text: tuple[str, ...] = ()
    origin: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """Spans that are cut together; `label` identifies the cut, so that a failed one is not tried again."""

    label: str
    spans: tuple[Span, ...]
    risk: float = UNNAMED
    """The probability that the gist needs the cut code, 0-1."""


def apply_cuts(text: str, cuts: Sequence[Cut], executed: Collection[int] = ()) -> tuple[str, frozenset[int]]:
    """Return `text` with the spans of all cuts replaced, and the new numbers of the `executed` lines in it.

    If spans are nested, the outer one counts.
    """
    lines = physical_lines(text)
    distinct = set[Span]()
    for cut in cuts:
        distinct.update(cut.spans)
    result: list[tuple[int, str]] = []
    line = 1
    for span in sorted(distinct, key=lambda span: (span.first, -span.last)):
        if span.first < line:
            continue
        result.extend(enumerate(lines[line - 1 : span.first - 1], start=line))
        result.extend(enumerate(span.text, start=span.origin))
        line = span.last + 1
    result.extend(enumerate(lines[line - 1 :], start=line))
    ran = set(executed)
    moved = frozenset(new for new, (old, _) in enumerate(result, start=1) if old in ran)
    return "\n".join(text for _, text in result) + "\n", moved


class CutFinder:
    """Finds cuts in a gist, based on the physical lines that ran; the test `test` is left alone."""

    def __init__(
        self, text: str, executed: Collection[int], test: str, rejected: Collection[str] = ()
    ) -> None:
        self.lines = physical_lines(text)
        self.tree = parse(text)
        self.seen = sorted(executed)
        self.test = test
        self.rejected = frozenset(rejected)
        self._classes: set[str] = set()
        self._heirs: set[str] = set()
        self._live_words = self._words(only_live=True)

    def idle(self) -> list[Cut]:
        """Return cuts of code that never ran: statements, branches, methods and functions."""
        return self._untried(self._in_body(self.tree.body, ""))

    def unused(self) -> list[Cut]:
        """Return cuts of top-level imports, assignments and definitions whose names occur nowhere else."""
        found: list[Cut] = []
        words = self._words()
        for statement in self.tree.body:
            names = _bound_names(statement)
            stays = self._is_test(statement, "") or _is_future(statement)
            if stays or not names:
                continue
            own = self._words(statement)
            is_used = any(words.get(name, 0) > own.get(name, 0) for name in names)
            if not is_used and self._whole(statement):
                found.append(self._deletion(statement, ""))
        return self._untried(found)

    def restored(self) -> list[Cut]:
        """Return cuts of the glue that keeps a name and rebinds it after another definition."""
        groups: dict[str, list[Span]] = {}
        for statement in self.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=value)) if self._whole(
                    statement
                ):
                    kept = next((name for name in (target, value) if name.endswith(KEPT)), None)
                    if kept:
                        groups.setdefault(kept, []).append(self._span(statement))
        return self._untried(Cut(f"restored {name}", tuple(spans), NAMED) for name, spans in groups.items())

    def statements(self) -> list[Cut]:
        """Return a cut for each statement that may go at the top level and in classes, the last one first.

        Functions that ran stay, with all code that ran in them: without that code, they would only look like
        the original's.
        """
        return self._untried(self._statement_cuts(self.tree.body, ""))

    def _statement_cuts(self, body: list[ast.stmt], prefix: str) -> Iterator[Cut]:
        for statement in reversed(body):
            if isinstance(statement, ast.ClassDef):
                yield from self._statement_cuts(statement.body, f"{prefix}{statement.name}.")
            only_one_of_a_class = prefix and len(body) == 1
            if only_one_of_a_class or self._is_test(statement, prefix):
                continue
            if self._is_needed(statement):
                continue
            names = {*_bound_names(statement)} - {"__name__"}
            named = not self._words_outside(statement).isdisjoint(names)
            yield replace(self._deletion(statement, prefix), risk=ALIVE if named else NAMED)

    def _is_needed(self, statement: ast.stmt) -> bool:
        """Return whether a statement contains a function that ran, or can't be cut alone."""
        if isinstance(statement, ast.Pass) or _is_docstring(statement) or _is_future(statement):
            return True
        if not self._whole(statement):
            return True
        # An emptied function would be faithful to a test that does not check its result (decision 88).
        functions = (node for node in ast.walk(statement) if isinstance(node, type_of_function))
        return any(self._ran(*_code(function.body)) for function in functions)

    def _untried(self, cuts: Iterable[Cut | None]) -> list[Cut]:
        return [cut for cut in cuts if cut is not None and cut.label not in self.rejected]

    def _words(self, node: ast.AST | None = None, *, only_live: bool = False) -> dict[str, int]:
        counts: dict[str, int] = {}
        for child in ast.walk(node or self.tree):
            if only_live and not self._is_live(child):
                continue
            for name in _mentioned_names(child):
                counts[name] = counts.get(name, 0) + 1
        return counts

    def _words_outside(self, statement: ast.stmt) -> set[str]:
        """Return the names on lines that ran outside of the statement."""
        own = self._words(statement, only_live=True)
        return {name for name, count in self._live_words.items() if count > own.get(name, 0)}

    def _is_live(self, node: ast.AST) -> bool:
        """Return whether a node uses a name on a line that ran; the name of a definition does not count."""
        return isinstance(node, ast.expr) and self._ran(node)

    def _ran(self, *nodes: ast.stmt | ast.expr) -> bool:
        """Return whether a line of consecutive nodes ran."""
        return bool(nodes) and any_within(self.seen, first_line(nodes[0]), last_line(nodes[-1]))

    def _is_test(self, statement: ast.stmt, prefix: str) -> bool:
        """Return whether a statement is the test, or a class that contains it."""
        if not self.test:
            return False
        name = prefix + str(getattr(statement, "name", ""))
        holds_it = name != prefix and self.test.startswith(name + ".")
        return holds_it or self.test == name

    def _whole(self, statement: ast.stmt) -> bool:
        """Return whether the statement shares its physical lines with no other statement."""
        first = self.lines[statement.lineno - 1]
        last = self.lines[last_line(statement) - 1]
        before = first[: column_of(first, statement.col_offset)].strip()
        after = last[column_of(last, statement.end_col_offset or 0) :].strip()
        is_decorated = first_line(statement) < statement.lineno
        if before and not is_decorated:
            return False
        return not after or after.startswith("#")

    def _deletion(self, statement: ast.stmt, prefix: str) -> Cut:
        return Cut(f"{prefix}-{ast.unparse(statement)}", (self._span(statement),))

    def _span(self, statement: ast.stmt) -> Span:
        """Return the lines of a statement, its comments, and the blank lines below if there is one above."""
        first = first_line(statement)
        last = last_line(statement)
        while first > 1 and self.lines[first - 2].strip().startswith("#"):
            first -= 1
        has_gap_above = first == 1 or not self.lines[first - 2].strip()
        end = len(self.lines) if has_gap_above else last
        while last < end and not self.lines[last].strip():
            last += 1
        return Span(first, last)

    def _in_body(self, body: list[ast.stmt], prefix: str) -> Iterator[Cut]:
        rest: list[ast.stmt] = []
        cuts: list[Cut] = []
        emptied: list[Cut | None] = []
        for statement in body:
            cut = None if self._is_test(statement, prefix) else self._whole_cut(statement, body, prefix)
            if cut is None or cut.label in self.rejected:
                rest.append(statement)
                continue
            cuts.append(cut)
            if cut.risk > UNNAMED and isinstance(statement, type_of_function):
                emptied.append(self._body_cut(statement, f"{prefix}{statement.name}."))
        leaves_nothing = cuts and not rest and body is not self.tree.body
        if leaves_nothing:
            # A body needs a statement: the last one stays, and only code inside it is cut.
            rest.append(body[-1])
            cuts = [cut for cut in cuts if self._span(body[-1]) not in cut.spans]
        yield from cuts
        yield from self._untried(emptied)
        for statement in rest:
            if self.test != prefix + str(getattr(statement, "name", "\0")):
                yield from self._cuts_within(statement, prefix)

    def _whole_cut(self, statement: ast.stmt, body: list[ast.stmt], prefix: str) -> Cut | None:
        """Return the cut of a statement with everything in it; None if it must stay.

        It must stay if it ran, unless only its header did or its body is empty, or if it can't be cut alone.
        """
        if not self._whole(statement):
            return None
        if _is_docstring(statement) or _is_future(statement):
            return None
        match statement:
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return self._function_cut(statement, body, prefix)
            case ast.If(body=inside, orelse=[]) if all(isinstance(one, ast.Pass) for one in inside):
                return self._deletion(statement, prefix)
            case ast.AnnAssign(value=None) if not self._ran(statement):
                return None
            case (
                ast.If(body=inside, orelse=[])
                | ast.For(body=inside, orelse=[])
                | ast.AsyncFor(body=inside, orelse=[])
                | ast.While(body=inside, orelse=[])
            ):
                is_idle = self._separate(inside, statement) and not self._ran(*inside)
            case _:
                is_idle = False
        if is_idle or not self._ran(statement):
            return self._deletion(statement, prefix)
        return None

    def _separate(self, body: Sequence[ast.stmt], parent: ast.stmt) -> bool:
        return bool(body) and first_line(body[0]) > parent.lineno

    def _function_cut(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, body: list[ast.stmt], prefix: str
    ) -> Cut | None:
        """Return the cut of all functions with a name in a body, such as the parts of a property.

        None if one of them ran or is on one line, or if a line that ran uses the name, unless it is a method.
        """
        name = function.name
        alike = [one for one in body if isinstance(one, type_of_function) and one.name == name]
        for one in alike:
            on_header = one.body[0].lineno == one.lineno
            if on_header or self._ran(*_code(one.body)):
                return None
        is_method = prefix in self._classes
        if name in self._live_words and not is_method:
            return None
        risk = UNNAMED
        if name in self._live_words:
            risk = ALIVE
        elif prefix in self._heirs or name.startswith("__"):
            # A base class, or the interpreter itself, may call it without naming it in this file.
            risk = NAMED
        spans = tuple(self._span(one) for one in alike if self._whole(one))
        return Cut(f"{prefix}def {name}", spans, risk)

    def _cuts_within(self, statement: ast.stmt, prefix: str) -> Iterator[Cut]:
        """Yield the cuts inside a statement that itself stays."""
        if isinstance(statement, ast.If) and statement.orelse:
            is_separate = self._separate(statement.body, statement)
            branch = self._untried([self._branch_cut(statement, prefix)]) if is_separate else []
            if branch:
                yield from branch
                return
        name = getattr(statement, "name", "")
        inner = f"{prefix}{name}." if name else prefix
        match statement:
            case ast.For() | ast.AsyncFor() | ast.While() | ast.Try() | ast.TryStar():
                yield from self._untried([self._else_cut(statement, inner)])
            case ast.ClassDef(bases=bases):
                self._classes.add(inner)
                if bases:
                    self._heirs.add(inner)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not self._ran(*_code(statement.body)):
                yield from self._untried([self._body_cut(statement, inner)])
                return
        for name in ("body", "orelse", "finalbody"):
            yield from self._in_body(getattr(statement, name, []), inner)
        if isinstance(statement, ast.Match):
            yield from self._in_cases(statement.cases, inner)

    def _in_cases(self, cases: list[ast.match_case], prefix: str) -> Iterator[Cut]:
        """Yield cuts of the cases that never ran, if another did, and cuts inside the others."""
        any_ran = any(self._ran(*case.body) for case in cases)
        for case in cases:
            if any_ran and not self._ran(*case.body):
                span = Span(case.pattern.lineno, last_line(case.body[-1]))
                yield Cut(f"{prefix}case {ast.unparse(case.pattern)}", (span,))
            else:
                yield from self._in_body(case.body, prefix)

    def _else_cut(
        self, statement: ast.For | ast.AsyncFor | ast.While | ast.Try | ast.TryStar, prefix: str
    ) -> Cut | None:
        """Return the cut of the `else` of a loop or `try` that never ran; None if there is none."""
        if not statement.orelse or self._ran(*statement.orelse):
            return None
        above = statement.handlers[-1] if isinstance(statement, ast.Try | ast.TryStar) else statement
        span = Span(last_line(above.body[-1]) + 1, last_line(statement.orelse[-1]))
        return Cut(f"{prefix}else of {ast.unparse(statement)}", (span,))

    def _body_cut(self, function: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> Cut | None:
        """Return the cut of a function's body except for its docstring or one statement.

        The function must never have run. None if there is no such cut.
        """
        code = _code(function.body)
        for statement in code:
            if first_line(statement) <= function.lineno or not self._whole(statement):
                return None
        has_docstring = len(code) < len(function.body)
        if has_docstring:
            return Cut(f"{prefix}body", tuple(map(self._span, code))) if code else None
        statements = inside(ast.stmt, function)
        kept = next(filter(self._is_simple, statements), None)
        if kept is None or code == [kept]:
            return None
        margin = " " * function.body[0].col_offset
        text = indented(dedented(self.lines[kept.lineno - 1 : last_line(kept)]), margin)
        span = Span(first_line(code[0]), last_line(code[-1]), tuple(text), kept.lineno)
        return Cut(f"{prefix}body", (span,))

    def _is_simple(self, statement: ast.stmt) -> bool:
        is_compound = hasattr(statement, "body") or hasattr(statement, "cases")
        return not is_compound and self._whole(statement)

    def _branch_cut(self, statement: ast.If, prefix: str) -> Cut | None:
        """Return the cut of an `if` branch that never ran; None if there is none."""
        label = f"{prefix}if {ast.unparse(statement)}"
        other = statement.orelse
        if self._ran(*statement.body):
            if self._ran(*other):
                return None
            return Cut(label, (Span(last_line(statement.body[-1]) + 1, last_line(statement)),))
        start = first_line(other[0])
        origin = start
        text = self.lines[start - 1 : last_line(statement)]
        is_elif = self._word(statement) == "elif"
        is_one_if = len(other) == 1 and isinstance(other[0], ast.If)
        if is_one_if and self._word(other[0]) == "elif":
            # The next `elif` takes the place of this header.
            word = "elif" if is_elif else "if"
            text[0] = text[0].replace("elif", word, 1)
        elif is_elif:
            text.insert(0, " " * statement.col_offset + "else:")
            origin = start - 1
        else:
            text = indented(dedented(text), " " * statement.col_offset)
        return Cut(label, (Span(statement.lineno, last_line(statement), tuple(text), origin),))

    def _word(self, statement: ast.stmt) -> str:
        return self.lines[statement.lineno - 1].strip().partition(" ")[0].partition("(")[0]


def _code(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return a body without its docstring."""
    if body and _is_docstring(body[0]):
        return body[1:]
    return body


def _mentioned_names(node: ast.AST) -> list[str]:
    """Return the names that a node itself mentions; a string may name functions and modules."""
    match node:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
            return [word]
        case ast.Constant(value=str(value)):
            return value.replace(".", " ").replace("[", " ").replace("]", " ").split()
        case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
            return [word]
        case ast.alias():
            return [node.asname or node.name.partition(".")[0]]
        case ast.Global(names=words):
            return list(words)
        case _:
            return []


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _bound_names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=targets) if all(isinstance(target, ast.Name) for target in targets):
            return [target.id for target in only(ast.Name, targets)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return list(bound_names(statement))


@dataclass(frozen=True, slots=True)
class OracleVerdict:
    """An oracle's verdict on a gist: whether it is faithful and self-contained, and the lines that ran."""

    holds: bool
    executed: frozenset[int] = frozenset()


Oracle = Callable[[str], OracleVerdict]


@dataclass(slots=True)
class Reducer:
    """A delta debugger that first tries the cuts that names and executed lines suggest, then each statement.

    The cuts that are tried together are chosen by their risks, as in Wang et al., "Probabilistic Delta
    Debugging" (2021).
    """

    oracle: Oracle
    out_of_time: Callable[[], bool]
    test: str = ""
    _rejected: set[str] = field(default_factory=set)

    def reduce(self, text: str, verdict: OracleVerdict) -> tuple[str, OracleVerdict]:
        """Return the smallest text found that the oracle accepts, with its verdict.

        The oracle must accept `text` itself. Code that nothing names is cut even if there is no time left:
        that is one query, and most of the reduction.
        """
        self._rejected.clear()
        while True:
            text, verdict = self._without_unnamed(text, verdict)
            if self.out_of_time():
                break
            finder = self._finder(text, verdict.executed)
            cuts = [*finder.idle(), *finder.unused(), *finder.restored()]
            if not cuts:
                cuts = finder.statements()
            if not cuts or self.out_of_time():
                break
            unnamed = [cut for cut in cuts if cut.risk <= UNNAMED]
            text, verdict = self._try(text, verdict, unnamed or cuts)
        return text, verdict

    def _finder(self, text: str, executed: Collection[int]) -> CutFinder:
        return CutFinder(text, executed, self.test, self._rejected)

    def _without_unnamed(self, text: str, verdict: OracleVerdict) -> tuple[str, OracleVerdict]:
        """Return the gist after all cuts of code that nothing names, including later ones, in one query."""
        small = text
        executed = verdict.executed
        while True:
            finder = self._finder(small, executed)
            cuts = [cut for cut in (*finder.idle(), *finder.unused()) if cut.risk <= UNNAMED]
            if not cuts:
                break
            small, executed = apply_cuts(small, cuts, executed)
        if small == text:
            return text, verdict
        found = self._query(small)
        return (small, found) if found.holds else (text, verdict)

    def _try(self, text: str, verdict: OracleVerdict, cuts: Sequence[Cut]) -> tuple[str, OracleVerdict]:
        """Return the gist after as many of the cuts as possible, with its verdict."""
        kept: list[Cut] = []
        best = (text, verdict)
        risks = {cut: cut.risk for cut in cuts}
        while risks and not self.out_of_time():
            group = _most_promising(risks)
            candidate, _ = apply_cuts(text, [*kept, *group])
            found = self._query(candidate)
            if not found.holds and len(group) > 1:
                # One of them is needed: each becomes riskier by the probability that it was the one.
                failing = 1 - math.prod(1 - risks[cut] for cut in group)
                risks.update({cut: min(risks[cut] / failing, _SURE) for cut in group})
                continue
            for cut in group:
                del risks[cut]
            if found.holds:
                kept += group
                best = (candidate, found)
                risks = {cut: risk * _RELIEF for cut, risk in risks.items()}
            else:
                self._rejected.add(group[0].label)
        return best

    def _query(self, text: str) -> OracleVerdict:
        try:
            compile_module(text, "<gist>")
        except (SyntaxError, ValueError):
            return OracleVerdict(False)
        return self.oracle(text)


_SURE = 0.99
_RELIEF = 0.8
"""The factor for the risks of the other cuts after some cuts succeeded."""


def _most_promising(risks: Mapping[Cut, float]) -> list[Cut]:
    """Return the cuts with the largest expected result: their number times the chance that all succeed."""
    group: list[Cut] = []
    holds = 1.0
    best = 0.0
    for cut in sorted(risks, key=lambda one: risks[one]):
        holds *= 1 - risks[cut]
        if (len(group) + 1) * holds <= best:
            break
        group.append(cut)
        best = len(group) * holds
    return group
