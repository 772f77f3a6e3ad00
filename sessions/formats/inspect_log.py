"""Inspect logs: `.eval` archives, finished or not, and the same as one JSON text; every sample is a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.inspect_samples import ChunkedSample, MonolithSample, header_of
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.registry import RunEntry, RunNames
from gistpoint.sessions.formats.values import as_dict, as_str, objects
from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import Archive, RunFileError, SliceBlob
from gistpoint.sessions.runs.loading import is_deep, load_record
from gistpoint.sessions.runs.model import Json, NotShown
from gistpoint.sessions.runs.scanning import CutOffError, DamagedError, Record, Scanner, TooLongError, members

_PREFIX = "samples/"
_OF_CHUNKED = re.compile(r"([^/]+)/(?:sample|(?:events|messages)/\d{1,12})\.json")
"""A member of a chunked sample; in an archive that was cut off, one of them may be all there is."""


def _ids(archive: Archive) -> list[str]:
    """Return the samples' ids, in the archive's order: names of members, or of the folders of chunked ones."""
    found: dict[str, None] = {}
    for name in archive.members:
        if not name.startswith(_PREFIX) or not name.endswith(".json"):
            continue
        rest = name.removeprefix(_PREFIX)
        if "/" not in rest:
            found[rest.removesuffix(".json")] = None
        elif match := _OF_CHUNKED.fullmatch(rest):
            found[match[1]] = None
    return list(found)


def _document(archive: Archive, *names: str) -> Json:
    for name in names:
        if name in archive.members:
            try:
                blob = archive.read(name)
            except RunFileError:
                continue
            if blob.size <= limits.RECORD:
                value, damage = load_record(blob, 0, blob.size)
                if not damage:
                    return value
    return None


def _summaries(archive: Archive) -> dict[str, dict[str, Json]]:
    listed = objects(_document(archive, "summaries.json"))
    if not listed:
        for name in archive.members:
            if name.startswith("_journal/summaries/"):
                listed += objects(_document(archive, name))
    return {f"{as_str(item.get('id'))}_epoch_{as_str(item.get('epoch'))}": item for item in listed}


class InspectLog:
    """Told by an archive with samples and a header or journal, or by a JSON text with `eval` and a version."""

    name = "inspect"
    not_shown: Sequence[NotShown] = (
        NotShown(("input", "input_refs"), "what the model was sent; what is new in it are steps of their own"),
        NotShown(("call", "config", "model", "output.model", "output.choices.stop_reason", "content.internal",
                  "output.choices.message.content.internal"), "the provider's own form of a call"),
        NotShown(("tools", "tool_choice", "view", "output.choices.message.tool_calls.view"),
                 "what the model could call, and how Inspect's viewer draws it"),
        NotShown(("event", "source", "sample.input.source", "output.choices.message.source",
                  "output.choices.message.model"),
                 "what kind of an event it is, and who wrote a message"),
        NotShown(("state", "message.level", "message.filename", "message.module"),
                 "the state that a sample begins with, which its input is; where a line of the log comes from"),
        NotShown(("input", "messages", "output", "attachments", "events_data"), "what the steps are made of",
                 of_run=True),
        NotShown(("store", "metadata", "timelines", "invalidation"), "what solvers kept beside the conversation",
                 of_run=True),
    )  # fmt: skip

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is."""
        if probe.archive is not None:
            members_of = probe.archive.members
            marked = "header.json" in members_of or "_journal/start.json" in members_of
            rest = "summaries.json" in members_of or bool(probe.archive.damage)
            return 1.0 if marked else 0.8 if _ids(probe.archive) and rest else 0.0
        known = {"version", "eval", "plan", "results", "stats", "samples", "status"} & probe.object.keys()
        return 0.9 if isinstance(probe.object.get("eval"), dict) and len(known) >= 3 else 0.0

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the samples."""
        if probe.archive is None:
            log = {key: probe.early(key) for key in ("version", "eval", "status")}
            for id, record in _samples(probe):
                yield RunEntry(id, header_of(as_dict(record.fields), log, id, ""))
            return
        log = _log(probe.archive)
        summaries = _summaries(probe.archive)
        for id in _ids(probe.archive):
            yield RunEntry(id, header_of(summaries.get(id, {}), log, id, ""))

    def open(self, probe: Probe, id: str) -> MonolithSample | ChunkedSample:
        """Open a sample by its id, the first without one."""
        if probe.archive is None:
            return self._open_json(probe, id)
        ids = _ids(probe.archive)
        if (id and id not in ids) or not ids:
            known = f"Its samples: {', '.join(ids[:8])}{' …' if len(ids) > 8 else ''}." if ids else ""
            raise RunFileError(f"{probe.name or 'The log'} has no sample {id}".rstrip() + ".", hint=known)
        id = id or ids[0]
        log, summary = _log(probe.archive), _summaries(probe.archive).get(id, {})
        sample: MonolithSample | ChunkedSample
        if f"{_PREFIX}{id}.json" in probe.archive.members:
            sample = MonolithSample(Probe(probe.archive.read(f"{_PREFIX}{id}.json")), id, log, summary)
        else:
            sample = ChunkedSample(probe.archive, id, log, summary)
        if probe.archive.damage:
            sample.warnings.append(probe.archive.damage)
        return sample

    def _open_json(self, probe: Probe, id: str) -> MonolithSample:
        log = {key: probe.early(key) for key in ("version", "eval", "status")}
        for known, record in _samples(probe):
            if known == id or not id:
                blob = SliceBlob(probe.blob, record.start, record.end, probe.blob.name, origin=record.start)
                return MonolithSample(Probe(blob, name=probe.name), known, log, as_dict(record.fields))
        raise RunFileError(f"{probe.name or 'The log'} has no sample {id}".rstrip() + ".")


def _log(archive: Archive) -> dict[str, Json]:
    return as_dict(_document(archive, "header.json", "_journal/start.json"))


def _samples(probe: Probe) -> Iterator[tuple[str, Record]]:
    scanner, names = Scanner(probe.blob, probe.start), RunNames()
    try:
        for key, _, _, _ in members(scanner, lambda key: key == "samples"):
            if key == "samples" and scanner.peek() == "[":
                for number, record in enumerate(scanner.elements(), 1):
                    record = record._replace(fields=None) if is_deep(record.fields) else record
                    fields = as_dict(record.fields)
                    id = f"{as_str(fields.get('id'))}_epoch_{as_str(fields.get('epoch'))}"
                    yield names.name(id if fields else f"damaged-{number}"), record
            elif key == "samples":
                scanner.value()
    except (CutOffError, DamagedError, TooLongError):
        return


FORMAT = InspectLog()
