"""A scope while its code is walked."""

from __future__ import annotations

from dataclasses import dataclass, field

from gistpoint.core.callgraph.values import Scope, Variable


@dataclass(slots=True, eq=False)
class Frame:
    """A scope while its code is walked: what each name holds at this point, and the frame it runs inside of."""

    scope: Scope
    names: dict[str, Variable] = field(default_factory=dict)
    outer: Frame | None = None
