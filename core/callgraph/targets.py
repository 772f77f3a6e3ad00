"""What is assigned to: names, attributes, items and patterns of them."""

from __future__ import annotations

import ast

from gistpoint.core.callgraph.expressions import Expressions
from gistpoint.core.callgraph.frames import Frame
from gistpoint.core.callgraph.graph import Found
from gistpoint.core.callgraph.parts import Parts
from gistpoint.core.callgraph.program import Call
from gistpoint.core.callgraph.values import NOTHING, Arguments, Variable


class Targets:
    """Binds values to the targets of assignments, loops, with blocks and match patterns."""

    def __init__(self, parts: Parts, expressions: Expressions) -> None:
        self.parts = parts
        self.solver = parts.program.solver
        self.expressions = expressions

    def bind(self, frame: Frame, target: ast.expr, variable: Variable) -> None:
        """Let `target` hold what `variable` does."""
        if isinstance(target, ast.Name):
            self.expressions.assign(frame, target.id, variable)
        elif isinstance(target, ast.Attribute):
            base = self.expressions.evaluate(frame, target.value)
            self.parts.attributes.store(frame.scope, base, target.attr, variable)
        elif isinstance(target, ast.Subscript):
            base = self.expressions.evaluate(frame, target.value)
            if isinstance(target.slice, ast.Slice):
                call = Call(frame.scope, "__setitem__", Arguments([NOTHING, variable]), NOTHING, Found.PROTOCOL)
                self.parts.calls.protocol(call, base, "__setitem__")
                return
            key, index = self.expressions.index(frame, target.slice)
            self.parts.containers.store(frame.scope, base, key, index, variable)
        elif isinstance(target, ast.Starred):
            self.bind(frame, target.value, variable)
        elif isinstance(target, ast.Tuple | ast.List):
            self._unpack(frame, target.elts, variable)

    def _unpack(self, frame: Frame, targets: list[ast.expr], variable: Variable) -> None:
        starred = next((place for place, item in enumerate(targets) if isinstance(item, ast.Starred)), len(targets))
        looped = self.parts.containers.iterate(frame.scope, variable)
        for place, target in enumerate(targets):
            if place < starred:
                found = self.parts.containers.get(variable, ("int", place))
            elif place > starred:
                found = self.parts.containers.get(variable, ("int", place - len(targets)))
            else:
                found = self.parts.containers.slice(frame.scope, variable, starred)
            made = self.solver.variable()
            self.solver.copy(found, made)
            self.parts.operators.keep_objects(looped, made)
            self.bind(frame, target, made)

    def assign(self, frame: Frame, target: ast.expr, value: ast.expr) -> None:
        """Note `target = value`; tuples of one shape are matched item by item."""
        if (
            isinstance(target, ast.Tuple | ast.List)
            and isinstance(value, ast.Tuple | ast.List)
            and len(target.elts) == len(value.elts)
            and not any(isinstance(item, ast.Starred) for item in [*target.elts, *value.elts])
        ):
            variables = [self._part(frame, *pair) for pair in zip(target.elts, value.elts, strict=True)]
            for (item, part), variable in zip(zip(target.elts, value.elts, strict=True), variables, strict=True):
                if variable is None:
                    self.assign(frame, item, part)
                else:
                    self.bind(frame, item, variable)
            return
        self.bind(frame, target, self.expressions.evaluate(frame, value))

    def _part(self, frame: Frame, target: ast.expr, value: ast.expr) -> Variable | None:
        nested = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List)
        return None if nested else self.expressions.evaluate(frame, value)

    def match(self, frame: Frame, pattern: ast.pattern, subject: Variable) -> None:
        """Bind the names of a match pattern."""
        if isinstance(pattern, ast.MatchValue):
            self.expressions.evaluate(frame, pattern.value)
        elif isinstance(pattern, ast.MatchAs):
            self._match_as(frame, pattern, subject)
        elif isinstance(pattern, ast.MatchStar):
            if pattern.name is not None:
                self.expressions.assign(frame, pattern.name, self.parts.containers.slice(frame.scope, subject, None))
        elif isinstance(pattern, ast.MatchOr):
            for item in pattern.patterns:
                self.match(frame, item, subject)
        elif isinstance(pattern, ast.MatchClass):
            self._match_class(frame, pattern, subject)
        else:
            self._match_items(frame, pattern, subject)

    def _match_as(self, frame: Frame, pattern: ast.MatchAs, subject: Variable) -> None:
        if pattern.pattern is not None:
            self.match(frame, pattern.pattern, subject)
        if pattern.name is not None:
            held = self.narrowed(frame, pattern.pattern, subject) if pattern.pattern is not None else subject
            self.expressions.assign(frame, pattern.name, held)

    def _match_items(self, frame: Frame, pattern: ast.pattern, subject: Variable) -> None:
        if isinstance(pattern, ast.MatchSequence):
            for place, item in enumerate(pattern.patterns):
                self.match(frame, item, self.parts.containers.get(subject, ("int", place)))
        elif isinstance(pattern, ast.MatchMapping):
            for key, item in zip(pattern.keys, pattern.patterns, strict=True):
                known, index = self.expressions.index(frame, key)
                self.match(frame, item, self.parts.containers.subscript(frame.scope, subject, known, index))

    def _match_class(self, frame: Frame, pattern: ast.MatchClass, subject: Variable) -> None:
        held = self.narrowed(frame, pattern, subject)
        for name, item in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            self.match(frame, item, self.parts.attributes.load(frame.scope, held, name))
        values = self.parts.annotations.tested(frame.scope, pattern.cls)
        names = [name for value in values for name in getattr(getattr(value, "cls", None), "data_fields", [])]
        for place, item in enumerate(pattern.patterns):
            if place < len(names):
                self.match(frame, item, self.parts.attributes.load(frame.scope, held, names[place]))
            else:
                self.match(frame, item, subject if len(pattern.patterns) == 1 else NOTHING)

    def narrowed(self, frame: Frame, pattern: ast.pattern, subject: Variable) -> Variable:
        """Return the variable of what matches a pattern: of the class that it names, if it names one."""
        if not isinstance(pattern, ast.MatchClass):
            return subject
        made = self.solver.variable()
        self.solver.copy(subject, made)
        for value in self.parts.annotations.tested(frame.scope, pattern.cls):
            self.solver.add(made, value)
        return made
