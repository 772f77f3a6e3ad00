"""Compiling what was installed, without starting the interpreter that it was installed for.

That one would run what wheels bring for its start (`*.pth`, `sitecustomize.py`): the one outside of the environment
compiles, without its own site-packages, and only reads the files.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sandbox.uvcalls import run_program

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

_COMPILE = "import compileall, sys\nfor path in sys.stdin:\n    compileall.compile_file(path[:-1], quiet=2)\n"


def compile_below(folder: Path, interpreter: Path, cancel: CancelToken | None = None) -> None:
    """Compile the modules below `folder`, in as many processes as there are processors.

    What is no Python of that version is left as it is. Raises `CancelledError`.
    """
    modules = sorted(str(path) for path in folder.rglob("*.py") if str(path).isprintable())
    shares = os.cpu_count() or 1

    def compile_share(share: int) -> None:
        run_program(
            [str(interpreter), "-I", "-S", "-c", _COMPILE],
            folder="/",
            environment={"PATH": os.defpath, "LANG": "C.UTF-8"},
            standard_input="".join(f"{path}\n" for path in modules[share::shares]),
            cancel=cancel,
        )

    with ThreadPoolExecutor(shares) as pool:
        list(pool.map(compile_share, range(shares)))
