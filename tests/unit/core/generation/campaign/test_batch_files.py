"""Batch files: their valid contents, and the messages for invalid ones."""

from __future__ import annotations

import pytest

from gistpoint.core.generation.settings import BatchError, SourceSpec, read_batch

GOOD = """
min_stars = 1000

[[source]]
source = "toolz==1.2.0"
pytest_args = ["toolz"]
stars = 4700

[[source]]
source = "flask==3.1.3"
pytest_args = ["tests"]
extra_requirements = ["asgiref", "python-dotenv"]
exclude_newer = "2026-02-25"
build_steps = ["true"]

[[source]]
source = "../mine"
stars = 999
"""


def test_sources_come_with_what_they_need_in_the_order_of_the_file() -> None:
    batch = read_batch(GOOD, "set.toml")
    assert batch.sources[:2] == (
        SourceSpec("toolz==1.2.0", ("toolz",), stars=4700),
        SourceSpec("flask==3.1.3", ("tests",), ("asgiref", "python-dotenv"), "2026-02-25", ("true",)),
    )


def test_too_few_stars_leave_a_source_out_and_unknown_ones_do_not() -> None:
    batch = read_batch(GOOD, "set.toml")
    assert [spec.source for spec in batch.taken] == ["toolz==1.2.0", "flask==3.1.3"]
    assert [spec.source for spec in batch.left_out] == ["../mine"]
    assert batch.taken[1].stars is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = [", "set.toml is not valid TOML"),
        ("", "the key 'source' is missing"),
        ("source = []", "the key 'source' does not name a source"),
        ("source = ['toolz']", "the key 'source[0]' must be a table"),
        ("[[source]]\nname = 'toolz'", "the key 'source[0].name' is not known"),
        ("[[source]]\npytest_args = []", "the key 'source[0].source' is missing"),
        ("[[source]]\nsource = ' '", "the key 'source[0].source' is empty"),
        (
            "[[source]]\nsource = 'a==1'\npytest_args = 'tests'",
            "the key 'source[0].pytest_args' must be a list",
        ),
        (
            "[[source]]\nsource = 'a==1'\nbuild_steps = [1]",
            "the key 'source[0].build_steps' must be a list of strings",
        ),
        ("[[source]]\nsource = 'a==1'\nstars = -1", "the key 'source[0].stars' must be at least 0"),
        (
            "[[source]]\nsource = 'a==1'\nexclude_newer = 2026",
            "the key 'source[0].exclude_newer' must be a string",
        ),
        (
            "[[source]]\nsource = 'a==1'\n[[source]]\nsource = 'a==1'",
            "the key 'source[1].source' repeats 'a==1'",
        ),
        ("min_stars = 'many'\n[[source]]\nsource = 'a==1'", "the key 'min_stars' must be a whole number"),
        (
            "minstars = 1\n[[source]]\nsource = 'a==1'",
            "the key 'minstars' is not known; known are min_stars, source",
        ),
        ("[[source]]\nsource = 'a==1'\nstar = 3", "stars. Did you mean 'stars'?"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key_and_what_to_do(text: str, told: str) -> None:
    with pytest.raises(BatchError) as caught:
        read_batch(text, "set.toml")
    assert told in caught.value.message
    assert "set.toml" in caught.value.message
    assert caught.value.hint
