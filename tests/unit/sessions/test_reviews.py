"""Reviews are kept, merge without loss in any order, and are counted as in the literature."""

from __future__ import annotations

import csv
import io
import json
from itertools import permutations
from pathlib import Path

import pytest
from examples import examples
from fakes import FakeClock
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs import Made, make_all

from gistpoint.core.errors import SettingsError
from gistpoint.core.estimates import cohen_kappa
from gistpoint.core.operations import LATEST_MS
from gistpoint.sessions.annotations.agreement import agreement
from gistpoint.sessions.annotations.keys import StepKey, TextRange, run_key
from gistpoint.sessions.annotations.labels import BEHAVIOURS, BUILT_IN, DEFAULT, LabelsError, read_label_sets
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import (
    CODEC,
    ExcludeReason,
    ReviewBook,
    ReviewError,
    ReviewOperation,
    ReviewOperationKind,
    RunVerdict,
    annotated_key,
    read_verdict_words,
)
from gistpoint.sessions.annotations.rows import REVIEW_COLUMNS, csv_lines, jsonl_lines, review_rows
from gistpoint.sessions.annotations.side_files import read_side_file
from gistpoint.sessions.records.model import TextScope
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import join_name, list_runs, open_run

RUN = "swe-agent:0123"
PLACE = TextRange(TextScope.RESULT, 1, 3, 9)


def at_work(folder: Path, name: str = "r1", clock: FakeClock | None = None) -> Reviewer:
    return Reviewer(ReviewStore(folder, clock or FakeClock()), name)


def test_all_that_was_said_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    reviewer.open(RUN, "/somewhere/else/run.traj", blind=True)
    reviewer.label(RUN, "wasted", StepKey(4, "x:y"), place=PLACE, label_set="mine")
    gone = reviewer.label(RUN, "shortcut", StepKey(5))
    reviewer.comment(RUN, "why \x1b[31m\ud800 [b]", StepKey(4, "x:y"))
    reviewer.seen(RUN, [StepKey(0), StepKey(1), StepKey(2)])
    reviewer.unseen(RUN, [StepKey(1)])
    reviewer.stopped(RUN, StepKey(2))
    reviewer.delete(gone.op)
    assert reviewer.review(RUN).hides_outcome
    reviewer.verdict(RUN, RunVerdict.EXCLUDE, reasons=[ExcludeReason.AID], note="n", minutes=2.5)
    again = at_work(tmp_path).review(RUN)
    assert again == reviewer.review(RUN)
    assert [(g.label, g.set, g.step, g.range) for g in again.labels] == [
        ("wasted", "mine", StepKey(4, "x:y"), PLACE)
    ]
    assert [comment.text for comment in again.comments if comment.step == StepKey(4, "x:y")] == [
        "why \x1b[31m\ud800 [b]"
    ]
    assert again.seen == {StepKey(0), StepKey(2)}
    assert again.stopped == StepKey(2)
    assert again.name == "run.traj"
    assert again.verdict is not None
    assert (again.verdict.verdict, again.verdict.reasons, again.verdict.blind) == ("exclude", ("aid",), True)
    assert not again.hides_outcome


def test_an_operation_from_the_future_is_not_merged_and_takes_no_later_one_along(tmp_path: Path) -> None:
    clock = FakeClock()
    anna = at_work(tmp_path / "here", "anna", clock)
    times = [clock.utc_ms() + ahead for ahead in (3_600_000, 90_000_000)] + [LATEST_MS - 1]
    forged = [
        ReviewOperation(f"forged-{at}", "anna", at, RUN, "verdict", {"verdict": "accept"}) for at in times
    ]
    (tmp_path / "theirs.jsonl").write_bytes(CODEC.header + b"".join(map(CODEC.encode, forged)))
    merged = anna.store.merge([tmp_path / "theirs.jsonl"])
    assert (merged.added, merged.by) == (1, {"anna": 1})
    assert "2 operations are left out, since they are dated later than tomorrow" in merged.problems[0]
    (tmp_path / "here" / "theirs.jsonl").write_bytes((tmp_path / "theirs.jsonl").read_bytes())
    anna.store.reload()
    anna.comment(RUN, "mine")
    again = at_work(tmp_path / "here", "anna", clock)
    assert [comment.text for comment in again.review(RUN).comments] == ["mine"]
    assert again.store.problems == ()


