from __future__ import annotations

import pytest

from gistpoint.core.attempts.suspicion import suspicious_names
from gistpoint.core.trees import SourceTree, write_tree


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "a.py").write_text("import gc\ndef f():\n    return gc.isenabled()\n")
    write_tree(tmp_path / "repository", tmp_path / "tree.tar")
    return SourceTree.open(tmp_path / "tree.tar")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("return 1", ()),
        ("return gc.isenabled()", ()),
        ("import os\n    os._exit(0)", ("os._exit",)),
        ("from os import _exit\n    _exit(0)", ("os._exit",)),
        ("return gc.isenabled() or gc.get_objects()", ("gc",)),
        ("import _pytest.runner as r", ("_pytest.runner",)),
        ("return f.__code__", ("__code__",)),
        ("import sys\n    sys.settrace(None)", ("sys.settrace",)),
        ("import inspect\n    return inspect.stack()", ("inspect.stack",)),
        ("return __import__('ctypes')", ("__import__", "ctypes")),
        ("return getattr(f, '__globals__')", ("__globals__",)),
        ("return (", ()),
    ],
)
def test_what_a_change_brings_in(tree, body, names):
    after = tree.with_files({"a.py": f"import gc\ndef f():\n    {body}\n".encode()})
    assert suspicious_names(tree, after) == names


def test_a_new_file_counts_whole(tree):
    after = tree.with_files({"b.py": b"import gc\n", "c.txt": b"import gc"})
    assert suspicious_names(tree, after) == ("gc",)
