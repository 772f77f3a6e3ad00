"""Prose generated from a template and the facts of a study: methods, and pre-registrations.

A template is Markdown with one passage per line: a heading, an item or a paragraph. `{people/enrolled}` is
the fact with that key. `? key: text` is kept if the fact exists and is neither 0, false nor empty, and
`! key: text` is kept otherwise. `* conditions: text` is repeated for each name below `conditions/`, with
`{.}` for the name, `{=}` for the fact of the name itself and `{.tool_uses}` for a fact below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from gistpoint.core.text import markdown_line, visible_line

FactValue = int | float | str | bool
Facts = Mapping[str, FactValue]
"""The facts of a study, by key such as `people/enrolled`."""

_PLACE = re.compile(r"\{([^{}]+)\}")
_LINE = re.compile(r"([?!*]) (\S+): (.*)")


class PassageKind(StrEnum):
    """The kind of a passage, which decides how Markdown and reports show it."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    ITEM = "item"


@dataclass(frozen=True, slots=True)
class Passage:
    """A heading, a paragraph or an item of a list, as plain text."""

    kind: PassageKind
    text: str


def written(template: str, facts: Facts) -> tuple[Passage, ...]:
    """Return the passages of a filled-in template. Raises `KeyError` for a missing fact."""
    found = list[Passage]()
    for line in template.splitlines():
        if line.strip():
            found += _passages(line.strip(), facts)
    return tuple(found)


def places(template: str) -> tuple[str, ...]:
    """Return the keys between braces in a template."""
    return tuple(_PLACE.findall(template))


def bare(template: str) -> str:
    """Return the fixed words of a template, without placeholders and keys of conditions."""
    texts = list[str]()
    for line in template.splitlines():
        match = _LINE.fullmatch(line.strip())
        texts.append(match.group(3) if match else line)
    return _PLACE.sub("", "\n".join(texts))


def _passages(line: str, facts: Facts) -> Iterator[Passage]:
    match = _LINE.fullmatch(line)
    if match is None:
        yield _passage(line, facts)
        return
    sign, key, text = match.groups()
    if sign == "*":
        for name in children(facts, key):
            yield _passage(text, facts, f"{key}/{name}", name)
    elif bool(facts.get(key)) == (sign == "?"):
        yield from _passages(text, facts)


def children(facts: Facts, key: str) -> tuple[str, ...]:
    """Return the names directly below a key, in the order of the facts."""
    start = f"{key}/"
    below = [name.removeprefix(start) for name in facts if name.startswith(start)]
    return tuple(dict.fromkeys(name.partition("/")[0] for name in below))


def _passage(line: str, facts: Facts, base: str = "", name: str = "") -> Passage:
    def filled(match: re.Match[str]) -> str:
        key = match.group(1)
        if key == ".":
            return name
        if key == "=":
            return _spelled(facts[base])
        if key.startswith("."):
            return _spelled(facts[f"{base}/{key[1:]}"])
        return _spelled(facts[key])

    kind = PassageKind.PARAGRAPH
    text = line
    if line.startswith("#"):
        kind = PassageKind.HEADING
        text = line.lstrip("# ")
    elif line.startswith("- "):
        kind = PassageKind.ITEM
        text = line[2:]
    return Passage(kind, _PLACE.sub(filled, text))


def _spelled(value: FactValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return visible_line(value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


_START = {PassageKind.HEADING: "## ", PassageKind.ITEM: "- ", PassageKind.PARAGRAPH: ""}


def markdown(title: str, passages: Iterable[Passage]) -> str:
    """Return passages under a title as Markdown, with all markup in their text escaped."""
    text = f"# {markdown_line(title)}\n"
    before = PassageKind.HEADING
    for passage in passages:
        in_list = passage.kind is before is PassageKind.ITEM
        gap = "" if in_list else "\n"
        text = f"{text}{gap}{_START[passage.kind]}{markdown_line(passage.text)}\n"
        before = passage.kind
    return text