def test_a_label_is_toggled_where_it_stands_and_only_there(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    assert reviewer.toggle(RUN, "wasted", StepKey(1))
    assert reviewer.toggle(RUN, "wasted", StepKey(1), place=PLACE)
    assert not reviewer.toggle(RUN, "wasted", StepKey(1))
    assert [given.range for given in reviewer.review(RUN).labels] == [PLACE]


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    for _ in range(2):
        reviewer.open(RUN, "a", blind=False)
        reviewer.seen(RUN, [StepKey(1)])
        reviewer.stopped(RUN, StepKey(1))
    assert len(read_side_file(reviewer.store.path_of("r1"), CODEC).operations) == 3


def test_verdicts_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    for verdict, more in (
        (RunVerdict.EXCLUDE, {}),
        (RunVerdict.ACCEPT, {"reasons": [ExcludeReason.AID]}),
        (RunVerdict.ACCEPT_CORRECTED_TIME, {}),
        (RunVerdict.ACCEPT, {"corrected_time_s": 3.0}),
    ):
        with pytest.raises(ReviewError):
            reviewer.verdict(RUN, verdict, **more)  # type: ignore[arg-type]  # the keywords vary
    assert reviewer.review(RUN).verdict is None


def test_nobody_takes_back_what_another_said(tmp_path: Path) -> None:
    said = at_work(tmp_path, "r1").label(RUN, "wasted", StepKey(1))
    other = at_work(tmp_path, "r2")
    with pytest.raises(ReviewError):
        other.delete(said.op)
    forged = ReviewOperation(
        "forged", "r2", 9, RUN, ReviewOperationKind.DELETE.value, data={"target": said.op}
    )
    other.store.append([forged])
    assert len(other.store.book.review(RUN, "r1").labels) == 1


def test_a_torn_last_line_loses_itself_alone(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    reviewer.label(RUN, "wasted", StepKey(1))
    path = reviewer.store.path_of("r1")
    whole = path.read_bytes()
    for cut in range(1, 40):
        path.write_bytes(whole + whole.splitlines(keepends=True)[1][:cut])
        again = at_work(tmp_path)
        assert len(again.store.problems) == 1
        assert "was cut off" in again.store.problems[0]
        again.label(RUN, "shortcut", StepKey(2))
        assert [given.label for given in at_work(tmp_path).review(RUN).labels] == ["wasted", "shortcut"]


def test_lines_that_are_no_operations_are_told_and_kept(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    operation = reviewer.label(RUN, "wasted", StepKey(1))
    path = reviewer.store.path_of("r1")
    bad = [
        b"[" * 100_000,
        b"[]",
        b"{}",
        b'{"op":1}',
        b'{"format":"gistpoint.reviews","version":2}',
        b"\xff\xfe",
    ]
    bad += [
        CODEC.encode(operation).replace(b'"r1"', name)[:-1]
        for name in (b'"\\ud800"', b'" "', b'"' + b"x" * 61 + b'"')
    ]
    bad += [
        CODEC.encode(operation)[:-2] + end
        for end in (b',"step":7}', b',"step":"x"}', b',"range":{"part":-1}}')
    ]
    path.write_bytes(path.read_bytes() + b"\n".join(bad) + b"\n")
    kept = path.read_bytes()
    again = at_work(tmp_path)
    assert len(again.store.problems) == len(bad)
    again.comment(RUN, "more")
    assert path.read_bytes().startswith(kept)
    assert len(again.review(RUN).labels) == 1


def test_what_a_newer_program_wrote_is_kept_and_carried_on(tmp_path: Path) -> None:
    line = {
        "op": "1",
        "reviewer": "r2",
        "utc_ms": 5,
        "run": RUN,
        "kind": "rating",
        "data": {"stars": 4},
        "new": [1],
    }
    (tmp_path / "theirs.jsonl").write_text(json.dumps(line) + "\n")
    store = ReviewStore(tmp_path / "mine", FakeClock())
    assert store.merge([tmp_path / "theirs.jsonl"]).added == 1
    written = store.path_of("r2").read_bytes().splitlines()[1]
    assert json.loads(written) == line


def test_lines_have_the_stored_names(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    reviewer.label(RUN, "wasted", StepKey(4, "x:y"), place=PLACE, label_set="mine")
    reviewer.verdict(RUN, RunVerdict.EXCLUDE, reasons=[ExcludeReason.AID], note="n", minutes=2.5)
    label, verdict = (json.loads(line) for line in reviewer.store.path_of("r1").read_bytes().splitlines()[1:])
    assert label == {
        "op": label["op"], "reviewer": "r1", "utc_ms": label["utc_ms"], "run": RUN, "kind": "label", "step": "4:x:y",
        "range": {"scope": PLACE.scope, "part": PLACE.part, "start": PLACE.start, "end": PLACE.end},
        "data": {"label": "wasted", "set": "mine"},
    }  # fmt: skip
    assert verdict["data"] == {
        "verdict": "exclude",
        "blind": False,
        "reasons": ["aid"],
        "note": "n",
        "minutes": 2.5,
    }


names = st.sampled_from(["r1", "r2"])
steps = st.builds(StepKey, st.integers(0, 3), st.sampled_from(["", "a"]))
operation_lists = st.lists(
    st.builds(
        lambda number, reviewer, at, kind, step, label: ReviewOperation(
            f"op{number}", f"{reviewer}", at, RUN, kind,
            {"target": f"op{label}"} if kind == "delete" else {"label": f"l{label}", "verdict": "accept"}, step=step,
        ),
        st.integers(0, 400), names, st.integers(0, 5),
        st.sampled_from([kind.value for kind in ReviewOperationKind]), steps,
        st.integers(0, 30),
    ),
    max_size=14,
    unique_by=lambda operation: operation.op,
)  # fmt: skip


@examples(60)
@given(operation_lists, operation_lists)
def test_merging_is_a_union_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, mine: list[ReviewOperation], theirs: list[ReviewOperation]
) -> None:
    known = {operation.op for operation in mine}
    theirs = [operation for operation in theirs if operation.op not in known]
    states = []
    for first, second in permutations([mine, theirs]):
        folder = tmp_path_factory.mktemp("reviews")
        for name, operations in (("a", first), ("b", second)):
            (folder / name).mkdir()
            ReviewStore(folder / name, FakeClock()).append(operations)
        store = ReviewStore(folder / "a", FakeClock())
        merged = store.merge([folder / "b"])
        assert merged.problems == ()
        assert merged.added == len(second)
        assert store.merge([folder / "b", folder / "a"]).added == 0
        again = ReviewStore(folder / "a", FakeClock())
        assert set(map(CODEC.encode, again.book.operations)) == set(map(CODEC.encode, [*mine, *theirs]))
        states.append([again.book.review(RUN, name) for name in ("r1", "r2")])
    assert states[0] == states[1]
    assert states[0] == [ReviewBook([*theirs, *mine]).review(RUN, name) for name in ("r1", "r2")]


@given(operation_lists)
def test_a_line_says_what_the_operation_was(operations: list[ReviewOperation]) -> None:
    assert [CODEC.decode(CODEC.encode(operation)) for operation in operations] == operations


def test_two_operations_under_one_uuid_are_named(tmp_path: Path) -> None:
    mine, theirs = (ReviewStore(tmp_path / name, FakeClock()) for name in ("a", "b"))
    mine.append([ReviewOperation("same", "r1", 1, RUN, "comment", data={"text": "mine"})])
    theirs.append([ReviewOperation("same", "r1", 1, RUN, "comment", data={"text": "theirs"})])
    merged = mine.merge([tmp_path / "b"])
    assert (merged.added, merged.known, len(merged.problems)) == (0, 1, 1)
    assert mine.book.review(RUN, "r1").comments[0].text == "mine"


def test_an_operation_that_repeats_the_uuid_of_another_persons_is_named(tmp_path: Path) -> None:
    at_work(tmp_path, "r1").comment(RUN, "mine")
    (mine,) = ReviewStore(tmp_path, FakeClock()).book.operations
    squatter = CODEC.encode(ReviewOperation(mine.op, "a0", 1, RUN, "seen"))
    (tmp_path / "a0.jsonl").write_bytes(CODEC.header + squatter)
    (problem,) = ReviewStore(tmp_path, FakeClock()).problems
    assert problem == f"r1.jsonl: {mine.op} is also the uuid of a different operation"
    (tmp_path / "a0.jsonl").write_bytes((tmp_path / "r1.jsonl").read_bytes())
    assert ReviewStore(tmp_path, FakeClock()).problems == ()


def test_names_of_reviewers_make_safe_files(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path / "in", FakeClock())
    for name in ("../../up", ".hidden", "a/b", "Åse", "a.b", "con", "*"):
        Reviewer(store, name).comment(RUN, "x")
    assert len(list((tmp_path / "in").glob("*.jsonl"))) == 7
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tmp_path / "in"] == []
    assert len(ReviewStore(tmp_path / "in", FakeClock()).book.reviewers) == 7
    for name in ("", " ", "a\nb", "x" * 61):
        with pytest.raises(ReviewError):
            Reviewer(store, name)


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ((20, 5, 10, 15), 0.4),
        ((45, 15, 25, 15), 0.1304),
        ((25, 35, 5, 35), 0.2593),
        ((118, 5, 2, 0), -0.0234),
        ((3, 0, 0, 4), 1.0),
        ((0, 5, 5, 0), -1.0),
    ],
)
def test_kappa_of_tables_from_the_literature(table: tuple[int, int, int, int], kappa: float) -> None:
    both, first, second, neither = table
    pairs = [(1, 1)] * both + [(1, 0)] * first + [(0, 1)] * second + [(0, 0)] * neither
    assert cohen_kappa(pairs) == pytest.approx(kappa, abs=5e-5)
    assert cohen_kappa([(b, a) for a, b in pairs]) == pytest.approx(kappa, abs=5e-5)


