"""Cgroups with folders that imitate the kernel's, so that no machine needs a delegated real subtree."""

from __future__ import annotations

import subprocess

import pytest

from gistpoint.sandbox.backends import resources as cgroups
from gistpoint.sandbox.backends.resources import Delegation, bounded, find_delegation
from gistpoint.sandbox.limits import RunLimits


class Tree:
    def __init__(self, folder, controllers="memory pids cpu"):
        self.root = folder / "cgroup"
        self.parent = self.root / "user" / "app.slice"
        (self.parent / "own.scope").mkdir(parents=True)
        (self.parent / "cgroup.procs").write_text("")
        (self.parent / "cgroup.subtree_control").write_text(controllers)
        self.own = folder / "own"
        self.own.write_text("12:memory:/x\n0::/user/app.slice/own.scope\n")


@pytest.fixture
def no_systemd(monkeypatch):
    monkeypatch.setattr(cgroups.shutil, "which", lambda name: None)


def test_a_parent_whose_groups_have_no_limits_is_of_no_use(tmp_path, no_systemd):
    tree = Tree(tmp_path)
    assert not find_delegation(tree.root, tree.own)
    assert [path.name for path in tree.parent.iterdir() if path.name.startswith("gistpoint")] == []


@pytest.mark.parametrize("controllers", ["", "memory", "cpu io"])
def test_a_parent_without_the_controllers(tmp_path, no_systemd, controllers):
    tree = Tree(tmp_path, controllers)
    assert find_delegation(tree.root, tree.own) == Delegation()


@pytest.mark.parametrize("text", ["", "1:memory:/\n", "0::/../../elsewhere/x\n"])
def test_a_machine_without_the_second_version(tmp_path, no_systemd, text):
    tree = Tree(tmp_path)
    tree.own.write_text(text)
    assert find_delegation(tree.root, tree.own) == Delegation()


def test_the_group_of_a_run(tmp_path):
    tree = Tree(tmp_path)
    with bounded(Delegation(tree.parent), RunLimits(memory=123456, processes=5)) as bound:
        (group,) = tree.parent.glob("gistpoint-*")
        assert (group / "memory.max").read_text() == "123456"
        assert (group / "pids.max").read_text() == "21"
        done = subprocess.run(
            [*bound.prefix, "/bin/echo", "a b"], env={}, capture_output=True, text=True, check=True
        )
        assert done.stdout == "a b\n"
        assert int((group / "cgroup.procs").read_text()) > 1
        assert not bound.was_hit()
        (group / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
        assert bound.was_hit()
        for path in group.iterdir():
            path.unlink()  # in the kernel's tree they are not files
    assert not group.exists()


def test_a_scope_gets_the_limits_and_hands_no_environment_on(tmp_path, monkeypatch):
    program = tmp_path / "systemd-run"
    program.write_text(
        '#!/bin/sh\necho "$@" > "$0.told"\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setattr(cgroups.shutil, "which", lambda name: str(program))
    monkeypatch.setattr(cgroups.os, "geteuid", lambda: 1000)
    found = find_delegation(tmp_path / "none", tmp_path / "none")
    assert found.systemd_run == str(program)
    with bounded(found, RunLimits(memory=1 << 20, processes=4)) as bound:
        command = [*bound.prefix, "/usr/bin/env"]
        done = subprocess.run(
            command, env=dict(bound.environment or {}), capture_output=True, text=True, check=True
        )
    assert done.stdout == ""
    assert "MemoryMax=1048576" in (tmp_path / "systemd-run.told").read_text()
    assert "TasksMax=20" in (tmp_path / "systemd-run.told").read_text()


def test_without_a_delegation_nothing_is_put_before_the_command():
    with bounded(Delegation(), RunLimits()) as bound:
        assert bound.prefix == ()
        assert not bound.was_hit()
