"""Asks a model to write the missing body of a function; faults are not mentioned (decision 139)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from gistpoint.core.chat import ChatMessage, ChatReply
from gistpoint.core.code.index import Definition, index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import replace_definition, with_body_of
from gistpoint.core.corruption.corruptions import replaced_target
from gistpoint.core.corruption.model import MOST_EMPTY_REPLIES, ModelLoop
from gistpoint.core.corruption.prompt import REWRITE_TEMPLATE, render_rewrite
from gistpoint.core.corruption.rounds import End, LoopResult, SubmissionVerdict
from gistpoint.core.tasks.model import Target
from gistpoint.core.tools.declaration import Tool
from gistpoint.core.trees import SourceTree

MOST_CHARACTERS = 60_000
"""The length of the longest file that is shown whole."""
_BEGINNING = 10_000
"""The number of characters shown from the start of a longer file: its imports and constants."""
_BLOCK = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_AGAIN = (
    "Your reply has no complete definition of {name} in a Python code block. {why}Send it whole, in one"
    " block."
)
_CUT_OFF = (
    "Your reply was cut off at the limit of its length. Send the definition alone, in one Python code block."
)


@dataclass
class RewriteLoop(ModelLoop):
    """One conversation in which a model writes a function; it ends with the first definition in a reply.

    The model has no tools, because they would show it the body, and gets no test results, because it would
    use them to repair the fault that a solver has to find.
    """

    _asked_again: ClassVar[str] = "Your reply was stopped before it was complete. Send the definition again."
    _gated: ClassVar[SubmissionVerdict] = SubmissionVerdict.UNUSABLE

    def run(self) -> LoopResult:
        """Hold the conversation until a definition or a reason to stop, and return its result.

        Raises `CancelledError` when stopped.
        """
        return replace(super().run(), template=REWRITE_TEMPLATE)

    def _offered(self) -> list[Tool]:
        return []

    def _answered(self, reply: ChatReply) -> tuple[End, str] | None:
        code = (
            "" if reply.finish == "length" else definition_in(reply.message.content, self.function.qualname)
        )
        why = ""
        if code:
            done = self._judged(code)
            self._rounds.append(done)
            if self.on_round is not None:
                self.on_round(done)
            if done.verdict is not SubmissionVerdict.NO_DEFINITION:
                return End.FINAL_SUBMISSION, done.detail
            why = f"{done.detail} "
        return self._without_definition(reply, why)

    def _without_definition(self, reply: ChatReply, why: str) -> tuple[End, str] | None:
        cut = reply.finish == "length"
        self._empty += 1
        if self._empty >= MOST_EMPTY_REPLIES:
            what = "were cut off at the limit of their length" if cut else "had no definition"
            end = End.TRUNCATED if cut else End.NO_DEFINITION
            return end, f"{self._empty} replies in a row {what}. {why}".rstrip()
        # Only the text is repeated: a call to a tool that does not exist would need an answer.
        self._messages.append(replace(reply.message, content=reply.message.content or "...", tool_calls=()))
        text = _CUT_OFF if cut else _AGAIN.format(name=self.function.qualname, why=why)
        self._messages.append(ChatMessage("user", text))
        return None

    def _target_of(self, code: str) -> Target:
        tree, function = self.context.tree, self.function
        index = index_source(function.path, tree.read(function.path))
        whole = with_body_of(index, index.get(function.qualname), code)
        return replaced_target(tree, function, whole)

    def _remaining(self) -> str:
        return ""


def definition_in(reply: str, qualname: str) -> str:
    """Return the definition of a function in the last code block of a reply that has one; empty if none has.

    A block may contain more than the definition, such as its class. A reply without a block is treated as a
    block.
    """
    name = qualname.rpartition(".")[2].partition("#")[0]
    header = re.compile(rf"\bdef\s+{re.escape(name)}\s*[(\[]")
    blocks = _BLOCK.findall(reply) or [reply]
    code = next((block for block in reversed(blocks) if header.search(block)), "")
    return _definition_named(code, name, qualname) or code.strip("\n") if code else ""


def _definition_named(code: str, name: str, qualname: str) -> str:
    """Return the definition with that name in a block; empty if the block can't be read as a file."""
    try:
        index = index_source("reply.py", code.encode("utf-8", "replace"))
    except CodeError:
        return ""
    found = [definition for definition in index.definitions if definition.name == name]
    found.sort(key=lambda definition: not qualname.endswith(definition.qualname))
    return found[0].dedented if found else ""


def rewriting_prompt(tree: SourceTree, path: str, qualname: str, stub: str) -> str:
    """Return the prompt for a function; `stub` is its definition without the body.

    If the file has more than `MOST_CHARACTERS`, its beginning and the lines around the function are shown.
    Raises `CodeError` if the function can't be replaced.
    """
    index = index_source(path, tree.read(path))
    data = replace_definition(index, index.get(qualname), stub)
    without = index_source(path, data)
    text = without.text
    if len(text) > MOST_CHARACTERS:
        text = "\n".join(_excerpt(text.split("\n"), without.get(qualname)))
    return render_rewrite(path, qualname, text)


def _excerpt(lines: list[str], definition: Definition) -> Iterator[str]:
    """Yield the first lines and those around a definition, with a line for each gap."""
    beginning = _first_within_limit(lines, range(len(lines)), _BEGINNING)
    half = (MOST_CHARACTERS - _BEGINNING) // 2
    above = _first_within_limit(lines, range(definition.start_line - 1, -1, -1), half)
    below = _first_within_limit(lines, range(definition.start_line, len(lines)), half)
    shown = sorted({*beginning, *above, *below})
    before = -1
    for number in shown:
        if number > before + 1:
            yield f"# [lines {before + 2} to {number} are left out]"
        yield lines[number]
        before = number
    if before + 1 < len(lines):
        yield f"# [lines {before + 2} to {len(lines)} are left out]"


def _first_within_limit(lines: list[str], numbers: range, most: int) -> list[int]:
    """Return the first of the numbers whose lines have at most `most` characters in total."""
    found: list[int] = []
    left = most
    for number in numbers:
        left -= len(lines[number]) + 1
        if left < 0:
            break
        found.append(number)
    return found