def test_kappa_of_three_categories_and_of_none() -> None:
    # The observed agreement is 0.7, that by chance 0.41, calculated by hand.
    table = {("a", "a"): 44, ("a", "b"): 5, ("a", "c"): 1, ("b", "a"): 7, ("b", "b"): 20, ("b", "c"): 3,
             ("c", "a"): 9, ("c", "b"): 5, ("c", "c"): 6}  # fmt: skip
    assert cohen_kappa([pair for pair, count in table.items() for _ in range(count)]) == pytest.approx(
        0.29 / 0.59
    )
    assert cohen_kappa([]) is None
    assert cohen_kappa([(0, 0)] * 5) is None


def test_agreement_counts_the_steps_that_both_have_seen(tmp_path: Path) -> None:
    store = ReviewStore(tmp_path, FakeClock())
    one, other = Reviewer(store, "r1"), Reviewer(store, "r2")
    one.seen(RUN, [StepKey(n) for n in range(10)])
    other.seen(RUN, [StepKey(n) for n in range(2, 20)])
    one.seen("only:one", [StepKey(1)])
    for reviewer, places in ((one, (1, 2, 3)), (other, (2, 4, 15))):
        for place in places:
            reviewer.label(RUN, "wasted", StepKey(place), place=PLACE if place == 2 else None)
    one.label(RUN, "wasted", StepKey(2))
    one.label(RUN, "shortcut", None)
    for reviewer in (one, other):
        reviewer.verdict(RUN, RunVerdict.ACCEPT)
    found = agreement(store.book, "r1", "r2")
    assert (found.runs, found.steps, found.verdicts, found.verdict_kappa) == (1, 8, 1, None)
    wasted = next(item for item in found.on_steps if item.label == "wasted")
    assert (wasted.both, wasted.first_only, wasted.second_only, wasted.neither) == (1, 1, 1, 5)
    # The observed agreement is 6/8, that by chance (2*2 + 6*6)/64 = 0.625.
    assert wasted.kappa == pytest.approx((0.75 - 0.625) / 0.375)
    shortcut = next(item for item in found.on_runs if item.label == "shortcut")
    assert (shortcut.both, shortcut.first_only, shortcut.units) == (0, 1, 1)


