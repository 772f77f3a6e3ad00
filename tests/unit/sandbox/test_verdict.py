from __future__ import annotations

import contextlib
import json
import os
from hashlib import blake2b

import pytest

from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.sandbox.payload.results_plugin import opened_channel
from gistpoint.sandbox.sealing import RunSecret
from gistpoint.sandbox.verdict import ForgedRecordError, Transcript, fold

PASS = [["setup", "passed", False], ["raw", None], ["call", "passed", False], ["teardown", "passed", False]]
FAIL = [
    ["setup", "passed", False],
    ["raw", "AssertionError"],
    ["call", "failed", False],
    ["teardown", "passed", False],
]
VALUE = [
    ["setup", "passed", False],
    ["raw", "ValueError"],
    ["call", "failed", False],
    ["teardown", "passed", False],
]
SECRET = RunSecret(b"k" * 32, "", {
    "test_1": (Outcome.FAILED, "AssertionError"),
    "test_2": (Outcome.FAILED, "ValueError"),
    "test_3": (Outcome.PASSED, None),
})  # fmt: skip
SENTINEL_REPORTS = {"test_1": FAIL, "test_2": VALUE, "test_3": PASS}


def tagged(records, key=SECRET.key):
    """Return the lines that the sandbox's reporter writes for these records."""
    reading, writing = os.pipe()
    put = opened_channel(writing, key.hex())
    for record in records:
        put(**{"event": record["e"], **{name: value for name, value in record.items() if name != "e"}})
    with contextlib.suppress(BlockingIOError), os.fdopen(reading, "rb", closefd=True) as pipe:
        os.set_blocking(reading, False)
        return pipe.read().splitlines()


class Script:
    """The records of an honest run, for tests to alter."""

    def __init__(self, ids=("a::x", "a::y"), outcomes=(PASS, FAIL)):
        self.records = [{"e": "begin"}, {"e": "start", "pytest": "8"}, {"e": "items", "ids": list(ids)}]
        self.records.append({"e": "collected", "count": len(ids), "sentinels": 3})
        for index, reports in enumerate(outcomes):
            self.test(index, reports)
        for name, reports in SENTINEL_REPORTS.items():
            self.test(name, reports)
        self.records.append({"e": "finish", "exit": 1, "collected": len(ids) + 3})

    def test(self, index, reports, text="why"):
        self.records.append({"e": "run", "i": index})
        self.records.append({"e": "test", "i": index, "reports": reports, "text": text, "seconds": 0.5})

    def read(self):
        return read(tagged(self.records))


def read(lines):
    transcript = Transcript(SECRET)
    for line in lines:
        transcript.feed(line)
    return transcript


def test_an_honest_run():
    transcript = Script().read()
    assert transcript.conclude(1).status is RunStatus.FINISHED
    assert {id: r.outcome for id, r in transcript.results.items()} == {
        "a::x": Outcome.PASSED,
        "a::y": Outcome.FAILED,
    }
    assert transcript.results["a::y"].message == "why"
    assert transcript.results["a::x"].message == ""
    assert transcript.results["a::x"].seconds == 0.5


@pytest.mark.parametrize("exit_code", [0, 2, 3, 4, 5, -9, None])
def test_the_exit_status_must_agree(exit_code):
    assert Script().read().conclude(exit_code).status is RunStatus.INVALID


@pytest.mark.parametrize("told", [0, 2])
def test_the_finish_record_must_agree(told):
    script = Script()
    script.records[-1]["exit"] = told
    conclusion = script.read().conclude(1)
    assert conclusion.status is RunStatus.INVALID
    assert f"reported exit status {told}" in conclusion.reason


def test_agreeing_on_success_is_not_possible_either():
    script = Script()
    script.records[-1]["exit"] = 0
    assert script.read().conclude(0).status is RunStatus.INVALID


@pytest.mark.parametrize("place", range(14))
def test_any_record_taken_out_spoils_the_run(place):
    lines = tagged(Script().records)
    del lines[place]
    assert read(lines).conclude(1).status is RunStatus.INVALID


@pytest.mark.parametrize("place", range(14))
def test_any_record_taken_out_before_it_is_numbered_spoils_the_run(place):
    script = Script()
    del script.records[place]
    # The start record, number 1, has no required content.
    expected = (RunStatus.FINISHED,) if place == 1 else (RunStatus.INVALID, RunStatus.CRASHED)
    assert script.read().conclude(1).status in expected


@pytest.mark.parametrize("place", range(14))
def test_any_record_that_is_changed_on_its_way_spoils_the_run(place):
    lines = tagged(Script().records)
    for change in (
        lines[place].replace(b"passed", b"failed"),
        lines[place][:-1],
        b"0" * 32 + lines[place][32:],
        b"",
    ):
        if change != lines[place]:
            assert (
                "not from the reporter"
                in read([*lines[:place], change, *lines[place + 1 :]]).conclude(1).reason
            )


