"""A search skips exactly the files whose bytes can't contain a string, for rows as JSON and as Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from arro3.io import infer_json_schema, read_json, write_parquet
from recorded_runs import tables

from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.searching import Hit, Query, search_document
from gistpoint.sessions.runs.searching_files import Sieve, search


def rows(make: Callable[..., dict[str, Any]], as_text: bool) -> bytes:
    made = [make(as_text=as_text) if as_text else make() for _ in range(20)]
    return "".join(f"{json.dumps(row)}\n" for row in made).encode()


def queries() -> list[Query]:
    plain = ["python", "I look é", 'x"', "return 1", "stats", "true", "Return", "nobody wrote this"]
    return [*map(Query, plain), Query(r"retur[nm] \d", regex=True), Query(r"\bnone_of_it\b", regex=True)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("make", "as_text"), [(tables.functions, False), (tables.functions, True), (tables.calls, False)]
)
def test_a_search_finds_what_each_run_has(
    tmp_path: Path, make: Callable[..., dict[str, Any]], as_text: bool, packed: bool
) -> None:
    path, text = tmp_path / "a", rows(make, as_text)
    if packed:
        write_parquet(read_json(BytesIO(text), infer_json_schema(BytesIO(text))), path)
    else:
        path.write_bytes(text)
    names = [listed.name for listed in list_runs([path])]
    for query in queries():
        each: list[Hit] = [hit for name in names for hit in search_document(open_run(name), query)]
        assert list(search(query, [path])) == each
        assert not each or Sieve(query).wants_run(names[0])
    absent = Query("nobody wrote this")
    assert not list(list_runs([path], wants=Sieve(absent).wants))
    assert not Sieve(absent).wants_run(names[-1])


def test_a_run_of_its_own_file_is_left_to_its_own_search(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(rows(tables.functions, False))
    assert Sieve(Query("nobody wrote this")).wants_run(str(path))
    assert Sieve(Query("nobody")).wants_run(f"{tmp_path / 'gone'}#1")