def test_exports_hold_what_stands_and_read_back(tmp_path: Path) -> None:
    reviewer = at_work(tmp_path)
    reviewer.open(RUN, "run.traj", blind=False)
    reviewer.label(RUN, "wasted", StepKey(4, "id"), place=PLACE)
    reviewer.comment(RUN, 'a "quote",\nnew line', StepKey(0))
    reviewer.verdict(RUN, RunVerdict.ACCEPT_CORRECTED_TIME, corrected_time_s=12.5)
    reviewer.delete(reviewer.label(RUN, "shortcut", StepKey(1)).op)
    found = list(
        csv.DictReader(
            io.StringIO("".join(csv_lines(review_rows(reviewer.store.book), REVIEW_COLUMNS)), newline="")
        )
    )
    assert list(found[0]) == list(REVIEW_COLUMNS)
    assert [(row["kind"], row["label"], row["step"], row["start"]) for row in found] == [
        ("label", "wasted", "5", "3"),
        ("comment", "", "1", ""),
        ("verdict", "", "", ""),
    ]
    assert found[1]["text"] == 'a "quote",\nnew line'
    assert (found[2]["verdict"], found[2]["corrected_time_s"]) == ("accept_corrected_time", "12.5")
    lines = [json.loads(line) for line in jsonl_lines(review_rows(reviewer.store.book))]
    assert [{key: str(value) for key, value in line.items()} for line in lines] == [
        {key: value for key, value in row.items() if key in line} | ({"blind": "False"} if "blind" in line else {})
        | ({"reasons": "[]"} if "reasons" in line else {})
        for row, line in zip(found, lines, strict=True)
    ]  # fmt: skip
    assert list(review_rows(reviewer.store.book, ["somebody else"])) == []


