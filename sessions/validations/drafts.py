"""What a validator has typed and not said yet: half-written comments and fixes, a file for each task."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Draft:
    """A comment, and code by `path::qualname`."""

    comment: str = ""
    fixes: Mapping[str, str] = field(default_factory=dict)


class Drafts:
    """The drafts of one validator below a folder. One that can't be read counts as none, and is kept aside."""

    def __init__(self, folder: Path, reviewer: str) -> None:
        self.folder = folder / quote(reviewer, safe=" @+-_").replace(".", "%2E")

    def read(self, task: str) -> Draft:
        """Return the draft of a task."""
        path = self._path(task)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            comment, fixes = value["comment"], value["fixes"]
            if isinstance(comment, str) and all(isinstance(code, str) for code in fixes.values()):
                return Draft(comment, fixes)
        except FileNotFoundError:
            return Draft()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        path.replace(path.with_suffix(".damaged"))
        return Draft()

    def write(self, task: str, draft: Draft) -> None:
        """Keep a draft in place of the one before; an empty one is removed. Raises OSError."""
        path = self._path(task)
        if not draft.comment and not draft.fixes:
            path.unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps({"comment": draft.comment, "fixes": dict(draft.fixes)}), encoding="utf-8")
        fresh.replace(path)

    def _path(self, task: str) -> Path:
        return self.folder / f"{task}.json"
