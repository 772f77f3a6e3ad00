"""Runs pytest with a plugin, as `python -m pytest` does: `python -m NAME PLUGIN ARGUMENTS...`.

PLUGIN is a file whose `begin` returns the object that pytest has to register; it reads the order of the run
before anything of the repository can be imported. Neither this module nor the plugin is in `sys.modules`
afterwards.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType


def _loaded(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("_" + os.urandom(8).hex(), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _main() -> int:
    # Loaded before pytest, whose import searches the environment for plugins and can run the tree's code.
    plugin = _loaded(sys.argv[1]).begin()
    import pytest

    spec = importlib.util.find_spec("pytest.__main__")
    assert spec is not None
    assert spec.origin is not None
    shown = importlib.util.module_from_spec(spec)
    shown.__name__ = "__main__"
    # Tests that look for `__main__` find what they would find under `python -m pytest`.
    sys.modules["__main__"] = shown
    sys.argv[:2] = [spec.origin]
    getattr(sys, "orig_argv", [])[-len(sys.argv) - 1 :] = ["pytest", *sys.argv[1:]]
    return int(pytest.main(plugins=[plugin]))


if __name__ == "__main__":
    raise SystemExit(_main())