def test_one_s_own_labels_come_first_and_faults_are_named(tmp_path: Path) -> None:
    assert read_label_sets(tmp_path) == BUILT_IN == (DEFAULT, BEHAVIOURS)
    keys = [label.key for label in DEFAULT.labels]
    assert len(set(keys)) == len(keys)
    file = tmp_path / "labels.toml"
    file.write_text(
        '[[set]]\nname = "own"\n[[set.label]]\nid = "a"\nkey = "x"\n[[set.label]]\nid = "b"\nname = "B"\n'
    )
    own, last, _ = read_label_sets(tmp_path)
    assert last == DEFAULT
    by_key = own.by_key("x")
    assert by_key is not None
    assert (by_key.id, own.by_key(""), [label.name for label in own.labels]) == ("a", None, ["a", "B"])
    head = '[[set]]\nname = "own"\n'
    for text, said in (
        ("[[", "can't be read"),
        ("set = 3", "[[set]]"),
        (head, "no labels"),
        (head + '[[set.label]]\nname = "x"\n', "'id'"),
        (head + '[[set.label]]\nid = "a"\nkey = "xy"\n', "one character"),
        (head + '[[set.label]]\nid = "a"\n[[set.label]]\nid = "a"\n', "two labels"),
        (head + '[[set.label]]\nid = "a"\nkey = "x"\n[[set.label]]\nid = "b"\nkey = "x"\n', "the key 'x'"),
        ("version = 2\n", "version 1"),
        ((head + '[[set.label]]\nid = "a"\n') * 2, "same name"),
    ):
        file.write_text(text)
        with pytest.raises(LabelsError) as caught:
            read_label_sets(tmp_path)
        assert said in str(caught.value), text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("verdict = ", "review.toml can't be read"),
        ("verdict = 1", "review.toml: 'verdict' must be a list of tables"),
        (
            '[[verdict]]\nkey = "Z"\nwords = 3\nmeans = "accept"',
            "verdict 1: 'words' must be a string of 1 to 60",
        ),
        (
            '[[verdict]]\nkey = "Z"\nwords = "no"\nmeans = "fine"',
            "verdict 1: 'means' must be one of accept, .*fine",
        ),
        ('[[verdict]]\nkey = "Z"\nwords = "no"', "verdict 1 has no 'means'"),
        ('[[verdict]]\nkey = "Z"\nword = "no"', "verdict 1: unknown key 'word'"),
        ('[[verdicts]]\nkey = "Z"', "review.toml: unknown key 'verdicts'"),
        ('[[verdict]]\nkey = "n"\nwords = "no"\nmeans = "accept"', "'n' of 'no' is already used"),
        ('[[verdict]]\nkey = " "\nwords = "no"\nmeans = "accept"', "' ' of 'no' is not a visible character"),
        ('[[verdict]]\nkey = "Z"\nwords = "no"\nmeans = "exclude"', "needs a reason"),
        ('[[verdict]]\nkey = "Z"\nwords = "late"\nmeans = "accept_corrected_time"', "needs a time"),
        (
            '[[verdict]]\nkey = "ZZ"\nwords = "no"\nmeans = "accept"',
            "verdict 1: 'key' must be one character, not 'ZZ'",
        ),
    ],
)
def test_wrong_words_of_verdicts_are_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "review.toml").write_text(text)
    with pytest.raises(SettingsError, match=words) as refused:
        read_verdict_words(tmp_path, "n")
    assert "Object" not in refused.value.message, "the library's own words"


