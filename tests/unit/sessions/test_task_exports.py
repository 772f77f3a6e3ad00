"""Tasks for other harnesses: the required and the forbidden content of their files."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from builders import GOOD, build_task
from gist_tasks import build_gist_task
from shelves import install_package

from gistpoint.core.diffs import apply, parse
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.model import CANARY, Mode, Task
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.verifier.bundle import expected_text
from gistpoint.sessions.exports.tasks.exported import ExportedTask, TaskExportSettings
from gistpoint.sessions.exports.tasks.registry import TASK_FORMATS, task_exporter

COPIED = "self.items.append((name, price, count))"
ORIGINAL = "price - price * percent // 100"
TOOLS = ("replace_function", "submit_attempt", "submit_gist", "tool use", "submissions", "steps:")


def exported(task: Task) -> ExportedTask:
    answer = read_answer(task)
    return ExportedTask(
        task, answer, b"the bundle " + CANARY.encode(), expected_text(task, answer), "pytest==8.0.0"
    )


def written(name: str, task: Task, settings: TaskExportSettings | None = None) -> Mapping[str, bytes]:
    return dict(task_exporter(name)([exported(task)], settings or TaskExportSettings()))


@pytest.fixture(params=["remove", "discovery", "gist"])
def task(request: pytest.FixtureRequest, tmp_path: Path) -> Task:
    return build_gist_task(tmp_path) if request.param == "gist" else build_task(tmp_path, Mode(request.param))


@pytest.mark.parametrize("name", TASK_FORMATS)
def test_every_file_has_the_canary_and_without_a_solution_no_original_code(name: str, task: Task) -> None:
    for path, data in written(name, task).items():
        if path.endswith("tree.tar") or path.startswith("trees/"):
            assert data == task.tree_path.read_bytes()
            continue
        text = data.decode()
        assert CANARY in text, path
        if task.mode != "gist":
            assert ORIGINAL not in text, path
        assert "FAIL_TO_PASS" not in text or "tests/" in path
        assert COPIED not in text or "tests/" in path
        if task.mode == "discovery" and "tests/" not in path:
            assert "::discount" not in text


@pytest.mark.parametrize("name", TASK_FORMATS)
def test_the_solution_is_written_on_demand(name: str, task: Task) -> None:
    files = written(name, task, TaskExportSettings(with_solution=True))
    (text,) = [
        data.decode() for path, data in files.items() if "/files/" in path or path == "tests/instances.jsonl"
    ]
    assert (COPIED if task.mode == "gist" else ORIGINAL) in text


def test_brief_for_a_shell_names_no_tool_and_says_what_is_judged(task: Task) -> None:
    text = exported(task).brief()
    assert not [word for word in TOOLS if word in text]
    assert "`/repo`" in text
    assert ("`/gist/test_gist.py`" if task.mode == "gist" else "all of its tests") in text
    assert "{{" not in text


def test_harbor_gets_a_fresh_container_for_the_verifier_and_no_network(task: Task) -> None:
    settings = TaskExportSettings(
        agent_hosts=("api.example.org",), mcp_url="http://here:8765/mcp", base="python@sha256:1"
    )
    name = exported(task).name
    files = {path.removeprefix(f"{name}/"): data for path, data in written("harbor", task, settings).items()}
    config = tomllib.loads(files["task.toml"].decode())
    assert config["schema_version"] == "1.4"
    assert config["verifier"]["environment_mode"] == "separate"
    assert config["environment"]["network_mode"] == "no-network"
    assert config["agent"]["allowed_hosts"] == ["api.example.org", "here"]
    assert config["environment"]["mcp_servers"][0]["headers"] == {
        "Authorization": "Bearer ${GISTPOINT_TOKEN}"
    }
    assert config["metadata"]["gistpoint"]["budgets_enforced"] is False
    assert config["verifier"]["allowed_hosts"] == ["here"]
    assert config["verifier"]["env"] == {"GISTPOINT_VERDICT_TOKEN": "${GISTPOINT_VERDICT_TOKEN}"}
    assert b" --served http://here:8765/verdict\n" in files["tests/test.sh"]
    plain = dict(written("harbor", task))
    assert b"--served" not in plain[f"{name}/tests/test.sh"]
    assert "network_mode" not in tomllib.loads(plain[f"{name}/task.toml"].decode())["verifier"]
    judging = files["tests/Dockerfile" if task.mode == "gist" else "environment/Dockerfile"].decode()
    assert "ARG BASE=python@sha256:1\n" in judging
    assert "/logs/verifier/reward.json" in files["tests/test.sh"].decode()
    lock = files["tests/requirements.txt" if task.mode == "gist" else "environment/requirements.txt"].decode()
    assert "pytest==8.0.0" in lock


def test_an_agent_that_may_run_nothing_gets_no_interpreter(tmp_path: Path) -> None:
    for execution in (False, True):
        task = build_gist_task(tmp_path, GistSettings(("shop",), execution=execution))
        files = written("harbor", task)
        (image,) = [data.decode() for path, data in files.items() if path.endswith("environment/Dockerfile")]
        (config,) = [
            tomllib.loads(data.decode()) for path, data in files.items() if path.endswith("task.toml")
        ]
        assert ("pip install" in image) is execution
        assert config["metadata"]["gistpoint"]["execution_enforced"] is not execution


def test_patches_lead_from_the_original_to_the_task_and_back(tmp_path: Path) -> None:
    task = build_task(tmp_path, Mode.DISCOVERY)
    files = written("swebench", task, TaskExportSettings(with_solution=True))
    row = json.loads(files["tests/instances.jsonl"])
    given = SourceTree.open(task.tree_path).read("shop/prices.py").decode()
    (repair,), (corruption,) = parse(row["patch"]), parse(row["mutation_patch"])
    assert apply(given, repair) == GOOD["shop/prices.py"]
    assert apply(GOOD["shop/prices.py"], corruption) == given
    assert row["created_at"] == ""
    assert row["FAIL_TO_PASS"]
    public = json.loads(files["instances.jsonl"])
    assert public["problem_statement"] == exported(task).brief(as_patch=True)
    assert not {"patch", "mutation_patch", "PASS_TO_PASS"} & public.keys()


def test_another_package_adds_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_package(tmp_path / "shelf", monkeypatch, "[gistpoint.task_exporters]\ncart = cart_tasks:write\n")
    with pytest.raises(UserError, match=r"gistpoint\.task_exporters"):
        task_exporter("cart")
    (tmp_path / "shelf" / "cart_tasks.py").write_text("def write(tasks, settings):\n    yield 'cart', b''\n")
    monkeypatch.delitem(sys.modules, "cart_tasks", raising=False)
    assert list(task_exporter("cart")([], TaskExportSettings())) == [("cart", b"")]
    with pytest.raises(UserError, match="can't be exported"):
        task_exporter("wagon")


def test_inspect_gets_one_short_program_for_all_tasks(tmp_path: Path) -> None:
    tasks = [build_task(tmp_path), build_gist_task(tmp_path)]
    files = dict(task_exporter("inspect")([exported(task) for task in tasks], TaskExportSettings()))
    program = files["task.py"].decode()
    assert len(program.splitlines()) <= 120
    compile(program, "task.py", "exec")
    assert "{{" not in program
    content = files["samples.jsonl"]
    rows = [json.loads(line) for line in content.splitlines()]
    assert [row["own_brief"] for row in rows] == [render_brief(task) for task in tasks]
    assert [row["place"] for row in rows] == ["/repo", "/gist/test_gist.py"]
    assert all(f"{row['name']}/environment/Dockerfile" in files for row in rows)
    assert all("pip install" in files[f"{row['name']}/environment/Dockerfile"].decode() for row in rows)


def test_tasks_of_another_kind_are_refused(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    with pytest.raises(TaskError, match="judged by gistpoint alone"):
        expected_text(replace(task, mode="riddle"), read_answer(task))


def test_a_gist_that_comes_back_as_a_patch_is_written_into_the_repository(tmp_path: Path) -> None:
    task = build_gist_task(tmp_path)
    files = written("swebench", task, TaskExportSettings(with_solution=True))
    assert "`/repo/test_gist.py`" in json.loads(files["instances.jsonl"])["problem_statement"]
    (diff,) = parse(json.loads(files["tests/instances.jsonl"])["patch"])
    assert (diff.old_path, diff.new_path) == (None, "test_gist.py")


@pytest.mark.parametrize("name", TASK_FORMATS)
def test_text_of_a_task_ends_no_line_of_the_files(name: str, tmp_path: Path) -> None:
    task = build_task(tmp_path, failure_text='\u2028\x85" {{count}} $(touch x) `y`')
    pins = replace(
        task.environment,
        build_steps=("echo 'one\nRUN touch /injected' \\", "cat <<EOF\n$HOME\nEOF"),
        import_roots=(".", 'src "$HOME" \\ x=1'),
    )
    for path, data in written(name, replace(task, environment=pins)).items():
        if path.endswith("samples.jsonl") or path.endswith("instances.jsonl"):
            (row,) = data.decode().splitlines()
            assert "{{count}}" in str(json.loads(row))
        if path.endswith("Dockerfile"):
            lines = data.decode().splitlines()
            assert not [line for line in lines if line.startswith("RUN touch")]
            steps = [json.loads(line.removeprefix("RUN ")) for line in lines if line.startswith("RUN [")]
            assert steps == [["sh", "-c", step] for step in pins.build_steps]
            assert r'ENV PYTHONPATH="/repo:/repo/src \"\$HOME\" \\ x=1"' in lines
            assert "rm -r /opt/gistpoint" in data.decode()


def test_what_pytest_needs_is_installed_unless_a_lock_names_it(tmp_path: Path) -> None:
    task = build_task(tmp_path)
    lock = (f"pytest==8.0.0 --hash=sha256:{'0' * 64}",)
    locked = replace(task, environment=replace(task.environment, lock=lock))
    for one, options in (
        (replace(task, environment=EnvironmentPins()), ""),
        (locked, "--no-deps --require-hashes "),
    ):
        (image,) = [
            data.decode() for path, data in written("harbor", one).items() if path.endswith("Dockerfile")
        ]
        assert f"RUN pip install --no-cache-dir {options}-r " in image
