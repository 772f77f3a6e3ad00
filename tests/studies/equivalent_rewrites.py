"""True functions rewritten without a change of meaning have to be confirmed: `equivalent_rewrites.py TASKS
[MOST]`.

Each task whose passes can be confirmed gets its true function with its body in a function inside, in a `try`
with an empty `finally`, and in a loop that ends after one turn. Prints a line for each that is not confirmed,
and the counts.
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
from gistpoint.sandbox.ladder import choose


def _function(code: str) -> tuple[ast.Module, ast.FunctionDef]:
    module = parse(f"if 1:\n{code}" if code[:1].isspace() else code)
    return module, next(node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))


def _inside(function: ast.FunctionDef) -> list[ast.stmt]:
    body = parse("def inside():\n    pass\nreturn inside()").body
    assert isinstance(body[0], ast.FunctionDef)
    body[0].body = function.body
    return body


def _finally(function: ast.FunctionDef) -> list[ast.stmt]:
    return [ast.Try(function.body, [], [], [ast.Pass()])]


def _once(function: ast.FunctionDef) -> list[ast.stmt]:
    return [ast.While(ast.Constant(True), [*function.body, ast.Return(None)], [])]


WAYS = {"finally": _finally, "once": _once, "inside": _inside}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a function holds that a rewrite has to leave alone."""

    yields: bool
    leaves_loops: bool
    binds_outside: bool
    rebinds_arguments: bool
    asks_for_its_frame: bool

    @classmethod
    def of(cls, function: ast.FunctionDef) -> Shape:
        """Return the shape of a function."""
        parts = list(ast.walk(function))
        stored = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        given = {part.arg for part in parts if isinstance(part, ast.arg)}
        called = {
            part.func.id for part in parts if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
        }
        return cls(
            yields=any(isinstance(part, ast.Yield | ast.YieldFrom) for part in parts),
            leaves_loops=any(isinstance(part, ast.Break | ast.Continue) for part in parts),
            binds_outside=any(isinstance(part, ast.Nonlocal | ast.Global) for part in parts),
            rebinds_arguments=bool(stored & given),
            asks_for_its_frame=bool(called & {"super", "locals"}),
        )

    @property
    def fits_inside(self) -> bool:
        """Whether the body may become that of a function inside."""
        return not (self.yields or self.binds_outside or self.rebinds_arguments or self.asks_for_its_frame)


def rewrites(code: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of rewrites that keep the meaning; a way that does not fit is left out."""
    for name, way in WAYS.items():
        _, function = _function(code)
        shape = Shape.of(function)
        fits = {"inside": shape.fits_inside, "once": not shape.leaves_loops}.get(name, True)
        if fits:
            function.body = way(function)
            yield name, ast.unparse(ast.fix_missing_locations(function))


def main() -> int:
    """Confirm the rewrites of all tasks."""
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    confirmer = SandboxConfirmer(choose(None, consented=True), EnvironmentStore(Locations.of_user().cache))
    counts: Counter[str] = Counter()
    for task in tasks_in(Path(sys.argv[1])):
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
                if found.result is not Confirmed.CONFIRMED:
                    why = found.contradiction or found.detail
                    print(f"{task.source.name} {target.name} {name}: {found.words} {why}", flush=True)
        if counts.total() >= most:
            break
    print(dict(counts))
    return 1 if counts["contradicted"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
