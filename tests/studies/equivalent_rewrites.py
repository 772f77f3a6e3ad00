"""Checks that equivalent rewrites of true functions are confirmed: `equivalent_rewrites.py TASKS [MOST]`.

With `--tests-only`, inputs beyond the tests are not compared, which takes most of the time.

Each task whose passes can be confirmed gets its true function with its body wrapped (in an inner function, a
`try`, a loop that ends after one turn, a `match`, ...) or its parts rewritten (conditions negated, names
changed, arguments unpacked, ...). Prints a line for each rewrite that is not confirmed, or that differs on
inputs beyond the tests, and the counts. Stops after the task with which MOST rewrites (300) are reached.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confirming import controls_of, tasks_in

from gistpoint.core.code.parsing import parse
from gistpoint.core.code.splice import with_definition
from gistpoint.core.confirmation.model import Confirmed
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.confirmation import SandboxConfirmer
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.equivalence import SandboxEquivalenceTester
from gistpoint.sandbox.ladder import choose


def _function(code: str) -> tuple[ast.Module, ast.FunctionDef]:
    module = parse(f"if 1:\n{code}" if code[:1].isspace() else code)
    return module, next(node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def _inside(function: ast.FunctionDef) -> list[ast.stmt]:
    body = parse("def inside():\n    pass\nreturn inside()").body
    assert isinstance(body[0], ast.FunctionDef)
    body[0].body = function.body
    return body


def _delegated(function: ast.FunctionDef) -> list[ast.stmt]:
    body = parse("def inside():\n    pass\nreturn (yield from inside())").body
    assert isinstance(body[0], ast.FunctionDef)
    body[0].body = function.body
    return body


def _finally(function: ast.FunctionDef) -> list[ast.stmt]:
    return [ast.Try(function.body, [], [], [ast.Pass()])]


def _once(function: ast.FunctionDef) -> list[ast.stmt]:
    return [ast.While(ast.Constant(True), [*function.body, ast.Return(None)], [])]


def _raised_again(function: ast.FunctionDef) -> list[ast.stmt]:
    again = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [ast.Raise(None, None)])
    return [ast.Try(function.body, [again], [], [])]


def _suppressing_nothing(function: ast.FunctionDef) -> list[ast.stmt]:
    within = parse("import contextlib\nwith contextlib.suppress():\n    pass\n").body
    assert isinstance(within[1], ast.With)
    within[1].body = function.body
    return within


def _matched(function: ast.FunctionDef) -> list[ast.stmt]:
    return [ast.Match(ast.Constant(0), [ast.match_case(ast.MatchAs(None, None), None, function.body)])]


class _Rewriter(ast.NodeTransformer):
    """A rewriter of parts of a function that counts its changes; a rewrite without changes is not used."""

    def __init__(self) -> None:
        self.changed = 0

    def of(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """Return the rewritten body."""
        return [self.visit(part) for part in function.body]


class _Negated(_Rewriter):
    """`if a: x else: y` becomes `if not a: y else: x`."""

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        self.changed += 1
        return ast.If(ast.UnaryOp(ast.Not(), node.test), node.orelse or [ast.Pass()], node.body)


class _ConditionsFirst(_Rewriter):
    """`x if a else y` becomes `y if not a else x`."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        self.changed += 1
        return ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.orelse, node.body)


class _Named(_Rewriter):
    """`return x` becomes `result = x` and `return result`."""

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if node.value is None:
            return node
        self.changed += 1
        name = "result_to_return"
        bound = ast.Assign([ast.Name(name, ast.Store())], node.value)
        returned = ast.Return(ast.Name(name, ast.Load()))
        return ast.If(ast.Constant(True), [bound, returned], [])


class _ByCalls(_Rewriter):
    """`f(x, k=y)` becomes `f(*(x,), k=y)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not node.args or (
            isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "getattr")
        ):
            return node
        self.changed += 1
        return ast.Call(node.func, [ast.Starred(ast.Tuple(node.args, ast.Load()), ast.Load())], node.keywords)


class _Loops(_Rewriter):
    """`for x in y:` becomes `for x in iter(y):`, and `while a:` an endless loop that breaks unless `a`."""

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        self.changed += 1
        node.iter = ast.Call(ast.Name("iter", ast.Load()), [node.iter], [])
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        if node.orelse:
            return node
        self.changed += 1
        ends = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
        return ast.While(ast.Constant(True), [ends, *node.body], [])


class _Nested(_Rewriter):
    """`a and b` becomes `b if (c := a) else c`, and `a or b` becomes `c if (c := a) else b`."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        self.changed += 1
        name = f"operand_{self.changed}"
        first = ast.NamedExpr(ast.Name(name, ast.Store()), node.values[0])
        others = node.values[1] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[1:])
        again = ast.Name(name, ast.Load())
        if isinstance(node.op, ast.And):
            return ast.IfExp(first, others, again)
        return ast.IfExp(first, again, others)


