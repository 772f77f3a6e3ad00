"""Where the repositories of records are to be had: a TOML file of the user's, else git at the record's own address."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass

from gistpoint.core.errors import SourceError, TaskError
from gistpoint.core.generation.breakpoint.records import Record, normal_url
from gistpoint.core.generation.campaign.batch import SourceSpec
from gistpoint.core.tasks.fields import Fields

_KEYS = frozenset(
    {"repository", "commit", "source", "pytest_args", "extra_requirements", "exclude_newer", "build_steps"}
)
_HINT = (
    "Each source is a table [[source]] with the keys 'repository' (its address or name, as the records have it) and "
    "'source' (name==version, a folder, or PATH@COMMIT), and may have "
    "commit, pytest_args, extra_requirements, exclude_newer and build_steps."
)


@dataclass(frozen=True, slots=True)
class MappedSource:
    """What the user says of a repository."""

    repository: str
    commit: str
    spec: SourceSpec


@dataclass(frozen=True, slots=True)
class RecordSources:
    """Answers where a record's repository is to be had."""

    mapped: tuple[MappedSource, ...] = ()

    def spec_of(self, record: Record) -> SourceSpec:
        """Return the source of a record's repository: of several that fit, one that names the commit.

        Raises `SourceError` where none is named and the record's own address is none that is fetched unasked.
        """
        fitting = [
            item
            for item in self.mapped
            if item.repository in (normal_url(record.url), record.repository) and record.commit.startswith(item.commit)
        ]
        if fitting:
            return max(fitting, key=lambda item: len(item.commit)).spec
        if not record.url.startswith("https://"):
            raise SourceError(
                f"{record.url[:200]} is no address that is fetched unasked.", hint="Say where it is with --sources."
            )
        return SourceSpec(f"{record.url}@{record.commit}")


def read_sources(text: str, file: str) -> RecordSources:
    """Return the sources in a TOML text; raises `SourceError` naming `file` and the key that is wrong."""
    try:
        fields = Fields(tomllib.loads(text), file)
        _only(fields, {"source"})
        return RecordSources(tuple(_source(table) for table in fields.tables("source")))
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{file} is no TOML: {error}.", hint=_HINT) from error
    except TaskError as error:
        raise SourceError(error.message, hint=_HINT) from error


def _source(fields: Fields) -> MappedSource:
    _only(fields, _KEYS)
    for key in ("repository", "source"):
        if not fields.get(key, str).strip():
            raise TaskError(f"{fields.file}: the key {fields.name(key)!r} is empty.")
    spec = SourceSpec(
        fields.get("source", str),
        _strings(fields, "pytest_args"),
        _strings(fields, "extra_requirements"),
        fields.get("exclude_newer", str, "") or None,
        _strings(fields, "build_steps"),
    )
    repository = fields.get("repository", str)
    known = normal_url(repository) if "/" in repository else repository
    return MappedSource(known, fields.get("commit", str, "").lower(), spec)


def _strings(fields: Fields, key: str) -> tuple[str, ...]:
    return fields.strings(key) if key in fields.values else ()


def _only(fields: Fields, known: Iterable[str]) -> None:
    strange = sorted(set(fields.values) - set(known))
    if strange:
        raise TaskError(f"{fields.file}: the key {fields.name(strange[0])!r} is not known.")
