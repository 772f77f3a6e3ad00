import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.diffs import (
    DiffError,
    DiffLineKind,
    apply,
    changes_within,
    compute,
    parse,
    side_by_side,
    unified,
)

LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "--- x", "+++ y", "@@ -1 +1 @@", "\\ No", "d\r", "漢"]), max_size=25
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(TEXTS, TEXTS, st.integers(0, 4))
def test_applying_what_was_computed_gives_the_other_text(before: str, after: str, context: int) -> None:
    assert apply(before, compute(before, after, context=context)) == after


@given(TEXTS, TEXTS)
def test_what_is_written_is_read_back_the_same(before: str, after: str) -> None:
    diff = compute(before, after, old_path="x.py", new_path="y.py")
    assert parse(unified(diff)) == ((diff,) if diff.hunks else ())


@given(TEXTS, TEXTS)
def test_equal_texts_alone_have_no_hunks(before: str, after: str) -> None:
    assert bool(compute(before, after).hunks) == (before != after)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_applies_what_is_written(tmp_path: Path) -> None:
    before = "".join(f"line {i}\n" for i in range(40))
    after = before.replace("line 3\n", "").replace("line 20", "line twenty")[:-1]
    (tmp_path / "f.txt").write_text(before)
    patch = unified(compute(before, after, old_path="f.txt", new_path="f.txt"))
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, text=True, check=True)
    assert (tmp_path / "f.txt").read_text() == after


GIT_DIFF = """From 0123 Mon Sep 17 00:00:00 2001
Some words about it.

diff --git a/old name.py b/new name.py
similarity index 90%
rename from old name.py
rename to new name.py
index 111..222 100644
--- a/old name.py\t
+++ b/new name.py\t
@@ -1,3 +1,3 @@ def f():
 a
--- not a header
+++ not one either
 c
\\ No newline at end of file
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/pic.png b/pic.png
new file mode 100644
Binary files /dev/null and b/pic.png differ
diff --git "a/\\303\\244.py" "b/\\303\\244.py"
--- "a/\\303\\244.py"
+++ "b/\\303\\244.py"
@@ -0,0 +1,2 @@
+1

+2
""".replace("+1\n\n+2", "+1\n+2")


def test_reads_renames_deletions_binaries_and_quoted_paths() -> None:
    renamed, gone, picture, umlaut = parse(GIT_DIFF)
    assert (renamed.old_path, renamed.new_path) == ("old name.py", "new name.py")
    assert [(line.kind.value, line.text) for line in renamed.hunks[0].lines] == [
        (" ", "a"),
        ("-", "-- not a header"),
        ("+", "++ not one either"),
        (" ", "c"),
    ]
    assert not renamed.hunks[0].lines[-1].newline
    assert renamed.hunks[0].section == "def f():"
    assert (gone.old_path, gone.new_path, gone.removed) == ("gone.py", None, 1)
    assert (picture.old_path, picture.binary) == (None, True)
    assert (umlaut.path, umlaut.added) == ("ä.py", 2)


def test_text_without_a_diff_gives_none() -> None:
    assert parse("@@ -1 +1 @@\nnothing here\n--- alone\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n",
        "--- a\n+++ b\n@@ -1 +1 @@\nx\n",
        "--- a\n+++ b\n@@ -1 +1 @@\n-a\n-b\n+c\n",
    ],
)
def test_a_hunk_that_is_cut_off_is_named(text: str) -> None:
    with pytest.raises(DiffError, match="hunk '@@ -1"):
        parse(text)


def test_a_diff_of_another_text_is_refused() -> None:
    diff = compute("a\nb\nc\n", "a\nx\nc\n")
    with pytest.raises(DiffError, match="Line 2"):
        apply("a\nz\nc\n", diff)
    with pytest.raises(DiffError):
        apply("", diff)


def test_sides_are_paired_and_the_longer_one_stands_alone() -> None:
    (hunk,) = compute("a\nb\nc\nd\n", "a\nB\nd\ne\n").hunks
    shown = [(left and left.text, right and right.text) for left, right in side_by_side(hunk)]
    assert shown == [("a", "a"), ("b", "B"), ("c", None), ("d", "d"), (None, "e")]
    assert [left.kind for left, _ in side_by_side(hunk) if left][1] is DiffLineKind.REMOVED


def test_a_change_of_the_last_newline_alone_is_a_hunk() -> None:
    (hunk,) = compute("a\nb", "a\nb\n").hunks
    assert [(line.kind.value, line.newline) for line in hunk.lines] == [
        (" ", True),
        ("-", False),
        ("+", True),
    ]


def test_changed_words_within_a_line() -> None:
    assert changes_within("return a + b", "return a - b") == ([(9, 10)], [(9, 10)])
    assert changes_within("return a", "import sys") == ([], [])


def test_the_section_is_the_heading_above() -> None:
    before = "import x\n\ndef f():\n" + "".join(f"    {i}\n" for i in range(20))
    (hunk,) = compute(before, before.replace("    15\n", "    fifteen\n")).hunks
    assert hunk.section == "def f():"