def test_keys_of_runs_are_their_own_and_stay_when_files_move_and_grow(tmp_path: Path) -> None:
    made = make_all(tmp_path / "made")
    keys: dict[str, str] = {}
    for item in made:
        for id in item.records:
            name = join_name(str(item.path), id)
            document = open_run(name)
            keys[name] = run_key(document)
            assert not id or keys[name].endswith(join_name("", document.reviewed_id))
    (tmp_path / "made").rename(tmp_path / "moved")
    for name, key in keys.items():
        assert run_key(open_run(name.replace(str(tmp_path / "made"), str(tmp_path / "moved")))) == key
    grown = _by_format(made, "gistpoint")
    path = tmp_path / "moved" / grown.path.name
    before = run_key(open_run(path))
    path.write_bytes(path.read_bytes()[: path.read_bytes().index(b"\n", 900) + 1])
    assert run_key(open_run(path)) == before


def _by_format(made: list[Made], format: str) -> Made:
    return next(item for item in made if item.format == format)


def test_ids_of_runs_may_be_anything(tmp_path: Path) -> None:
    for number, id in enumerate(("\ud800", "x" * 10_000, "../#%\n")):
        line = {"type": "user", "sessionId": id, "uuid": "1", "parentUuid": None, "message": {"role": "user"}}
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps(line) + "\n")
        key = run_key(open_run(path))
        assert key.startswith("claude-code:")
        assert len(key) < 150
        assert key.isascii()
        assert key.isprintable()


def test_runs_with_one_system_prompt_have_different_keys(tmp_path: Path) -> None:
    for number in range(3):
        messages = [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix."},
                    {"role": "assistant", "content": f"reply {number}"}]  # fmt: skip
        (tmp_path / f"{number}.json").write_text(json.dumps({"messages": messages}))
    runs = [open_run(listed.name) for listed in list_runs([tmp_path])]
    assert len({run_key(run) for run in runs}) == 3


def labelled(folder: Path, run: str) -> ReviewBook:
    at_work(folder / "reviews").label(run, "wasted", None)
    return at_work(folder / "reviews").store.book


def conversation(path: Path, *replies: str) -> RunDocument:
    told = [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix."}]
    said = [{"role": "assistant", "content": reply} for reply in replies]
    path.write_text(json.dumps({"messages": told + said}))
    return open_run(path)


def test_runs_with_one_beginning_share_no_annotations(tmp_path: Path) -> None:
    one, other = (conversation(tmp_path / name, "same", name) for name in ("one", "other"))
    assert run_key(one) != run_key(other)
    book = labelled(tmp_path, run_key(one))
    assert annotated_key(one, book) == run_key(one)
    assert annotated_key(other, book) not in book.runs


def test_annotations_are_found_when_a_run_has_grown(tmp_path: Path) -> None:
    key = run_key(conversation(tmp_path / "a", "one", "two"))
    grown = conversation(tmp_path / "a", "one", "two", "three")
    assert run_key(grown) != key
    assert annotated_key(grown, labelled(tmp_path, key)) == key


def test_annotations_under_the_beginning_of_a_run_are_found(tmp_path: Path) -> None:
    document = conversation(tmp_path / "a", "one", "two")
    before = run_key(document).partition("+")[0]
    assert run_key(conversation(tmp_path / "b", "one")).partition("+")[0] == before
    assert annotated_key(document, labelled(tmp_path, before)) == before
