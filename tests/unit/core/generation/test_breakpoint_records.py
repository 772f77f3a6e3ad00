"""Records of the public data set: sound ones are read despite damaged ones, and find their functions."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from breakpoint_records import record_of
from small_trees import tree_of

from gistpoint.core.errors import SourceError
from gistpoint.core.generation.breakpoint.importing import (
    RecordSources,
    Refusal,
    RefusedRecordError,
    read_sources,
    target_of,
)
from gistpoint.core.generation.breakpoint.records import BreakpointRecord, Damage, normal_url, read_records
from gistpoint.core.tasks.model import Mode

MODULE = '''import functools


def tariff(zones):
    """Return what a ticket costs."""
    # in whole crowns
    total = 20 + 5 * zones
    return total


class Ticket:
    def __init__(self, zones):
        self.zones = zones

    @property
    def price(self):
        return tariff(self.zones)

    @price.setter
    def price(self, value):
        self.zones = value

    @functools.cache
    def label(self):
        return f"{self.zones} zones"

    def refund(self):
        def share(price):
            return price // 2
        return share(self.price)


class Pass:
    def refund(self):
        return 0
'''
FILES = {
    "src/rail/fares.py": MODULE,
    "tests/test_fares.py": "def test_a():\n    assert True\n",
    "setup.py": "x = (",
}
URL, COMMIT = "https://github.com/someone/rail", "0123456789abcdef0123456789abcdef01234567"
CHANGE = ("5 * zones", "4 * zones")


def made(function: str = "tariff", change: tuple[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return record_of(
        MODULE.encode(), "src/rail/fares.py", function, url=URL, commit=COMMIT, change=change, **more
    )


def with_(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    record = copy.deepcopy(record)
    table = record
    *parents, last = path.split(".")
    for parent in parents:
        table = table[parent]
    table[last] = value
    return record


def read(*records: Any) -> list[BreakpointRecord | Damage]:
    return list(read_records(json.dumps(list(records), indent=2).encode()))


def one(record: dict[str, Any]) -> BreakpointRecord:
    (found,) = read(record)
    assert isinstance(found, BreakpointRecord), found
    return found


def test_both_forms_of_a_file_hold_the_same_records() -> None:
    rows = [made(), made(change=CHANGE)]
    listed = read(*rows)
    lines = list(read_records(b"\xef\xbb\xbf" + "\r\n\n".join(json.dumps(row) for row in rows).encode()))
    assert [item.id for item in listed if isinstance(item, BreakpointRecord)] == [
        item.id for item in lines if isinstance(item, BreakpointRecord)
    ]
    assert [item.mode for item in listed if isinstance(item, BreakpointRecord)] == [
        Mode.REMOVE,
        Mode.DISCOVERY,
    ]
    assert [item.line for item in lines] == [1, 3]
    assert [item.line for item in listed] == [2, 2 + len(json.dumps(rows[0], indent=2).splitlines())]
    assert json.loads(one(rows[1]).text) == rows[1]


def test_an_id_is_the_same_for_all_spellings_of_an_address_and_differs_with_what_is_asked() -> None:
    record = made(change=CHANGE)
    same = [
        record,
        with_(record, "repo.url", URL + ".git"),
        with_(record, "repo.url", "https://GitHub.com/someone/rail/"),
    ]
    assert len({one(item).id for item in same}) == 1
    assert one(with_(record, "test_info.failed", 3)).id == one(record).id
    others = [
        made(), with_(record, "repo.commit", "a" * 40), with_(record, "fpath", "src/b.py"),
        with_(record, "function_name", "x"), with_(record, "corruption.code", "def tariff(zones):\n    return 1"),
        with_(record, "repo.url", URL + "s"),
    ]  # fmt: skip
    assert len({one(item).id for item in [record, *others]}) == 7
    assert normal_url("https://GitHub.com/A/b.git/") == "github.com/A/b"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("repo", None, "repo is missing"),
        ("repo", [], "repo is not an object"),
        ("repo.url", "", "repo.url is missing"),
        ("repo.url", 3, "repo.url is not a string"),
        ("repo.commit", None, "repo.commit is missing"),
        ("repo.commit", "main", "not a commit"),
        ("repo.commit", "--upload-pack=x", "not a commit"),
        ("fpath", None, "fpath is missing"),
        ("fpath", "../x.py", "stay inside"),
        ("fpath", "/etc/x.py", "stay inside"),
        ("fpath", "a\\b.py", "stay inside"),
        ("fpath", "a\nb.py", "stay inside"),
        ("fpath", "README.md", "not a Python file"),
        ("function_name", "", "function_name is missing"),
        ("function_name", "a b", "not the name of a function"),
        ("function_name", "a..b", "not the name of a function"),
        ("function_name", "x\ud800", "not text"),
        ("test_info", None, "test_info is missing"),
        ("test_info.failed", None, "test_info.failed is not a count"),
        ("test_info.passed", True, "test_info.passed is not a count"),
        ("test_info.failed", -1, "test_info.failed is not a count"),
        ("test_info.failures_info", "x", "not a list"),
        ("complexity_info", 3, "complexity_info is not an object"),
        ("complexity_info.cyclomatic", "15", "complexity_info.cyclomatic is not a number"),
        ("corruption", "x", "corruption is not an object"),
        ("corruption.code", None, "corruption.code is missing"),
        ("corruption.code", " \n", "corruption.code is empty"),
        ("corruption.score", 1.0, "broke nothing"),
        ("corruption.score", "0.5", "broke nothing"),
    ],
)
def test_damage_names_the_field_and_spares_the_others(path: str, value: Any, said: str) -> None:
    sound = made()
    first, second = read(with_(made(change=CHANGE), path, value), sound)
    assert isinstance(first, Damage)
    assert (first.line, said in first.reason) == (2, True), first.reason
    assert isinstance(second, BreakpointRecord)


ROW = json.dumps(made())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"[]", []),
        (b"[", [(1, "incomplete")]),
        (b"nonsense", [(1, "not JSON")]),
        (b"[3, null, \"x\"]", [(1, "not an object"), (1, "missing"), (1, "not an object")]),
        (f"[{ROW},\n{ROW[:-30]}".encode(), [None, (2, "does not end")]),
        (f"[{ROW}".encode(), [None, (1, "ends in the middle of its list")]),
        (f"[\n{ROW[:-1]},}},\n{ROW}]".encode(), [(2, "not JSON"), None]),
        (f"[\n{ROW}\n{ROW}]".encode(), [None, (3, "no comma"), (3, "repeats the record of line 2")]),
        (f"[\n{ROW}]\n{ROW}".encode(), [None, (2, "after the end")]),
        (f"[{ROW}]\n{ROW}".encode(), [(1, "not an object"), None]),
        (f"[{ROW}\n]".encode(), [None]),
        (f"{ROW}\n{ROW[:50]}\n\n{ROW}".encode(), [None, (2, "not JSON"), (4, "repeats the record of line 1")]),
        (f"[{ROW[:-1]}, \"fpath\": \"b.py\"}}, {ROW}]".encode(), [(1, "'fpath' occurs twice"), None]),
        (ROW.replace("0.01", "NaN").encode(), [(1, "NaN is not a JSON number")]),
        (ROW.replace("0.01", "1" * 5000).encode(), [(1, "can't be read")]),
        (ROW.replace('"tariff"', '"tar\udcffiff"').encode("utf-8", "surrogateescape"), [(1, "not text")]),
        (b"[" * 50_000, [(1, "does not end")]),
        (b"{\"a\":" * 50_000 + b"1" + b"}" * 50_000, [(1, "can't be read")]),
    ],
)  # fmt: skip
def test_damaged_files(data: bytes, expected: list[tuple[int, str] | None]) -> None:
    found = list(read_records(data))
    assert len(found) == len(expected), found
    for item, wanted in zip(found, expected, strict=True):
        if wanted is None:
            assert isinstance(item, BreakpointRecord)
        else:
            assert isinstance(item, Damage)
            assert item.line == wanted[0]
            assert wanted[1] in item.reason


def test_metrics_that_are_missing_and_errors_when_it_was_made_are_marked() -> None:
    record = with_(made(), "complexity_info.cyclomatic", None)
    assert one(with_(record, "test_info.had_execution_error", True)).marks == (
        "execution_error_when_made",
        "metrics_missing",
    )
    assert one(with_(made(), "complexity_info", None)).marks == ("metrics_missing",)
    assert one(made()).marks == ()


def test_records_find_their_functions(tmp_path: Path) -> None:
    tree = tree_of(FILES, tmp_path)
    removed = target_of(one(made()), tree).target
    assert removed.name == "src/rail/fares.py::tariff"
    assert removed.corrupted.endswith("pass")
    corrupted = target_of(one(made(change=CHANGE)), tree)
    assert "4 * zones" in corrupted.target.corrupted
    assert corrupted.marks == ()
    method = target_of(one(made("Ticket.refund", ("// 2", "// 3"))), tree)
    assert method.target.qualname == "Ticket.refund"
    nested = target_of(one(with_(made(), "function_name", "share")), tree)
    assert nested.target.qualname == "Ticket.refund.<locals>.share"


def test_decorators_that_the_data_lost_are_kept_and_the_loss_is_marked(tmp_path: Path) -> None:
    record = one(made("Ticket.label", (" zones", " zone")))
    assert "cache" not in record.corruption
    assert record.corruption.startswith("    def label")
    found = target_of(record, tree_of(FILES, tmp_path))
    assert found.marks == ("decorators_lost_in_data",)
    assert found.target.corrupted == '@functools.cache\ndef label(self):\n    return f"{self.zones} zone"'
    only_lost = with_(
        made("Ticket.label", (" zones", " zone")),
        "corruption.code",
        "def label(self):\n    return f'{self.zones} zones'",
    )
    with pytest.raises(RefusedRecordError, match="apart from its lost decorators") as raised:
        target_of(one(only_lost), tree_of(FILES, tmp_path))
    assert raised.value.reason is Refusal.UNCHANGED


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fpath": "src/rail/gone.py"}, Refusal.NO_SUCH_FILE),
        ({"fpath": "src/rail"}, None),
        ({"fpath": "setup.py"}, Refusal.UNREADABLE_FILE),
        ({"fpath": "tests/test_fares.py", "function_name": "test_a"}, Refusal.TEST_FILE),
        ({"function_name": "gone"}, Refusal.NO_SUCH_FUNCTION),
        ({"function_name": "Pass.label"}, Refusal.NO_SUCH_FUNCTION),
        ({"function_name": "refund"}, Refusal.AMBIGUOUS),
        ({"function_name": "Ticket.price"}, Refusal.AMBIGUOUS),
        ({"function_name": "Ticket"}, Refusal.CLASS),
        ({"corruption.code": "def tariff(zones:"}, Refusal.NO_DEFINITION),
        ({"corruption.code": "def other(zones):\n    return 1"}, Refusal.NO_DEFINITION),
        ({"corruption.code": "def tariff(zones):\n    return 1\n\nx = 1"}, Refusal.NO_DEFINITION),
        ({"corruption.code": "return 3"}, Refusal.NO_DEFINITION),
        ({"corruption.code": "@cache\ndef tariff(zones):\n    return 1"}, Refusal.NO_DEFINITION),
        ({"corruption.code": "def tariff(zones, free=0):\n    return 1"}, Refusal.SIGNATURE),
        ({"corruption.code": "async def tariff(zones):\n    return 1"}, Refusal.SIGNATURE),
        ({"corruption.code": "def tariff(zones):\n    return 1  # wrong"}, Refusal.COMMENT),
        (
            {"corruption.code": "  def tariff(zones):\n    total = 20 + 5 * zones\n    return total"},
            Refusal.UNCHANGED,
        ),
    ],
)
def test_records_that_mean_no_function_are_refused(
    tmp_path: Path, changes: dict[str, str], reason: Refusal | None
) -> None:
    record = made(change=CHANGE)
    for path, value in changes.items():
        record = with_(record, path, value)
    if reason is None:
        assert isinstance(read(record)[0], Damage)
        return
    with pytest.raises(RefusedRecordError) as raised:
        target_of(one(record), tree_of(FILES, tmp_path))
    assert raised.value.reason is reason


SOURCES = f'''
[[source]]
repository = "{URL}.git"
source = "rail==1.0"
pytest_args = ["tests"]

[[source]]
repository = "rail"
commit = "0123456"
source = "here/rail"
extra_requirements = ["freezegun"]
exclude_newer = "2026-01-01"
'''


def test_sources_are_named_by_address_or_name_and_the_one_that_names_the_commit_wins() -> None:
    sources = read_sources(SOURCES, "map.toml")
    assert sources.spec_of(one(made())).source == "here/rail"
    assert sources.spec_of(one(made())).extra_requirements == ("freezegun",)
    other = one(with_(made(), "repo.commit", "f" * 40))
    assert sources.spec_of(other).source == "rail==1.0"
    assert sources.spec_of(other).pytest_args == ("tests",)
    assert RecordSources().spec_of(one(made())).source == f"{URL}@{COMMIT}"


@pytest.mark.parametrize(
    "url", ["ext::sh -c id", "file:///etc", "http://x/y", "/srv/repo", "git@github.com:a/b"]
)
def test_no_address_but_https_is_fetched_unasked(url: str) -> None:
    with pytest.raises(SourceError, match="from which gistpoint fetches automatically"):
        RecordSources().spec_of(one(with_(made(), "repo.url", url)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "not valid TOML"),
        ("", "'source' is missing"),
        ("[[source]]\nsource = 'a'", "'source[0].repository' is missing"),
        ("[[source]]\nrepository = ''\nsource = 'a'", "'source[0].repository' is empty"),
        ("[[source]]\nrepository = 'a'\nsource = 'a'\nwith = 3", "'source[0].with' is not known"),
        ("[[source]]\nrepository = 'a'\nsource = 'a'\npytest_args = 'x'", "must be a list"),
    ],
)
def test_files_of_sources_that_will_not_do(text: str, said: str) -> None:
    with pytest.raises(SourceError) as raised:
        read_sources(text, "map.toml")
    assert said in raised.value.message
