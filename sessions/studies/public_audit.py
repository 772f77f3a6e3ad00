"""The audit of a public export, which must not contain a study's codes, writers, ids or free text."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import msgspec

from gistpoint.core.attempts.events import (
    AssistAsked,
    AttemptEnded,
    EndWithdrawn,
    EventData,
    HandedOver,
    NotesWritten,
    Paused,
    QuestionnaireAnswered,
)
from gistpoint.core.locations import read_regular
from gistpoint.core.study.declaration import Study
from gistpoint.core.study.operations import DATA_OF, Answers, Planned, StudyError, StudyOperation
from gistpoint.core.study.ports import PublishedAttempt
from gistpoint.sessions.journal import read_journal
from gistpoint.sessions.studies.auditing import AuditFinding
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.public import free_texts, is_rule
from gistpoint.sessions.studies.publishing import header_of

_SHORTEST_TEXT = 8
_WORD = r"[A-Za-z0-9_]"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")


@dataclass
class Secrets:
    """The words and strings that a public export must not contain."""

    words: dict[str, str] = field(default_factory=dict)
    """The forbidden words, each with a description; only whole words are searched for."""
    texts: set[str] = field(default_factory=set)
    """Lines of free text, in the form that `_blanks` returns."""
    unsearchable: list[str] = field(default_factory=list)
    """Codes that look like numbers, and strings too short to search for."""

    def word(self, word: str, what: str) -> None:
        """Add a word, which `what` describes; a word of digits can't be searched for and is only listed."""
        if word.isdigit():
            self.unsearchable.append(word)
        elif word:
            self.words.setdefault(word, what)

    def text(self, text: str) -> None:
        """Add free text, whose lines are searched for individually, each by its first 60 characters.

        Lines of fewer than `_SHORTEST_TEXT` characters can't be searched for, and are only listed.
        """
        for line in text.splitlines():
            plain = _blanks(line)
            if len(plain) >= _SHORTEST_TEXT:
                self.texts.add(plain[:60])
            elif plain:
                self.unsearchable.append(plain)


def audit_public(study: StudyFolder, out: Path) -> Iterator[AuditFinding]:
    """Yield a finding for each file of a public export with content that must not be public.

    `out` is the folder of the export. Also yields a finding if it has no file, and a note on strings that
    could not be searched for. Raises `StudyError` if the folder does not exist.
    """
    if not out.is_dir():
        raise StudyError(
            f"There is no folder {out.name}.", hint="Give the folder that `study export -o` wrote."
        )
    secrets = secrets_of(study)
    words = _alternation(secrets.words)
    texts = None
    if secrets.texts:
        longest_first = sorted(secrets.texts, key=len, reverse=True)
        texts = re.compile("|".join(map(re.escape, longest_first)))
    files = 0
    for name, content in _files(out):
        files += 1
        for view in dict.fromkeys((f"{name}\n{content}", f"{name}\n{_unescaped(content)}")):
            found = words.search(view) if words is not None else None
            if found is not None:
                what = secrets.words[found[0]]
                yield AuditFinding("not_public", f"{name} holds {what}: {found[0]!r}.", name)
                break
            if texts is not None and (text := texts.search(_blanks(view))):
                yield AuditFinding(
                    "not_public", f"{name} contains what somebody wrote: {text[0][:60]!r}.", name
                )
                break
    if not files:
        yield AuditFinding("nothing_exported", f"{out.name} does not contain any files.")
    if secrets.unsearchable:
        yield AuditFinding(
            "not_searched",
            f"{len(set(secrets.unsearchable))} codes and texts are digits only or shorter than"
            f" {_SHORTEST_TEXT} characters: they can't be distinguished from other content, and were not"
            " searched for.",
            note=True,
        )


def secrets_of(study: StudyFolder) -> Secrets:
    """Return all words and strings in a study's log and journals that a public export must not contain."""
    secrets = Secrets()
    for path in (*study.files.log.files(), *(study.root / "reviews").glob("*.jsonl")):
        secrets.word(path.stem, "the name of a file of the log")
    for operation in study.ledger.operations:
        _add_operation(secrets, study.study, operation)
    for published in study.attempts():
        _add_journal(secrets, study.study, published)
    return secrets


