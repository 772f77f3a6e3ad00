"""Reduction of a faithful gist: what never ran goes first, then what nothing names, then whatever else can go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gistpoint.core.code.parsing import compile_module
from gistpoint.core.gist.reference.cuts import Cut, CutFinder, apply_cuts


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an oracle says of a gist: is it faithful and self-contained, and which physical lines ran."""

    holds: bool
    executed: frozenset[int] = frozenset()


Oracle = Callable[[str], Verdict]


@dataclass(slots=True)
class Reducer:
    """Delta debugging over statements; `thorough` tries every top-level statement too, one query or more each."""

    oracle: Oracle
    out_of_time: Callable[[], bool]
    test: str = ""
    thorough: bool = False
    _rejected: set[str] = field(default_factory=set)

    def reduce(self, text: str, verdict: Verdict) -> tuple[str, Verdict]:
        """Return the smallest text found for which the oracle holds, with its verdict; `text` itself must hold."""
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

    def _try(self, text: str, verdict: Verdict, cuts: Sequence[Cut]) -> tuple[str, Verdict]:
        """Make as many of the cuts as hold together: halves of those that fail, down to single ones."""
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

    def _ask(self, text: str) -> Verdict:
        try:
            compile_module(text, "<gist>")
        except (SyntaxError, ValueError):
            return Verdict(False)
        return self.oracle(text)
