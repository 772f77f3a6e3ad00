"""Gists that seem more valuable than they are, derived from a faithful one."""

from __future__ import annotations

import ast
import base64
import zlib
from collections.abc import Collection, Iterator, Mapping

PADDING = 300
_LINE = 200


def padded(gist: str, line: str) -> str:
    """Return the gist followed by many repetitions, in several layouts, of a codebase's line that runs."""
    again = [line, f"{line}  # again", f"if True:\n    {line}", f"{line}; {line}"]
    return gist + "".join(f"{again[number % len(again)]}\n" for number in range(PADDING))


def folded(gist: str) -> str:
    """Return the gist with as many statements on each line as Python allows."""
    tree = ast.parse(gist)
    return "".join(f"{line}\n" for line in _folded(tree.body, ""))


def _folded(body: list[ast.stmt], margin: str) -> Iterator[str]:
    simple: list[str] = []
    for statement in body:
        if not hasattr(statement, "body") and "\n" not in (text := ast.unparse(statement)):
            simple.append(text)
            if sum(map(len, simple)) < _LINE:
                continue
        if simple:
            yield margin + "; ".join(simple)
            simple = []
        if hasattr(statement, "body"):
            yield from _folded_block(statement, margin)
        elif "\n" in text:
            yield from (margin + line for line in text.split("\n"))
    if simple:
        yield margin + "; ".join(simple)


def _folded_block(statement: ast.stmt, margin: str) -> Iterator[str]:
    """Yield a statement's lines with its body folded; unfolded if it has other parts or triple quotes."""
    parts = ("orelse", "handlers", "finalbody", "cases")
    body: list[ast.stmt] = getattr(statement, "body", [])
    text = ast.unparse(statement)
    if any(getattr(statement, part, None) for part in parts) or '"""' in text or "'''" in text:
        yield from (margin + line for line in text.split("\n"))
        return
    inner = list(_folded(body, margin + "    "))
    head = text.split("\n")[: text.count("\n") + 1 - ast.unparse(body).count("\n") - 1]
    yield from (margin + line for line in head[:-1])
    alone = len(inner) == 1 and not any(hasattr(one, "body") for one in body)
    yield margin + head[-1] + (f" {inner[0].strip()}" if alone else "")
    yield from () if alone else inner


def fakes(gist: str, test: str, names: Collection[str]) -> Mapping[str, str]:
    """Return gists that behave like a faithful one without its code, or replace modules with other objects.

    `names` are the names by which the test reaches modules.
    """
    packed = base64.b85encode(zlib.compress(gist.encode())).decode()
    unpacked = f"zlib.decompress(base64.b85decode({packed!r}))"
    taken = "globals().update({key: value for key, value in vars(other).items() if key[:2] != '__'})\n"
    loader = (
        "import importlib.abc, importlib.util, sys\n"
        "class Loader(importlib.abc.InspectLoader):\n"
        f"    def get_source(self, name):\n        return {gist!r}\n"
        "spec = importlib.util.spec_from_loader('other', Loader())\nother = importlib.util.module_from_spec(spec)\n"
        "sys.modules['other'] = other\nspec.loader.exec_module(other)\n"
    )
    found = {
        "string": f"exec(compile({gist!r}, '/usr/lib/nowhere.py', 'exec'))\n",
        "packed": f"import base64, zlib\nexec({unpacked})\n",
        "marshalled": f"import marshal\nexec(marshal.loads(marshal.dumps(compile({gist!r}, __file__, 'exec'))))\n",
        "written": f"open('other.py', 'w').write({gist!r})\nimport other\n" + taken,
        "loader": loader + taken,
    }
    found = {kind: f"{text}\n\n{test}" for kind, text in found.items()}
    modules = sorted(name for name in names if "." not in name)
    if modules:
        made = {"namespace": "argparse.Namespace(**globals())", "type": "type('module', (), dict(globals()))"}
        for kind, value in made.items():
            bound = "".join(f"{name} = {value}\n" for name in modules)
            found[kind] = f"{gist}\nimport argparse\n{bound}"
        entries = "".join(f"sys.modules[{name!r}] = sys.modules[__name__]\n" for name in modules)
        found["entries"] = f"{gist}\nimport sys\n{entries}"
    return found
