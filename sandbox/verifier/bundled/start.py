"""The first file of the bundle: unpacks it for this run, because other processes start some of its files."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path


def _main() -> int:
    if sys.version_info < (3, 9):  # noqa: UP036 - the bundle may be started by any Python
        print("verify.pyz: there is no verdict. It needs Python 3.9 or newer.", file=sys.stderr)
        return 2
    folder = tempfile.mkdtemp(prefix="gistpoint-verify-")
    try:
        with zipfile.ZipFile(sys.path[0]) as bundle:
            bundle.extractall(folder)
        # The tested code runs as another user, whose processes start files of the payload in this folder.
        Path(folder).chmod(0o755)
        sys.path[0] = folder
        sys.dont_write_bytecode = True
        # Before gistpoint's modules, which use these names while they are imported.
        __import__("later_names")
        from gistpoint.sandbox.verifier.program import main

        return main(sys.argv[1:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(_main())
