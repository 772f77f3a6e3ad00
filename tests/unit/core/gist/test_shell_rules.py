"""Commands that a solver's shell may run if execution is forbidden."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gistpoint.sandbox.gistruns.shell import PRELUDE, refusal

READS = [
    "ls",
    "cd pkg && ls -la | head -3",
    "grep -rn 'def area' --include='*.py' . | sort | uniq -c",
    "cat pkg/core.py | sed -n '1,20p'",
    "find . -name '*.py' -size +1k",
    "cat a.py > /dev/null 2>&1; wc -l a.py",
    "grep -n '`backticks`$(here)' a.py",
    "(cd a && ls) || echo none",
    "ls\ncat a.py",
    "grep 'a;b|c' a.py",
]
EXECUTES = [
    "python -c 1",
    "./run.sh",
    "/bin/cat a",
    "pytest",
    "ls; python x.py",
    "ls | sh",
    "ls && exec python",
    "echo $(python -c 1)",
    'echo "$(python -c 1)"',
    "echo `id`",
    "cat <(python -c 1)",
    "find . -exec python {} +",
    "find . -name x \\-exec python ';'",
    "find . '-ex''ec' python ';'",
    "sort --compress-program=python a",
    "env python",
    "X=1 python",
    "awk 'BEGIN { system(\"id\") }'",
    "xargs python",
    "ls() { python; }",
    "ls ( ) { python; }",
    "eval ls",
    "cat <<E\nE",
    "ls\npython",
    "ls &\npython",
    "test -v 'a[$(id)]'",
    "echo ${x@P}",
    "echo $'a'",
    "if true; then python; fi",
    "'unclosed",
    "! python",
]


@pytest.mark.parametrize("command", READS)
def test_what_reads_runs(command: str) -> None:
    assert refusal(command) == ""


@pytest.mark.parametrize("command", EXECUTES)
def test_what_executes_is_refused_with_the_reason(command: str) -> None:
    told = refusal(command)
    assert told.endswith(".")
    assert len(told) > 20


def test_an_editing_script_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("touch made\n")
    command = "sed -n '1e' a; sed 's/x/y/w made' a; sed -n 1p a"
    assert refusal(command) == ""
    done = subprocess.run(
        ["bash", "+B", "-c", PRELUDE + command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "touch made\n"
    assert not (tmp_path / "made").exists()
