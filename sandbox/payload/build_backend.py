"""Asks the build backend of a source tree for metadata or a wheel (PEP 517), inside the isolation.

Its one argument is a JSON object: `backend` (`module` or `module:object`), `path` (folders of the tree that
contain it), `want` (`metadata` or `wheel`) and `installed` (whether the backend's requirements are already
installed). The results go to the descriptor that GISTPOINT_RESULTS names, as lines of JSON: either
`requires`, the list of requirements that must be installed before anything else is possible, or `file`, the
name of the result, followed by its bytes as one `part` or several in base64, and by `end` (decision 38).
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import tempfile
import traceback
import zipfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

PART = 384 << 10  # a line with a part of this size stays below the limit of the result pipe
MOST_RESULT = 1 << 20


def _backend(order: dict[str, Any]) -> Any:
    root = os.getcwd()
    for folder in reversed(order["path"]):
        place = os.path.realpath(os.path.join(root, folder))
        # PEP 517 requires it; a build could otherwise run code from anywhere on the machine.
        if os.path.commonpath([root, place]) != root:
            raise SystemExit(f"backend-path leads out of the source tree: {folder!r}")
        sys.path.insert(0, place)
    module, _, inner = order["backend"].partition(":")
    found: Any = importlib.import_module(module)
    for name in filter(None, inner.split(".")):
        found = getattr(found, name)
    return found


def _metadata_of(wheel: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA")))


def main() -> None:
    """Run the program, as the module's docstring describes."""
    order = json.loads(sys.argv[1])
    sys.argv = sys.argv[:1]
    results = int(os.environ.pop("GISTPOINT_RESULTS"))
    os.set_inheritable(results, False)  # programs that the backend starts do not keep the pipe open
    with open(results, "wb") as answers:
        _answer(order, answers)


def _answer(order: dict[str, Any], answers: IO[bytes]) -> None:
    def send(**answer: object) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")

    requires = [] if order["installed"] else _call(order, "get_requires_for_build_wheel")
    if requires:
        send(requires=requires)
        return
    made = tempfile.mkdtemp()
    prepared = _call(order, "prepare_metadata_for_build_wheel", made) if order["want"] == "metadata" else None
    if prepared is not None:
        with open(os.path.join(made, prepared, "METADATA"), "rb") as file:
            name, data = "METADATA", file.read()
    else:
        name = os.path.basename(_call(order, "build_wheel", made))
        with open(os.path.join(made, name), "rb") as file:
            data = file.read()
        if order["want"] == "metadata":
            name, data = "METADATA", _metadata_of(os.path.join(made, name))
    send(file=name)
    for start in range(0, len(data), PART):
        send(part=base64.b64encode(data[start : start + PART]).decode())
    send(end=True)


def _call(order: dict[str, Any], hook: str, *arguments: str) -> Any:
    """Call a hook in a new process, as PEP 517 requires; return its result, or None if it is missing.

    Raises `SystemExit` if the hook fails.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            found = getattr(_backend(order), hook, None)
            value = found(*arguments) if found is not None else None
            with open(writing, "wb") as pipe:
                pipe.write(json.dumps(value).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as pipe:
        result = pipe.read(MOST_RESULT)
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(1)  # the child has printed its traceback
    return json.loads(result)


if __name__ == "__main__":
    main()
