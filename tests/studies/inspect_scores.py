"""Compares Inspect's scores on exported tasks with gistpoint's, using a scripted model.

Usage: PYTHON tests/studies/inspect_scores.py FOLDER

PYTHON has inspect-ai and gistpoint, GISTPOINT_HOME has the tasks of the demo, and FOLDER was written from
them with `gistpoint task export SET --to inspect -o FOLDER`. Half of the tasks are solved with the recorded
answer, the others get a wrong submission. Prints, for each task, Inspect's score and that of the journal next
to the log.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.tasks import TaskStore


def calls(task: Task, *, right: bool) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of one attempt: a view, a malformed call and the submissions."""
    answer = read_answer(task)
    looks: list[tuple[str, dict[str, Any]]] = [("list_directory", {}), ("read_file", {"wrong": 1})]
    if isinstance(answer.of_kind, GistAnswer):
        assert answer.of_kind.reference is not None
        text = answer.of_kind.reference.text if right else "import os\n"
        return [*looks, ("write_gist", {"content": text}), ("submit_gist", {})]
    made = []
    for target in answer.targets:
        code = target.original if right else target.corrupted
        if task.mode == "remove":
            made.append(("submit_attempt", {"func_code": code if right else target.corrupted}))
        else:
            place = {"func_name": target.qualname, "file_path": target.path}
            made.append(("replace_function", {"func_code": code, **place}))
    return [*looks, *made]


async def counted(text: str) -> int:
    """Return an estimate of the number of tokens in a string."""
    return len(text) // 4 + 1


def main(folder: str) -> int:
    """Run Inspect; return 1 if a run fails, or a score differs from the journal's or the expected one."""
    inspect_ai: Any = importlib.import_module("inspect_ai")
    model: Any = importlib.import_module("inspect_ai.model")
    spec = importlib.util.spec_from_file_location("task", Path(folder, "task.py"))
    assert spec is not None
    assert spec.loader is not None
    program: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    locations = Locations.of_user()
    store = TaskStore(locations.tasks, demo=locations.demo)
    wrong = 0
    for number, row in enumerate(program.ROWS):
        right = number % 2 == 0
        made = calls(store.find(row["id"]), right=right)
        outputs = [model.ModelOutput.for_tool_call("mockllm", name, arguments) for name, arguments in made]
        outputs += [model.ModelOutput.from_content("mockllm", "I have no more to say.") for _ in range(10)]
        scripted = model.get_model("mockllm/model", custom_outputs=outputs)
        scripted.api.count_text_tokens = counted  # Inspect's method downloads a table
        asked = program.gistpoint_tasks(tools="gistpoint")
        (log,) = inspect_ai.eval(asked, model=scripted, sample_id=row["name"], display="none")
        if log.status != "success":
            print(row["name"], log.status, log.error and log.error.message)
            return 1
        (sample,) = log.samples
        score = sample.scores["journal"]
        journal = Path("logs", "gistpoint", f"{score.metadata['attempt']}.jsonl")
        events = [json.loads(line) for line in journal.read_bytes().splitlines()]
        scored = [event for event in events if event.get("type") == "score"]
        ours = bool(scored and scored[-1]["data"]["solved"])
        print(
            f"{row['name']}: Inspect {score.value}, journal {ours}, deserved {right}, {len(made)} calls scripted"
        )
        wrong += not (bool(score.value) == ours == right)
    print(f"{len(program.ROWS)} tasks, {wrong} scores differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