class _Renamed(_Rewriter):
    """Names that only the function binds are renamed."""

    def of(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """Return the rewritten body."""
        parts = [part for statement in function.body for part in ast.walk(statement)]
        self.names = {p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)}
        self.names -= {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}
        return super().of(function)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names:
            return node
        self.changed += 1
        return ast.Name(f"{node.id}_renamed", node.ctx)


_WRAPPED = {
    "finally": _finally,
    "once": _once,
    "inside": _inside,
    "delegated": _delegated,
    "raised_again": _raised_again,
    "suppressing_nothing": _suppressing_nothing,
    "matched": _matched,
}
_REWRITTEN = {
    "negated": _Negated,
    "conditions_first": _ConditionsFirst,
    "named": _Named,
    "by_calls": _ByCalls,
    "loops": _Loops,
    "nested": _Nested,
    "renamed": _Renamed,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of a function on which the possible rewrites depend."""

    yields: bool
    leaves_loops: bool
    binds_outside: bool
    rebinds_arguments: bool
    asks_for_its_frame: bool
    defines_inside: bool
    binds_otherwise: bool

    @classmethod
    def of(cls, function: ast.FunctionDef) -> Shape:
        """Return the shape of a function."""
        parts = list(ast.walk(function))
        # `del` of a parameter also makes it a variable of the inner function.
        bound = {
            part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        }
        given = {part.arg for part in parts if isinstance(part, ast.arg)}
        called = {
            part.func.id for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        }
        return cls(
            yields=any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts),
            leaves_loops=any(isinstance(part, ast.Break | ast.Continue) for part in parts),
            binds_outside=any(isinstance(part, ast.Nonlocal | ast.Global) for part in parts),
            rebinds_arguments=bool(bound & given),
            asks_for_its_frame=bool(called & {"super", "locals"}),
            defines_inside=any(isinstance(part, _SCOPES) for part in parts[1:]),
            binds_otherwise=any(isinstance(part, _BINDING) for part in parts),
        )

    @property
    def moves_inside(self) -> bool:
        """Whether the body may become that of an inner function."""
        return not (self.binds_outside or self.rebinds_arguments or self.asks_for_its_frame)

    def fits(self, way: str) -> bool:
        """Whether a rewrite keeps the meaning of the function."""
        match way:
            case "inside":
                return self.moves_inside and not self.yields
            case "delegated":
                return self.moves_inside and self.yields
            case "once":
                return not self.leaves_loops
            case "renamed":
                return not (self.defines_inside or self.binds_otherwise or self.binds_outside)
            case "nested" | "named":
                return not self.defines_inside
        return True


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.GeneratorExp)
_SCOPES += (ast.ListComp, ast.SetComp, ast.DictComp)
_BINDING = (ast.Import, ast.ImportFrom, ast.ExceptHandler, ast.Match, ast.Delete)


def _without_docstring(function: ast.FunctionDef) -> ast.FunctionDef:
    if ast.get_docstring(function) is not None:
        del function.body[0]
    return function


def rewrites(code: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the rewrites that keep the meaning and change something."""
    for name in (*_WRAPPED, *_REWRITTEN):
        function = _without_docstring(_function(code)[1])
        if not function.body or not Shape.of(function).fits(name):
            continue
        if name in _WRAPPED:
            function.body = _WRAPPED[name](function)
        else:
            rewriter = _REWRITTEN[name]()
            function.body = rewriter.of(function)
            if not rewriter.changed:
                continue
        yield name, ast.unparse(ast.fix_missing_locations(function))


def main() -> int:
    """Confirm the rewrites of the tasks' first functions; return 1 if one was contradicted."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--tests-only"]
    most = int(arguments[1]) if len(arguments) > 1 else 300
    backend, environments = choose(None, consented=True), EnvironmentStore(Locations.of_user().cache)
    tester = None if "--tests-only" in sys.argv else SandboxEquivalenceTester(backend, environments)
    confirmer = SandboxConfirmer(backend, environments, beyond=tester)
    counts, notes = Counter[str](), Counter[str]()
    for task in tasks_in(Path(arguments[0])):
        answer = read_answer(task)
        controls = controls_of(confirmer, task, answer)
        if not controls.confirmable:
            counts["not confirmable"] += 1
            continue
        for target in answer.targets[:1]:
            original = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
            for name, text in rewrites(target.original):
                try:
                    tree = with_definition(original, target.path, target.qualname, text)
                except UserError as error:
                    print(f"{target.name} {name}: {error}")
                    continue
                found = confirmer.confirm(task, answer, controls, tree)
                counts[found.words] += 1
                if found.marks:
                    notes[f"{found.words}, with a mark"] += 1
                if found.beyond is not None:
                    notes["with a difference beyond the tests"] += 1
                    print(f"{task.source.name} {target.name} {name}: {found.beyond}", flush=True)
                if found.result is not Confirmed.CONFIRMED:
                    why = found.contradiction or (found.detail, *found.marks)
                    print(f"{task.source.name} {target.name} {name}: {found.words} {why}", flush=True)
        print(dict(counts), dict(notes), flush=True)
        if counts.total() >= most:
            break
    return 1 if counts["contradicted"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
