"""The modules of a codebase pasted into one file: the crudest gist there is, a probe of what scoring makes of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from gistpoint.core.code.parsing import parse
from gistpoint.core.gist.entrypoint_tests import imports_owned
from gistpoint.core.gist.lines import import_texts
from gistpoint.core.gist.reference.trace import Trace
from gistpoint.core.gist.source_text import physical_lines


def pasted(sources: Mapping[str, str], trace: Trace, owned: Collection[str]) -> str:
    """Return every module that ran, one behind the other as they came to their ends, imports of the codebase left out.

    `from __future__` imports stand first, once each, as they must.
    """
    ends = {path: ranks[-1][0] for path, ranks in trace.module_ranks.items()}
    future: dict[str, None] = {}
    parts: list[str] = []
    for path in sorted((path for path in trace.files if path in sources), key=lambda path: ends.get(path, 0)):
        parts.append(_without_owned(sources[path], owned, future))
    return "\n".join([*future, *parts]) + "\n"


def _without_owned(source: str, owned: Collection[str], future: dict[str, None]) -> str:
    lines = physical_lines(source)
    blocks: dict[ast.stmt, list[ast.stmt]] = {}
    tree = parse(source)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                blocks.update(dict.fromkeys(block, block))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        texts = import_texts(node)
        of_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        kept = [] if of_future else [text for text in texts if not imports_owned(text, owned)]
        if of_future:
            future.update(dict.fromkeys(texts))
        if len(kept) == len(texts):
            continue
        margin = lines[node.lineno - 1][: node.col_offset]
        if margin.strip():
            continue
        alone = node not in tree.body and blocks[node][0] is node and all(_goes(one, owned) for one in blocks[node])
        lines[node.lineno - 1] = ("; ".join(kept) and margin + "; ".join(kept)) or (margin + "pass" if alone else "")
        for number in range(node.lineno, node.end_lineno or node.lineno):
            lines[number] = ""
    return "\n".join(lines)


def _goes(statement: ast.stmt, owned: Collection[str]) -> bool:
    """Whether nothing is left of a statement."""
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return False
    return all(imports_owned(text, owned) for text in import_texts(statement))
