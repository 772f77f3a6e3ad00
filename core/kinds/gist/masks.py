"""What must differ in the outputs of a flat file and of the original, masked alike in both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from gistpoint.core.kinds.gist.entrypoints import Entrypoint, EntrypointKind
from gistpoint.core.kinds.gist.output_rules import normalise_output
from gistpoint.core.kinds.gist.runs import CommandRun, Raised, TestRun, TestsRun


def name_masks(entrypoint: Entrypoint, modules: Collection[str]) -> dict[str, str]:
    """Return the names of files and modules that stand for one another, with the words that take their place.

    A gist has everything in one module of another name: `pkg.core.Bad` and `test_gist.Bad` are the same. Names of
    modules count only with a dot behind them, so that words of other texts are left alone.
    """
    gist = entrypoint.gist_file
    files = {gist}
    if entrypoint.kind is not EntrypointKind.MODULE:
        files |= {entrypoint.target, entrypoint.target.rpartition("/")[2]}
    else:
        files.add("__main__.py")
    own = {gist.removesuffix(".py"), *(path.removesuffix(".py").replace("/", ".") for path in files)}
    masks = {f"{name}.": "<module>." for name in {*modules, *own} if name}
    return masks | dict.fromkeys(files, "<file>")


def normalised(run: TestsRun | CommandRun, places: Mapping[str, str]) -> TestsRun | CommandRun:
    """Return a run with its outputs and messages normalised by `places`."""

    def raised(found: Raised | None) -> Raised | None:
        return found and Raised(found.type, normalise_output(found.message, places))

    def test(found: TestRun) -> TestRun:
        out, err = normalise_output(found.stdout, places), normalise_output(found.stderr, places)
        return replace(found, stdout=out, stderr=err, raised=raised(found.raised))

    if isinstance(run, TestsRun):
        return replace(run, tests={id: test(found) for id, found in run.tests.items()})
    out, err = normalise_output(run.stdout, places), normalise_output(run.stderr, places)
    return replace(run, stdout=out, stderr=err, raised=raised(run.raised))
