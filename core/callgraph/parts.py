"""The parts of the analysis, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.core.callgraph.annotations import Annotations
from gistpoint.core.callgraph.calls import Attributes, Calls
from gistpoint.core.callgraph.containers import Containers
from gistpoint.core.callgraph.library import Library
from gistpoint.core.callgraph.operators import Operators
from gistpoint.core.callgraph.program import Program

if TYPE_CHECKING:
    from gistpoint.core.callgraph.expressions import Targets


class Parts:
    """One of each part, over one program; `targets` is set by the walk over statements."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.targets: Targets
        self.annotations = Annotations(program)
        self.attributes = Attributes(program)
        self.containers = Containers(program)
        self.calls = Calls(program, self.attributes, self.containers)
        self.library = Library(program, self.attributes, self.containers, self.calls)
        self.operators = Operators(program)
        self.attributes.calls = self.calls
        self.containers.calls = self.calls
        self.calls.library = self.library
