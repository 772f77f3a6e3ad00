"""A task's folder is read as it was written; each error is one sentence that names the file and the key."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import tomli_w
from builders import build_task
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.folder import read_answer, read_task, read_task_with_answer, write_task
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.entered import entering_tests
from gistpoint.core.tasks.model import CANARY, Baseline, Mode, Task

BASELINE = "answer/baselines/fake-none.json"
FILES = {
    "task.toml": "task.toml",
    "answer/answer.json": "answer/answer.json",
    BASELINE: "baselines/fake-none.json",
}
OPTIONAL: dict[tuple[str, tuple[str | int, ...]], Callable[[Task, Baseline], bool]] = {
    ("task.toml", ("budgets", "time_limit_s")): lambda task, _: task.budgets.time_limit_s is None,
    (BASELINE, ("any_order",)): lambda _, baseline: baseline.any_order is False,
    (BASELINE, ("protections",)): lambda _, baseline: not baseline.protections,
    (BASELINE, ("protections", "fake")): lambda _, baseline: not baseline.protections,
}
"""Keys that are missing from older tasks, or optional in all tasks, each with what holds without it."""


@cache
def pristine() -> Path:
    return build_task(
        Path(mkdtemp(prefix="gistpoint-test-")), Mode.REMOVE, budgets=Budgets(16, 4, 600)
    ).folder


def document(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def store(path: Path, value: dict[str, Any]) -> None:
    path.write_text(tomli_w.dumps(value) if path.suffix == ".toml" else json.dumps(value), encoding="utf-8")


def keys_of(value: Any, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*above, key)
            if above[:1] not in (("metrics",), ("provenance",)):
                yield from keys_of(inner, (*above, key))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        yield from keys_of(value[0], (*above, 0))


FREE = (BASELINE, "made_here")
"""An unreadable tag belongs to nobody, so the values that it covers are measured again (decision 158)."""


def all_keys() -> list[tuple[str, tuple[str | int, ...]]]:
    named = ((file, key) for file in FILES for key in keys_of(document(pristine() / file)))
    return [(file, key) for file, key in named if (file, key[0]) != FREE]


def spelled(key: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).lstrip(".")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(pristine(), tmp_path / "task")
    return tmp_path / "task"


def problem(folder: Path) -> str:
    """Return the error message of reading the task; fail if there is none or another error."""
    with pytest.raises(TaskError) as caught:
        render_brief(read_task(folder))
    message = caught.value.message
    assert "\n" not in message
    assert message.rstrip(".").count(". ") == 0
    return message


def changed(
    folder: Path, file: str, key: tuple[str | int, ...], change: Callable[[Any, str | int], None]
) -> None:
    value = document(folder / file)
    place: Any = value
    for part in key[:-1]:
        place = place[part]
    change(place, key[-1])
    store(folder / file, value)


def test_written_task_is_read_back(folder: Path) -> None:
    task, answer = read_task(folder), read_answer(read_task(folder))
    assert task.folder == folder
    before = {file: (folder / file).read_bytes() for file in FILES if file != BASELINE}
    baseline = {**document(folder / BASELINE), "made_here": None, "protections": {}}
    write_task(task, answer)
    assert baseline == {**document(folder / BASELINE), "made_here": None, "protections": {}}
    assert {file: (folder / file).read_bytes() for file in before} == before
    assert read_task(folder) == task
    assert read_answer(task) == answer


@pytest.mark.parametrize(
    ("file", "key"), all_keys(), ids=lambda value: spelled(value) if isinstance(value, tuple) else value
)
def test_missing_key_is_named_with_its_file(folder: Path, file: str, key: tuple[str | int, ...]) -> None:
    changed(folder, file, key, lambda place, last: place.pop(last))
    if (file, key) in OPTIONAL:
        task = read_task(folder)
        (baseline,) = read_answer(task).baselines
        assert OPTIONAL[file, key](task, baseline)
        return
    message = problem(folder)
    assert message.startswith(f"{FILES[file]}: ")
    assert f"'{spelled(key)}'" in message


@pytest.mark.parametrize("wrong", [[], {}, "wrong", 3, -1, 1.5, True], ids=repr)
@pytest.mark.parametrize(
    ("file", "key"), all_keys(), ids=lambda value: spelled(value) if isinstance(value, tuple) else value
)
def test_value_of_a_wrong_type_is_named_with_its_file_and_key(
    folder: Path, file: str, key: tuple[str | int, ...], wrong: Any
) -> None:
    before: Any = document(folder / file)
    for part in key:
        before = before[part]
    same = type(wrong) is type(before) or (isinstance(before, float) and type(wrong) is int)
    changed(folder, file, key, lambda place, last: place.__setitem__(last, wrong))
    try:
        render_brief(read_task(folder))
    except TaskError:
        message = problem(folder)
        if not same:
            assert message.startswith(f"{FILES[file]}: ")
            assert spelled(key) in message
    else:
        assert same, f"{wrong!r} was taken for {before!r}"


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("version", [0, 2, 99, -1, "1", True, 1.0, None])
def test_other_versions_are_refused(folder: Path, file: str, version: Any) -> None:
    if version is None and file.endswith(".toml"):
        version = "none"
    changed(folder, file, ("version",), lambda place, last: place.__setitem__(last, version))
    message = problem(folder)
    assert message.startswith(f"{FILES[file]}: the key 'version' is {version!r}")


@pytest.mark.parametrize("file", FILES)
def test_foreign_format_is_refused(folder: Path, file: str) -> None:
    changed(folder, file, ("format",), lambda place, last: place.__setitem__(last, "somebody.elses"))
    assert problem(folder).startswith(f"{FILES[file]}: the key 'format' is 'somebody.elses'")


@pytest.mark.parametrize(
    ("file", "key", "value", "named"),
    [
        ("task.toml", ("id",), "0" * 64, "'id'"),
        ("task.toml", ("id",), "../../elsewhere", "'id'"),
        ("task.toml", ("tree", "sha256"), "0" * 64, "'tree.sha256'"),
        ("task.toml", ("suite", "ids_sha256"), "0" * 64, "'id'"),
        ("task.toml", ("brief", "template_sha256"), "0" * 64, "'brief.template_sha256'"),
        ("task.toml", ("brief", "template"), "../../secret", "'brief.template'"),
        ("task.toml", ("brief", "template"), "repair-remove-99", "'brief.template'"),
        ("task.toml", ("mode",), "guess", "'mode'"),
        ("task.toml", ("limits", "tool_semantics"), 2, "'limits.tool_semantics'"),
        ("task.toml", ("suite", "timeout_s"), float("inf"), "'suite.timeout_s'"),
        ("task.toml", ("suite", "timeout_s"), float("nan"), "'suite.timeout_s'"),
        (BASELINE, ("seconds",), 10**400, "'seconds'"),
        ("task.toml", ("source", "revision"), "2.0", "'id'"),
        ("answer/answer.json", ("targets", 0, "corrupted"), "def discount(): pass", "'id'"),
        ("answer/answer.json", ("targets",), [], "'targets'"),
        (BASELINE, ("passed",), ["another"], "'suite.ids_sha256'"),
    ],
)
def test_broken_hash_or_reference_is_named(
    folder: Path, file: str, key: tuple[str | int, ...], value: Any, named: str
) -> None:
    changed(folder, file, key, lambda place, last: place.__setitem__(last, value))
    assert named in problem(folder)


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("lock", ["pytest==8.4.2 --hash=sha256:" + "0" * 64, "evil @ http://127.0.0.1/x.tar.gz"], "lock[1]"),
        ("lock", ["--index-url=http://127.0.0.1"], "lock[0]"),
        ("python", "./workspace/python", "python"),
        ("import_roots", ["src", "../.."], "import_roots[1]"),
        ("plugins", ["--rootdir=/"], "plugins[0]"),
    ],
)
@pytest.mark.parametrize("verify", [True, False])
def test_an_environment_that_would_lead_elsewhere_is_refused_and_quoted(
    folder: Path, key: str, value: Any, named: str, verify: bool
) -> None:
    changed(folder, "task.toml", ("environment", key), lambda place, last: place.__setitem__(last, value))
    with pytest.raises(TaskError) as caught:
        read_task(folder, verify=verify)
    assert f"'environment.{named}'" in caught.value.message
    assert repr(value[-1] if isinstance(value, list) else value) in caught.value.message


def test_changed_tree_is_found(folder: Path) -> None:
    tar = folder / "workspace" / "tree.tar"
    data = bytearray(tar.read_bytes())
    data[600] ^= 1
    tar.write_bytes(bytes(data))
    assert "'tree.sha256' does not match workspace/tree.tar" in problem(folder)
    tar.unlink()
    assert "workspace/tree.tar is missing" in problem(folder)


def test_a_task_read_with_its_answer_is_verified(folder: Path) -> None:
    task = read_task(folder)
    assert read_task_with_answer(folder) == (task, read_answer(task))
    value = document(folder / "task.toml")
    value["source"]["revision"] = "2.0"
    store(folder / "task.toml", value)
    faults = []
    for read in (read_task, read_task_with_answer):
        with pytest.raises(TaskError) as fault:
            read(folder)
        faults.append(str(fault.value))
    assert faults[0] == faults[1]
    value["tree"]["sha256"] = "0" * 64
    store(folder / "task.toml", value)
    with pytest.raises(TaskError, match=r"'tree.sha256' does not match"):
        read_task_with_answer(folder)


def test_an_edited_task_is_told_what_to_do(folder: Path) -> None:
    value = document(folder / "task.toml")
    value["source"]["revision"] = "2.0"
    store(folder / "task.toml", value)
    with pytest.raises(
        TaskError, match=r"'id' does not match.* The task was changed after it was made. Get it again"
    ):
        read_task(folder)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[" * 100_000, b"null", b"[]", b"{", b"1" * 5000, b"\0"]
)
def test_file_that_is_no_document_is_named(folder: Path, file: str, content: bytes) -> None:
    (folder / file).write_bytes(content)
    with pytest.raises(TaskError) as caught:
        read_task(folder)
    assert FILES[file] in caught.value.message


@pytest.mark.parametrize("file", [file for file in FILES if file != "answer/answer.json"])
def test_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    assert file.split("/")[0] in problem(folder)


def test_task_without_its_answer_can_be_read_but_not_scored(folder: Path) -> None:
    shutil.rmtree(folder / "answer")
    task = read_task(folder)
    with pytest.raises(TaskError, match=r"answer/answer\.json is missing"):
        read_answer(task)


@pytest.mark.parametrize("file", FILES)
def test_canary_stands_in_every_file_of_ours_and_in_none_of_the_repository(folder: Path, file: str) -> None:
    assert CANARY in document(folder / file)["canary"]
    assert b"canary" not in (folder / "workspace" / "tree.tar").read_bytes()


@examples(150)
@given(data=st.data(), file=st.sampled_from(["task.toml", "answer/answer.json"]))
def test_no_damage_of_bytes_gives_anything_but_a_task_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, file: str
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    shutil.copytree(pristine(), folder, dirs_exist_ok=True)
    content = bytearray((folder / file).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        match data.draw(st.sampled_from(["change", "delete", "insert", "cut"])):
            case "change":
                content[at] = data.draw(st.integers(0, 255))
            case "delete":
                del content[at : at + data.draw(st.integers(1, 30))]
            case "insert":
                content[at:at] = data.draw(st.binary(max_size=8))
            case _:
                del content[max(at, 1) :]
        if not content:
            break
    (folder / file).write_bytes(bytes(content))
    try:
        render_brief(read_task(folder))
    except TaskError as error:
        assert "\n" not in error.message.replace("\r\n", "\n").strip() or len(error.message) < 600  # noqa: PT017


def test_the_map_of_tests_is_kept_with_the_answer(folder: Path) -> None:
    task = read_task(folder)
    entered = {
        "pkg.py::f": frozenset({"t.py::a", "t.py::b"}),
        "pkg.py::K.m": frozenset({"t.py::b"}),
        "p.py::g": frozenset(),
    }
    write_task(task, replace(read_answer(task), entered=entered))
    again = read_answer(task).entered
    assert again == entered
    assert entering_tests(again, ("pkg.py::K", "pkg.py::f")) == ("t.py::b", "t.py::a")
    write_task(task, replace(read_answer(task), entered={}))
    assert not (folder / "answer/entered.json").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "gistpoint.entered", "version": 9}'])
def test_a_broken_map_of_tests_is_named(folder: Path, text: str) -> None:
    (folder / "answer/entered.json").write_text(text, encoding="utf-8")
    with pytest.raises(TaskError, match=r"answer/entered\.json can't be read"):
        read_answer(read_task(folder, verify=False))
