"""Runs of Docent: a serialised `AgentRun` with one or several transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.shared.messages import Turns, message_step, message_texts
from gistpoint.sessions.records.building import verdict_of
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, run_named
from gistpoint.sessions.records.model import Json, NotShown, Run, Step, StepTexts
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.scanning import RawRecord, array_records, elements_at, guarded, lines
from gistpoint.sessions.records.values import as_bool, as_dict, as_float, as_str, first, objects, shallow


class _Reader(RunReader):
    """The reader of one transcript: the messages of an element of `transcripts`."""

    format = "docent"
    arrays = ("messages",)

    def __init__(self, probe: FileProbe, run: dict[str, Json], transcript: dict[str, Json], id: str) -> None:
        super().__init__(probe)
        self._run = run
        self._transcript = transcript
        self._id = id
        self._turns = Turns()

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        step = message_step(index, raws)
        return replace(
            step, model=step.model or as_str(as_dict(as_dict(raws[0].value).get("metadata")).get("model"))
        )

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        return message_texts(values)

    def header(self) -> Run:
        metadata = {**as_dict(self._run.get("metadata")), **as_dict(self._transcript.get("metadata"))}
        known, run = Record(metadata), Record(self._run)
        flag, score = _outcome(known.inner("scores"))
        solved = flag
        if flag is None and score is not None:
            solved = score >= 1
        if flag is not None and score is None:
            score = float(flag)
        other_facts = {
            key: value for key, value in known.without("model", "task_id").items() if value is not None
        }
        named = (
            known.first("task_id", "sample_id", "task") or first(self._transcript, "name") or run.get("name")
        )
        return Run(
            self.format,
            id=self._id or run.word("id"),
            task=as_str(named),
            model=known.first_word("model", "model_name"),
            verdict=verdict_of(solved),
            score=score,
            extra=other_facts,
            derived=frozenset({"verdict", "score"}),
        )


def _outcome(scores: Record) -> tuple[bool | None, float | None]:
    """Return a run's outcome as a boolean and as a number, of which at least one is None.

    The outcome is the only score of the run, or the one whose name denotes an outcome.
    """
    found = {name: value for name, value in scores.members.items() if isinstance(value, bool | int | float)}
    only = first(found, "resolved", "correct", "success", "reward")
    if len(found) == 1:
        only = next(iter(found.values()))
    return as_bool(only), as_float(only)


class Docent(Format):
    """Recognised by `transcripts` with messages."""

    name = "docent"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("citations",), "the other runs to which Docent's text refers"),
        NotShown(("transcript_groups",), "how the transcripts of a run are grouped", of_run=True),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        transcripts = _listed(probe.opening.get("transcripts"))[:1]
        return 1.0 if any(isinstance(one.get("messages"), list) for one in transcripts) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the transcripts of each run; if there is only one, its id is empty."""
        found = list(_transcripts(probe))
        for reader in found:
            yield RunEntry(reader.header().id if len(found) > 1 else "", reader.header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a transcript by its id, or of the first one if `id` is empty.

        Raises `RunFileError` if there is none.
        """
        return run_named(probe, id, ((reader.header().id, reader) for reader in _transcripts(probe)))[1]


def _listed(value: Json) -> list[dict[str, Json]]:
    """Return transcripts: from a list, or from an object by id, which earlier versions of Docent wrote."""
    return objects(list(value.values())) if isinstance(value, dict) else objects(value)


def _records(probe: FileProbe) -> Iterator[RawRecord]:
    found = array_records(probe.blob, probe.start, None) if probe.array else lines(probe.blob, probe.start)
    if not probe.array and not probe.is_lines:
        found = iter([RawRecord(probe.start, probe.blob.size, dict(probe.object))])
    yield from guarded(found, probe.blob, [])


def _transcripts(probe: FileProbe) -> Iterator[_Reader]:
    names = RunNames()
    for number, record in enumerate(_records(probe), 1):
        run = shallow(record.fields)
        # Each run is read as a separate file, so that positions of transcripts are relative to it.
        whole = FileProbe(probe.part(record).blob, name=probe.name)
        inner = list(elements_at(whole.blob, whole.start, "transcripts"))
        for place, element in enumerate(inner, 1):
            transcript = shallow(element.fields)
            own = as_str(first(run, "id", "name")) or str(number)
            part = as_str(first(transcript, "id", "name")) or str(place)
            yield _Reader(
                whole.part(element), run, transcript, names.name(own if len(inner) == 1 else f"{own}/{part}")
            )


FORMAT = Docent()
