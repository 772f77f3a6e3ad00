"""The Python files of a tree as text, made once per tree and kept for its next searches."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts with newlines made one, sorted by path, and the files that could not be decoded."""

    texts: tuple[tuple[str, str], ...]
    undecodable: tuple[str, ...]


_known: WeakKeyDictionary[SourceTree, Corpus] = WeakKeyDictionary()
_lock = Lock()


def corpus_of(tree: SourceTree) -> Corpus:
    """Return the corpus of a tree, from the last search where there was one."""
    with _lock:
        corpus = _known.get(tree)
    if corpus is None:
        corpus = _made(tree)
        with _lock:
            _known[tree] = corpus
    return corpus


def _made(tree: SourceTree) -> Corpus:
    texts, undecodable = [], []
    for path, data in tree.read_all(".py"):
        text = _decoded(data)
        if text is None:
            undecodable.append(path)
        else:
            texts.append((path, text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text))
    return Corpus(tuple(texts), tuple(undecodable))


def _decoded(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    encoding = "utf-8-sig"
    try:
        if b"coding" in b"".join(data[:1024].split(b"\n", 2)[:2]):
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        return None
