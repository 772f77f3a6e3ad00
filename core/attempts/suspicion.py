"""Names in a submission that reach for what judges it: no proof of anything, but a reason to look twice."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from gistpoint.core.code.parsing import parse
from gistpoint.core.trees import SourceTree

MODULES = frozenset({
    "_pytest", "atexit", "builtins", "ctypes", "faulthandler", "fcntl", "gc", "importlib", "multiprocessing", "pytest",
    "resource", "signal", "subprocess", "tracemalloc", "unittest",
})  # fmt: skip
ATTRIBUTES = frozenset({
    "inspect.currentframe", "inspect.getouterframes", "inspect.stack", "inspect.trace", "os._exit", "os.abort",
    "os.close", "os.dup", "os.dup2", "os.environ", "os.exec", "os.execv", "os.execve", "os.fork", "os.forkpty",
    "os.kill", "os.killpg", "os.posix_spawn", "os.system", "os.write", "sys._current_frames", "sys._getframe",
    "sys.argv", "sys.exit", "sys.gettrace", "sys.meta_path", "sys.modules", "sys.monitoring", "sys.path_hooks",
    "sys.setprofile", "sys.settrace", "threading.setprofile", "threading.settrace",
})  # fmt: skip
DUNDERS = frozenset({
    "__builtins__", "__closure__", "__code__", "__globals__", "__import__", "__subclasses__", "cell_contents", "eval",
    "exec", "f_back", "f_globals", "f_locals", "gi_frame", "globals", "tb_frame",
})  # fmt: skip


def suspicious_names(before: SourceTree, after: SourceTree) -> tuple[str, ...]:
    """Return the names of the three lists that files of `after` use more often than they did in `before`, sorted.

    A file that is new counts whole; one that is no Python is passed over, since nothing of it runs.
    """
    found: set[str] = set()
    for path in after.overlay:
        if not path.endswith(".py"):
            continue
        try:
            used = _used(before.read(path))
        except FileNotFoundError:
            used = Counter()
        found |= set(_used(after.read(path)) - used)
    return tuple(sorted(found))


def _used(source: bytes) -> Counter[str]:
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Counter()
    return Counter(name for node in ast.walk(tree) for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name.partition(".")[0] in MODULES)
        case ast.ImportFrom(module=str(module), names=names):
            if module.partition(".")[0] in MODULES:
                yield module
            yield from (whole for alias in names if (whole := f"{module}.{alias.name}") in ATTRIBUTES)
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            if owner in MODULES:
                yield owner
            if f"{owner}.{attribute}" in ATTRIBUTES:
                yield f"{owner}.{attribute}"
            if attribute in DUNDERS:
                yield attribute
        case ast.Attribute(attr=attribute) if attribute in DUNDERS:
            yield attribute
        case ast.Name(id=name) if name in DUNDERS:
            yield name
        case ast.Constant(value=str(text)) if text in MODULES or text in DUNDERS:
            yield text  # getattr and __import__ take them as text
        case _:
            pass