def test_two_records_in_the_other_order_spoil_the_run():
    lines = tagged(Script().records)
    for place in range(len(lines) - 1):
        swapped = [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]
        assert read(swapped).conclude(1).status is RunStatus.INVALID


def test_the_records_of_another_run_are_not_those_of_this_one():
    assert read(tagged(Script().records, b"j" * 32)).conclude(1).status is RunStatus.INVALID
    plain = [json.dumps({"n": place, **record}).encode() for place, record in enumerate(Script().records, 1)]
    assert read(plain).conclude(1).status is RunStatus.INVALID


def test_no_two_runs_share_a_key_or_the_name_of_a_sentinel():
    one, other = RunSecret.new(), RunSecret.new()
    assert one.key != other.key
    assert not set(one.outcomes) & set(other.outcomes)
    assert all(f"{name}(" in one.text for name in one.outcomes)
    outcomes = set(one.outcomes.values())
    assert outcomes >= {
        (Outcome.FAILED, "AssertionError"), (Outcome.FAILED, "ValueError"), (Outcome.FAILED, "Failed"),
        (Outcome.SKIPPED, "Skipped"), (Outcome.XFAILED, "AssertionError"),
    }  # fmt: skip


@pytest.mark.parametrize("place", range(14))
def test_any_record_repeated_spoils_the_run(place):
    script = Script()
    script.records.insert(place, script.records[place])
    assert script.read().conclude(1).status is RunStatus.INVALID


def test_a_test_that_runs_again_under_the_next_numbers_spoils_the_run():
    script = Script(outcomes=(FAIL, PASS))
    finish = script.records.pop()
    script.test(0, PASS)
    script.records.append(finish)
    assert script.read().conclude(1).reason == "a::x was reported more than once."


def test_a_sealed_record_that_is_ahead_of_its_place_spoils_the_run():
    line = json.dumps({"e": "start", "pytest": "8", "n": 2}).encode()
    tag = blake2b(line, key=SECRET.key, digest_size=16, person=b"record").hexdigest().encode()
    assert read([tag + b" " + line]).forged == "Record 1 carries the number 2."


@pytest.mark.parametrize(
    "line",
    [b"", b"3 passed", b"[]", b"null", b'{"n": 1}', b'{"e": "start", "n": true}', b'{"e": "start", "n": "1"}', b"\xff",
     b"[" * 100_000],
)  # fmt: skip
def test_lines_that_are_no_records(line):
    assert read([line]).conclude(0).status is RunStatus.INVALID
    tag = blake2b(line, key=SECRET.key, digest_size=16, person=b"record").hexdigest().encode()
    conclusion = read([tag + b" " + line]).conclude(0)
    assert conclusion.status is RunStatus.INVALID
    assert "not from the reporter" not in conclusion.reason


def test_text_need_not_be_unicode():
    script = Script(outcomes=(FAIL,))
    script.records[5]["text"] = "half a pair: \udc80"
    assert script.read().results["a::x"].message == "half a pair: \udc80"


@pytest.mark.parametrize("number", [7, 2, -1])
def test_a_test_that_was_not_collected(number):
    script = Script()
    script.records.insert(4, {"e": "run", "i": number})
    assert "not collected" in script.read().conclude(1).reason


def test_tests_that_never_ran():
    script = Script()
    del script.records[6:8]
    assert "1 collected tests never ran" in script.read().conclude(1).reason


def test_a_sentinel_that_runs_twice_does_not_stand_for_one_that_never_ran():
    script = Script()
    for record in script.records:
        if record.get("i") == "test_3":
            record["i"] = "test_1"
            record |= {"reports": FAIL} if record["e"] == "test" else {}
    assert "test_1 was reported more than once" in script.read().conclude(1).reason


@pytest.mark.parametrize("name", SENTINEL_REPORTS)
def test_a_sentinel_that_came_out_wrong(name):
    script = Script()
    for record in script.records:
        if record.get("i") == name and record["e"] == "test":
            record["reports"] = FAIL if name == "test_3" else PASS
    conclusion = script.read().conclude(1)
    assert conclusion.status is RunStatus.INVALID
    assert name in conclusion.reason


def test_a_sentinel_missing():
    script = Script()
    del script.records[-3:-1]
    assert script.read().conclude(1).status is RunStatus.INVALID


def test_no_sentinels_announced():
    script = Script()
    script.records[3]["sentinels"] = 0
    assert script.read().conclude(1).status is RunStatus.INVALID


def test_nothing_after_the_finish():
    script = Script()
    script.records.append({"e": "run", "i": 0})
    assert script.read().conclude(1).status is RunStatus.INVALID


def test_expected_ids():
    assert Script().read().conclude(1, frozenset({"a::x", "a::y", "a::z"})).status is RunStatus.FINISHED
    refused = Script().read().conclude(1, frozenset({"a::x"}))
    assert refused.status is RunStatus.INVALID
    assert "a::y" in refused.reason


