"""Writes an examined entrypoint as a task folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.generation.intake import Repository
from gistpoint.core.gist.answer import GistAnswer
from gistpoint.core.gist.entrypoints import Entrypoint
from gistpoint.core.gist.runs import TestsRun
from gistpoint.core.gist.splicing import given_test
from gistpoint.core.tasks.brief import gist_template, template_sha256
from gistpoint.core.tasks.folder import TASK_FILE, read_task, write_task
from gistpoint.core.tasks.gists import GistSettings, require_consistent
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Answer, Brief, Limits, Mode, Rules, Suite, Task
from gistpoint.core.trees import write_tar


def write_gist_task(
    repository: Repository,
    entrypoint: Entrypoint,
    answer: GistAnswer,
    into: Path,
    *,
    settings: GistSettings | None = None,
    budgets: Budgets | None = None,
    demo: bool = False,
    provenance: Mapping[str, Any] | None = None,
) -> Task:
    """Write the task below `into`, in a folder named by its id, and return it; one that is there already is kept.

    Raises `ContradictionError` for settings that contradict each other.
    """
    require_consistent(settings or GistSettings(), is_test=entrypoint.is_test)
    into.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=into))
    try:
        tree_sha256 = write_tar(repository.tree, folder / "workspace" / "tree.tar")
        task = _task(repository, entrypoint, answer, tree_sha256, folder)
        settings = replace(settings or GistSettings(), owned=answer.owned)
        template = gist_template(settings)
        test = given_test(answer.test) if settings.give_test else ""
        brief = Brief(template, template_sha256(template), (), test=test)
        task = replace(task, gist=settings, brief=brief, budgets=budgets or Budgets.of_steps(), demo=demo)
        write_task(task, Answer((), (), {}, provenance or {}, answer))
        place = into / task.id
        if not (place / TASK_FILE).is_file():
            folder.rename(place)
        return read_task(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _task(repository: Repository, entrypoint: Entrypoint, answer: GistAnswer, tree_sha256: str, folder: Path) -> Task:
    first, environment, source = answer.originals[0], repository.environment, repository.source
    ids = frozenset(first.tests) if isinstance(first, TestsRun) else frozenset[str]()
    ids_sha256 = hash_of_ids(ids)
    identity = task_id(
        mode=Mode.GIST,
        source_name=source.name,
        source_revision=source.revision,
        tree_sha256=tree_sha256,
        targets=(),
        lock=environment.lock,
        build_steps=environment.build_steps,
        ids_sha256=ids_sha256,
        entrypoint=entrypoint.text,
    )
    return Task(
        id=identity,
        mode=Mode.GIST,
        source=replace(source, location=""),
        tree_sha256=tree_sha256,
        brief=Brief("", "", ()),
        suite=Suite(
            tests=len(ids) or 1,
            ids_sha256=ids_sha256,
            seconds=answer.seconds,
            timeout_s=answer.timeout_s,
            test_files=(entrypoint.target,) if entrypoint.is_test else (),
        ),
        environment=environment,
        limits=Limits(),
        rules=Rules(),
        entrypoint=entrypoint.text,
        folder=folder,
    )
