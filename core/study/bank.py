"""The question bank: blocks with fixed wording, so that answers can be pooled across studies."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from gistpoint.core.errors import did_you_mean
from gistpoint.core.study.declaration import Question
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.fields import Fields

BLOCKS = (
    "experience-1",
    "sources-1",
    "forecast-1",
    "after-task-1",
    "after-task-2",
    "tlx-1",
    "aids-1",
    "end-1",
)
ABOUT_TASKS = frozenset({"after-task-1", "after-task-2"})
"""The versions of the questions about a task."""
ATTESTATION = "aids-1"
AIDS = ("aids_ai", "aids_internet", "aids_repository", "aids_person")
"""The items of the attestation; answering `yes` to one admits the use of an aid."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A block of the bank. Its wording never changes: a new wording is a new block."""

    title: str
    source: str
    """The origin of its items, such as a publication."""
    item: tuple[Question, ...]


@cache
def block(name: str) -> Block:
    """Return a block. Raises `StudyError` for a name that is not in the bank."""
    if name not in BLOCKS:
        raise StudyError(
            f"There is no block {name[:60]!r} in the bank of questions.{did_you_mean(name, BLOCKS)}",
            hint=f"There are: {', '.join(BLOCKS)}.",
        )
    text = files("gistpoint.core.study").joinpath("bank", f"{name}.toml").read_text(encoding="utf-8")
    return Fields(tomllib.loads(text), f"{name}.toml", error=StudyError).sparse(Block)
