"""A discovery task's public part confirms no guess at its functions; its id is verified with the answer."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import shutil
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from builders import CHECKS, GOOD, build_services, write_files
from fakes import FakeRunner

from gistpoint.core.code.index import index_source
from gistpoint.core.errors import TaskError
from gistpoint.core.generation.intake import CorruptionProof, Intake, prove, take_in
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.removal import definitions
from gistpoint.core.kinds.archive import pack_task, unpack_task
from gistpoint.core.kinds.checking import check_task
from gistpoint.core.kinds.folder import content_sha256, read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.conditions import conditions_sha256
from gistpoint.core.tasks.identity import commitment, public_source, salted_id, seal, task_id
from gistpoint.core.tasks.model import Mode, Seal, Source, Target, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree, write_tar, write_tree
from gistpoint.sandbox.layout import lay_out
from gistpoint.sessions.tasks import BrokenTask, read_set, repeated

GOLDEN = Path(__file__).parents[3] / "data" / "salted-task-3"
SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))
DIGEST = re.compile(r"[0-9a-f]{64}")
BROKEN = {
    "shop/prices.py::discount": ("price - price", "price + price"),
    "shop/prices.py::Basket.add": ("price, count))", "price, 1))"),
    "shop/stock/shelf.py::capacity": ("width * depth", "width + depth"),
}
LOCK = (f"pytest==8.4.2 --hash=sha256:{'1' * 64}",)


@dataclass
class Bench:
    """The small library after intake, and tasks for its functions."""

    folder: Path
    intake: Intake

    def target(self, name: str) -> Target:
        path, _, qualname = name.partition("::")
        original = index_source(path, self.intake.repository.tree.read(path)).get(qualname).dedented
        return Target(path, qualname, original, original.replace(*BROKEN[name]))

    def proof(self, *targets: Target) -> CorruptionProof:
        return prove(self.intake, targets, FakeRunner(CHECKS), min_failing=1)

    def task(
        self,
        name: str = "shop/prices.py::discount",
        secret: bytes | None = SECRET,
        into: str = "tasks",
        mode: Mode = Mode.DISCOVERY,
    ) -> Task:
        proof = self.proof(self.target(name))
        return write_proven(self.intake, proof, mode, "fake", self.folder / into, secret=secret)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    place = tmp_path / "library"
    revision = write_files(GOOD, place)
    tree = SourceTree.open(place / "workspace" / "tree.tar")
    repository = Repository(Source("folder", "shop", revision), tree, EnvironmentPins(lock=LOCK))
    return Bench(tmp_path, take_in(repository, FakeRunner(CHECKS)))


# An attacker who has the public part, and every function of its tree as a guess


def public_text(task: Task) -> str:
    return (task.folder / "task.toml").read_text()


def public_digests(task: Task) -> set[str]:
    found = set(DIGEST.findall(public_text(task)))
    return {*found, conditions_sha256(task, {}, "the brief", 2)}


def contents_of(task: Task, target: Target, revisions: set[str]) -> Iterator[str]:
    for version in (None, 1, 2, 3):
        for revision in revisions:
            yield task_id(
                mode=task.mode,
                source_name=task.source.name,
                source_revision=revision,
                tree_sha256=task.tree_sha256,
                targets=(target,),
                lock=task.environment.lock,
                build_steps=task.environment.build_steps,
                ids_sha256=task.suite.ids_sha256,
                version=version,
            )


def derived(task: Task, content: str) -> Iterator[str]:
    """Yield everything that can be derived from a guess at the content and from the public part."""
    yield content
    for known in ("0" * 64, content, *sorted(public_digests(task))):
        yield salted_id(Seal(known, content, task.source.revision), task.source)
        yield commitment(known)
        for key in (bytes.fromhex(known), known.encode()):
            yield from derived_with(key, content, task.source)


def derived_with(key: bytes, content: str, source: Source) -> Iterator[str]:
    sealed = seal(key, content, source)
    yield from (
        sealed.salt,
        commitment(sealed.salt),
        salted_id(sealed, source),
        public_source(key, source).revision,
    )
    yield hmac.new(key, content.encode(), hashlib.sha256).hexdigest()


def guesses(task: Task) -> dict[str, list[Target]]:
    """Return each function of the public tree as a guess, with the forms in which a task may contain it."""
    found: dict[str, list[Target]] = {}
    for definition in definitions(SourceTree.open(task.tree_path), frozenset(task.suite.test_files)):
        name = str(definition.ref)
        path, _, qualname = name.partition("::")
        texts = {definition.dedented, definition.source, definition.dedented + "\n"}
        found[name] = [Target(path, qualname, "", text) for text in sorted(texts)]
    return found


def confirmed(task: Task, revisions: set[str]) -> set[str]:
    """Return the functions for which a public digest can be derived from the guess."""
    public = public_digests(task)
    return {
        name
        for name, targets in guesses(task).items()
        for target in targets
        for content in contents_of(task, target, revisions)
        if public & set(derived(task, content))
    }


@pytest.mark.parametrize("name", BROKEN)
def test_no_guess_at_the_corrupted_function_can_be_confirmed(bench: Bench, name: str) -> None:
    task, given = bench.task(name), {bench.intake.repository.source.revision}
    assert name in guesses(task)
    assert len(guesses(task)) == 5
    assert confirmed(task, {task.source.revision, *given}) == set()


@pytest.mark.parametrize("name", BROKEN)
def test_the_same_attack_finds_the_function_of_an_id_without_a_salt(bench: Bench, name: str) -> None:
    task = bench.task(name)
    revision = bench.intake.repository.source.revision
    open_id = next(contents_of(task, bench.target(name), {revision}))
    old = replace(task, id=open_id, folder=bench.folder / "old")
    (old.folder / "workspace").mkdir(parents=True)
    shutil.copy(task.tree_path, old.tree_path)
    (old.folder / "task.toml").write_text(f'id = "{open_id}"\n')
    assert confirmed(old, {revision}) == {name}


def originals(bench: Bench, task: Task, target: Target) -> str:
    """Return the sha256 of the tree with the true original in it, the best possible guess."""
    tree = SourceTree.open(task.tree_path)
    right = replace(target, corrupted=target.original, original=target.corrupted)
    return write_tar(corrupted_tree(tree, (right,)), bench.folder / "guess.tar")


@pytest.mark.parametrize("name", BROKEN)
def test_no_guess_at_the_original_can_be_confirmed(bench: Bench, name: str) -> None:
    task = bench.task(name)
    guess = originals(bench, task, bench.target(name))
    assert guess == bench.intake.repository.source.revision, "the guess is the original tree"
    public = public_digests(task)
    assert guess not in public
    assert not public & set(derived(task, guess))
    assert task.source.revision != guess


@pytest.mark.parametrize("kind", ["sdist", "git"])
def test_a_revision_that_is_no_hash_of_the_tree_stays(bench: Bench, kind: str) -> None:
    source = Source(kind, "shop", "1.0", "/somewhere")
    assert public_source(SECRET, source) == Source(kind, "shop", "1.0")


def test_the_public_part_holds_nothing_that_the_id_hides(bench: Bench) -> None:
    task = bench.task()
    sealed = read_answer(task).seal
    assert sealed is not None
    pack_task(task.folder, bench.folder / "public.tar.zst", with_answer=False)
    alone = unpack_task(bench.folder / "public.tar.zst", bench.folder / "alone")
    assert not (alone.folder / "answer").exists()
    public = public_text(alone)
    hidden = (sealed.salt, sealed.content_sha256, sealed.source_revision, "discount(", "prices.py::discount")
    assert [text for text in hidden if text in public] == []
    files = [file.read_bytes() for file in task.folder.rglob("*") if file.is_file()]
    assert not any(SECRET in data or SECRET.hex().encode() in data for data in files), (
        "a task holds no secret"
    )


def test_the_tree_is_packed_as_if_nothing_had_been_replaced(bench: Bench) -> None:
    task = bench.task()
    lay_out(SourceTree.open(task.tree_path), bench.folder / "laid")
    assert write_tree(bench.folder / "laid", bench.folder / "again.tar") == task.tree_sha256
    with tarfile.open(task.tree_path) as tar:
        members = tar.getmembers()
    assert {(member.mtime, member.uid, member.gid, member.mode) for member in members} == {(0, 0, 0, 0o644)}
    assert [member.name for member in members] == sorted(GOOD)


def test_the_failing_tests_of_the_brief_are_in_the_order_of_the_suite(bench: Bench) -> None:
    failing = [failure.id for failure in bench.task().brief.failing]
    assert failing == [id for id in CHECKS if id in failing]


# Equal content


def test_the_same_secret_gives_the_same_id_and_another_one_the_same_content(bench: Bench) -> None:
    one, same = bench.task(into="one"), bench.task(into="same")
    other, alone = bench.task(secret=OTHER, into="other"), bench.task(secret=None, into="alone")
    assert one.id == same.id
    assert len({one.id, other.id, alone.id}) == 3
    assert len({one.source.revision, other.source.revision, alone.source.revision}) == 3
    assert len({content_sha256(task) for task in (one, same, other, alone)}) == 1
    assert bench.task("shop/stock/shelf.py::capacity", into="one").source == one.source
    sealed = read_answer(one).seal
    assert sealed is not None
    assert sealed.source_revision == bench.intake.repository.source.revision


def test_what_is_here_is_found_by_its_content(bench: Bench) -> None:
    announced: list[str] = []
    first = bench.task()
    proof = bench.proof(bench.target("shop/prices.py::discount"))
    into = bench.folder / "tasks"
    for secret in (OTHER, None):
        again = write_proven(
            bench.intake, proof, Mode.DISCOVERY, "fake", into, secret=secret, announce=announced.append
        )
        assert again == first
    assert announced == []
    assert bench.task("shop/stock/shelf.py::capacity").id != first.id


def test_a_task_from_before_is_found_by_its_id_and_stays(bench: Bench) -> None:
    task = bench.task(into="new")
    sealed = read_answer(task).seal
    assert sealed is not None
    old = bench.folder / "tasks" / sealed.content_sha256
    shutil.copytree(task.folder, old)
    document = tomllib.loads((old / "task.toml").read_text())
    del document["salt_sha256"]
    document |= {"version": 1, "id": sealed.content_sha256}
    document["source"]["revision"] = sealed.source_revision
    (old / "task.toml").write_text(tomli_w.dumps(document))
    assert bench.task().id == sealed.content_sha256
    assert content_sha256(read_task(old)) == content_sha256(task) == sealed.content_sha256


def test_removals_have_no_salt(bench: Bench) -> None:
    task = bench.task(mode=Mode.REMOVE)
    assert (task.salt_sha256, read_answer(task).seal) == ("", None)
    assert task.source.revision == bench.intake.repository.source.revision
    assert content_sha256(task) == task.id
    assert tomllib.loads(public_text(task))["version"] == 1


def test_a_task_under_another_id_is_told_and_left_out_where_each_counts_once(bench: Bench) -> None:
    notes: list[str] = []
    services = build_services(bench.folder / "home")
    store = services.tasks
    store.note = notes.append
    tasks = [bench.task(into="one"), bench.task(secret=OTHER, into="other")]
    for n, task in enumerate(tasks):
        pack_task(task.folder, bench.folder / f"{n}.tar.zst")
        store.add(bench.folder / f"{n}.tar.zst")
    assert notes == [
        f"1.tar.zst: {tasks[1].short_id} is the same task as {tasks[0].short_id}, which is here under another id."
    ]
    found = [task for task in store.tasks() if not isinstance(task, BrokenTask)]
    rows = [row for row in store.listed() if not isinstance(row, BrokenTask)]
    assert repeated(rows, store.content_sha256) == {rows[1].id: rows[0]}
    assert [task.id for task in found] == sorted(task.id for task in tasks)
    assert repeated(found, content_sha256) == {found[1].id: found[0]}
    assert len(read_set([], store).tasks) == 2
    once = read_set([], store, distinct=True)
    assert [task.id for task in once.tasks] == [found[0].id]
    assert "under another id" in once.problems[0]


# Verification


def changed(task: Task, part: str, key: str, value: Any) -> None:
    """Change a key of `task.toml` or of the answer; None deletes it."""
    if part == "public":
        file = task.folder / "task.toml"
        document = tomllib.loads(file.read_text())
        write = tomli_w.dumps
    else:
        file = task.folder / "answer" / "answer.json"
        document = json.loads(file.read_text())
        write = json.dumps
    *tables, name = key.split(".")
    place = document
    for table in tables:
        place = place[table]
    if value is None:
        del place[name]
    else:
        place[name] = value
    file.write_text(write(document))


@pytest.mark.parametrize(
    ("part", "key", "value", "told"),
    [
        ("public", "id", "a" * 64, "'id' does not match"),
        ("public", "salt_sha256", "a" * 64, "'salt_sha256' does not match"),
        ("public", "salt_sha256", "short", "'salt_sha256' must be 64"),
        ("public", "salt_sha256", None, "'version' is 3"),
        ("public", "version", 1, "'version' is 1"),
        ("public", "source.revision", "b" * 64, "'id' does not match"),
        ("public", "source.kind", "git", "'id' does not match"),
        ("answer", "seal.salt", "a" * 64, "'salt_sha256' does not match"),
        ("answer", "seal.salt", "no digits", "'seal.salt' must be 64"),
        ("answer", "seal.content_sha256", "a" * 64, "'seal.content_sha256' does not match"),
        ("answer", "seal.source_revision", "b" * 64, "'seal.content_sha256' does not match"),
        ("answer", "seal.source_revision", None, "'seal.source_revision' is missing"),
        ("answer", "seal", None, "'seal' is missing"),
    ],
)
def test_what_does_not_fit_the_id_is_told_by_its_key(
    bench: Bench, part: str, key: str, value: Any, told: str
) -> None:
    task = bench.task()
    changed(task, part, key, value)
    with pytest.raises(TaskError, match=re.escape(told)):
        read_task(task.folder)


def test_another_corrupted_function_does_not_verify(bench: Bench) -> None:
    task = bench.task()
    document = json.loads((task.folder / "answer" / "answer.json").read_text())
    document["targets"][0]["qualname"] = "Basket.total"
    (task.folder / "answer" / "answer.json").write_text(json.dumps(document))
    with pytest.raises(TaskError, match="content_sha256"):
        read_task(task.folder)


def test_without_the_answer_the_commitment_stays_to_be_checked(bench: Bench) -> None:
    task = bench.task()
    shutil.move(task.folder / "answer", bench.folder / "kept")
    assert read_task(task.folder).salt_sha256 == task.salt_sha256
    assert content_sha256(task) == ""
    shutil.move(bench.folder / "kept", task.folder / "answer")
    assert read_task(task.folder) == task


def test_the_check_of_a_task_verifies_the_salt(bench: Bench) -> None:
    task = bench.task()
    answer = read_answer(task)
    judge = RepairJudge(task, answer, FakeRunner(CHECKS))
    assert next(check_task(judge, answer)).passed
    forged = replace(answer, seal=replace(answer.seal, salt="a" * 64)) if answer.seal else answer
    with pytest.raises(TaskError, match="salt_sha256"):
        next(check_task(judge, forged))


def test_a_task_of_the_third_version_is_read(tmp_path: Path, bench: Bench) -> None:
    made = bench.task()
    place = tmp_path / "golden"
    shutil.copytree(GOLDEN, place)
    (place / "workspace").mkdir()
    shutil.copy(made.tree_path, place / "workspace" / "tree.tar")
    task = read_task(place)
    assert task.id == made.id
    assert dict(document_of(place)) == dict(document_of(made.folder))


def document_of(folder: Path) -> Mapping[str, Any]:
    """Return a task file's declarations, without those that depend on the machine or the brief's version."""
    document = tomllib.loads((folder / "task.toml").read_text())
    del document["suite"], document["brief"]["template"], document["brief"]["template_sha256"]
    return document