def test_an_id_collected_twice_counts_its_worst():
    script = Script(ids=("a::x", "a::x"), outcomes=(FAIL,))
    script.records[6:6] = [
        {"e": "run", "i": 0},
        {"e": "test", "i": 0, "reports": PASS, "text": "", "seconds": 0.1},
    ]
    transcript = script.read()
    assert transcript.conclude(1).status is RunStatus.FINISHED
    assert transcript.results["a::x"].outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("exit_code", "status"),
    [
        (-11, RunStatus.CRASHED),
        (0, RunStatus.CRASHED),
        (1, RunStatus.CRASHED),
        (2, RunStatus.COULD_NOT_RUN),
        (3, RunStatus.COULD_NOT_RUN),
        (4, RunStatus.COULD_NOT_RUN),
        (5, RunStatus.COULD_NOT_RUN),
        (6, RunStatus.CRASHED),
    ],
)
def test_no_records_at_all(exit_code, status):
    assert Transcript(SECRET).conclude(exit_code).status is status


def test_no_tests_collected():
    records = [
        {"e": "begin"},
        {"e": "start"},
        {"e": "collected", "count": 0, "sentinels": 0},
        {"e": "finish", "exit": 5},
    ]
    assert read(tagged(records)).conclude(5).status is RunStatus.COULD_NOT_RUN


def phases(*reports):
    return [list(report) for report in reports]


@pytest.mark.parametrize(
    ("reports", "outcome"),
    [
        (PASS, Outcome.PASSED),
        (FAIL, Outcome.FAILED),
        (phases(("setup", "failed", False), ("teardown", "passed", False)), Outcome.ERROR),
        (phases(("setup", "skipped", False), ("teardown", "passed", False)), Outcome.SKIPPED),
        (phases(("setup", "skipped", True), ("teardown", "passed", False)), Outcome.XFAILED),
        ([PASS[0], ["raw", "Skipped"], ["call", "skipped", False], PASS[3]], Outcome.SKIPPED),
        ([PASS[0], ["raw", "AssertionError"], ["call", "skipped", True], PASS[3]], Outcome.XFAILED),
        ([PASS[0], ["raw", None], ["call", "passed", True], PASS[3]], Outcome.XPASSED),
        ([*PASS[:3], ["teardown", "failed", False]], Outcome.ERROR),
        ([*PASS[:2], ["subtest", "failed", False], *PASS[2:]], Outcome.FAILED),
        ([["raw", "AssertionError"], PASS[0], ["call", "rerun", False], *PASS], Outcome.PASSED),
        (phases(("setup", "passed", False), ("teardown", "passed", False)), Outcome.ERROR),
        (phases(("setup", "rerun", False), *PASS), Outcome.PASSED),
        (
            [PASS[0], ["subtest", "failed", False], ["raw", None], ["call", "rerun", False], *PASS],
            Outcome.PASSED,
        ),
        ([], Outcome.ERROR),
    ],
)
def test_folding(reports, outcome):
    assert fold("a::x", reports)[0] is outcome


@pytest.mark.parametrize(
    "reports",
    [
        None,
        [7],
        [[]],
        [PASS[0], ["raw", "AssertionError"], PASS[2], PASS[3]],
        [PASS[0], PASS[2], PASS[3]],
        [*PASS[:2], ["raw", None], *PASS[2:]],
        [*PASS, PASS[2]],
        [["raw"]],
        [["call"]],
        [["call", "passed"]],
    ],
)
def test_contradicting_phases(reports):
    with pytest.raises(ForgedRecordError):
        fold("a::x", reports)


@pytest.mark.parametrize(
    ("raws", "observed"), [([], "was not observed"), ([["raw", "AssertionError"]], "raised AssertionError")]
)
def test_a_contradicted_pass_says_what_was_observed(raws, observed):
    with pytest.raises(
        ForgedRecordError, match=rf"^a::x was reported passed, although its call {observed}\.$"
    ):
        fold("a::x", [PASS[0], *raws, *PASS[2:]])


def test_a_run_that_never_began_says_so():
    """Only the run's reporter can report the beginning; a line that another process wrote does not count."""
    silent, honest = Transcript(SECRET), Script().read()
    assert (silent.began, honest.began) == (False, True)
    assert silent.conclude(1).reason == "The process exited with status 1 before the tests began."
    assert silent.conclude(-9).reason == "The process was ended by signal 9 before the tests began."
    assert not read([b'{"e": "begin", "n": 1}']).began
    assert not read(tagged([{"e": "start", "pytest": "8"}])).began


def test_a_run_begins_once():
    script = Script()
    script.records.insert(2, {"e": "begin"})
    assert script.read().conclude(1).status is RunStatus.INVALID