def _add_operation(secrets: Secrets, study: Study, operation: StudyOperation) -> None:
    about, _, identity = operation.subject.partition(":")
    secrets.word(operation.reviewer, "a writer")
    if about in _IDENTITIES:
        secrets.word(identity, _IDENTITIES[about])
    record = DATA_OF.get(operation.kind)
    fact = operation.read(record) if record is not None else None
    if fact is None:
        return
    values = msgspec.to_builtins(fact)
    secrets.word(str(values.get("attempt", "")), "the id of an attempt")
    if isinstance(fact, Planned):
        for assignment in fact.assignments:
            secrets.word(assignment[0], "the id of an assignment")
    if not study.privacy.free_text_public:
        for text in _texts_of(study, values, fact if isinstance(fact, Answers) else None):
            secrets.text(text)


_IDENTITIES = {"person": "a code", "attempt": "the id of an attempt"}
"""The words for the identity of each kind of subject."""


def _add_journal(secrets: Secrets, study: Study, published: PublishedAttempt) -> None:
    secrets.word(published.id, "the id of an attempt")
    secrets.word(published.writer, "a writer")
    header = header_of(read_regular(published.journal, links=False))
    if header is not None:
        secrets.word(header.participant or "", "a code")
    if study.privacy.free_text_public:
        return
    for event in read_journal(published.journal).events:
        for text in _free_texts(study, event.data):
            secrets.text(text)


_FREE = ("why", "words", "text", "how")


def _texts_of(study: Study, values: Mapping[str, object], answers: Answers | None) -> Iterator[str]:
    yield from (text for name in _FREE if isinstance(text := values.get(name), str))
    reason = values.get("reason")
    if isinstance(reason, str) and not is_rule(reason):
        yield reason
    if answers is not None:
        for item, value in answers.values.items():
            yield from free_texts(study, answers.questionnaire, item, value)


def _free_texts(study: Study, data: EventData) -> Iterator[str]:
    """Yield the free text that a person wrote, according to an event."""
    match data:
        case NotesWritten(text=text) | Paused(text=text) | AssistAsked(text=text) | HandedOver(note=text):
            yield text
        case AttemptEnded(text=str() as text) | EndWithdrawn(text=str() as text):
            yield text
        case QuestionnaireAnswered():
            for item, value in data.values.items():
                yield from free_texts(study, data.questionnaire, item, value)
        case _:
            pass


# The files of an export


def _files(out: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of all files; for an archive, also its comments, and those on its members.

    The compressed bytes themselves are not searched, because a short code occurs in them by chance.
    """
    for path in sorted(out.rglob("*")):
        if path.is_file():
            name, data = path.relative_to(out).as_posix(), path.read_bytes()
            if not zipfile.is_zipfile(BytesIO(data)):
                yield name, data.decode("utf-8", "replace")
                continue
            with zipfile.ZipFile(BytesIO(data)) as archive:
                yield name, archive.comment.decode("utf-8", "replace")
                for member in archive.infolist():
                    data = member.comment + b"\n" + archive.read(member)
                    yield f"{name}: {member.filename}", data.decode("utf-8", "replace")


def _alternation(words: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern that finds each of some words as a whole word; None if there are no words."""
    longest_first = sorted(words, key=len, reverse=True)
    if not longest_first:
        return None
    alternatives = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<!{_WORD})(?:{alternatives})(?!{_WORD})")


def _unescaped(text: str) -> str:
    """Return text without JSON's escapes and CSV's doubled quotes."""
    return _ESCAPE.sub(_character, text).replace('""', '"')


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}.get(escape[2], escape[2])


def _blanks(text: str) -> str:
    """Return text with single spaces in place of whitespace, so that it is found in any layout."""
    return " ".join(text.replace('""', '"').split())
