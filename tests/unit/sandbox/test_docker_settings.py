"""Parts of the Docker backend without an engine: addresses, owners, layers, frames, container settings."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gistpoint.sandbox.backends.docker import containers as owners
from gistpoint.sandbox.backends.docker.backend import DockerBackend
from gistpoint.sandbox.backends.docker.containers import ContainerSettings, host_settings
from gistpoint.sandbox.backends.docker.conversation import (
    BrokenFramesError,
    FollowedRun,
    StreamFrame,
    _take_frame,
    read_frames,
)
from gistpoint.sandbox.backends.docker.engine import Engine, EngineError, find_address, ignored_limits
from gistpoint.sandbox.backends.docker.layers import (
    Entry,
    digest_of,
    folder_entries,
    with_parents,
    write_layer,
)
from gistpoint.sandbox.backends.process import ResultLines, Tail
from gistpoint.sandbox.limits import RunLimits


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "CONTAINER_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    return tmp_path


def add_context(folder: Path, name: str, host: str) -> None:
    place = folder / "contexts" / "meta" / hashlib.sha256(name.encode()).hexdigest()
    place.mkdir(parents=True)
    meta = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": host, "SkipTLSVerify": False}}}
    (place / "meta.json").write_text(json.dumps(meta))


def test_the_usual_socket_without_any_setting(configuration):
    assert find_address({}).url == "unix:///var/run/docker.sock"


def test_settings_count_in_the_order_of_the_docker_command(configuration, monkeypatch):
    add_context(configuration, "remote", "tcp://far:2375")
    add_context(configuration, "other", "tcp://other:2375")
    (configuration / "config.json").write_text('{"currentContext": "remote"}')
    assert find_address({}).url == "tcp://far:2375"
    assert find_address({"DOCKER_CONTEXT": "other"}).url == "tcp://other:2375"
    assert (
        find_address({"DOCKER_CONTEXT": "other", "CONTAINER_HOST": "unix:///p.sock"}).url == "unix:///p.sock"
    )
    both = {"DOCKER_HOST": "tcp://host:2375", "CONTAINER_HOST": "unix:///p.sock", "DOCKER_CONTEXT": "other"}
    assert find_address(both).url == "tcp://host:2375"


def test_a_context_that_does_not_exist_is_never_another_engine(configuration):
    (configuration / "config.json").write_text('{"currentContext": "gone"}')
    with pytest.raises(EngineError, match="no Docker context 'gone'"):
        find_address({})


def test_no_engine_is_said_with_what_to_do(configuration, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    probe = DockerBackend().probe()
    assert not probe.works
    assert f"{tmp_path}/none.sock" in probe.why_not
    assert "DOCKER_HOST" in probe.fix


@pytest.mark.parametrize(
    ("info", "ignored"),
    [
        ({"CgroupDriver": "none"}, ("memory", "processes", "cpus")),
        ({}, ("memory", "processes", "cpus")),
        ({"CgroupDriver": "systemd", "MemoryLimit": True, "PidsLimit": True, "CpuCfsQuota": True}, ()),
        ({"CgroupDriver": "cgroupfs", "MemoryLimit": True, "PidsLimit": False}, ("processes",)),
    ],
)
def test_limits_that_an_engine_ignores(info, ignored):
    assert ignored_limits(info) == ignored


def engine(*ignored: str) -> Engine:
    return Engine(None, "unix:///x", "1", "x86_64", ignored)  # type: ignore[arg-type] # no call is made


def test_a_container_gets_every_limit_that_the_engine_keeps():
    settings = ContainerSettings("image", RunLimits(memory=100 << 20, processes=50), ("control",))
    asked = host_settings(engine(), settings)
    assert (asked["network_mode"], asked["read_only"], asked["cap_drop"]) == ("none", True, ["ALL"])
    assert asked["cap_add"] == ["SETUID", "SETGID", "CHOWN"]
    assert asked["security_opt"] == ["no-new-privileges:true"]
    assert (asked["mem_limit"], asked["memswap_limit"], asked["pids_limit"]) == (100 << 20, 100 << 20, 51)
    assert not {"volumes", "binds", "mounts", "devices", "privileged"} & set(asked)
    assert set(asked["tmpfs"]) == {"/tmp", "/sandbox", "/gistpoint/control"}
    less = host_settings(engine("memory", "processes", "cpus"), settings)
    assert not {"mem_limit", "memswap_limit", "pids_limit", "nano_cpus"} & set(less)


def test_this_program_is_here_and_others_are_gone():
    ours = owners.this_program()
    version, place, boot, pid, began = ours.split("/")
    assert not owners.is_gone(ours)
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert owners.is_gone(f"{version}/{place}/{boot}/{ended.pid}/{began}")
    assert owners.is_gone(f"{version}/{place}/another-boot/{pid}/{began}")
    assert owners.is_gone(f"{version}/{place}/{boot}/{pid}/1")
    for strange in (
        "",
        "x",
        f"v2/{place}/{boot}/1/1",
        f"{version}/elsewhere/{boot}/{ended.pid}/1",
        f"{ours}/more",
    ):
        assert not owners.is_gone(strange)


def test_a_layer_says_all_folders_and_each_path_once(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").write_text("x")
    (tmp_path / "a" / "run").write_text("#!/bin/sh")
    (tmp_path / "a" / "run").chmod(0o700)
    (tmp_path / "a" / "inner").symlink_to("run")
    (tmp_path / "a" / "outer").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "a" / "pipe")
    entries = with_parents([Entry("x/y/c.py", data=b"first"), *folder_entries(tmp_path / "a", "x/y")])
    file = io.BytesIO()
    write_layer(entries, file)
    file.seek(0)
    with tarfile.open(fileobj=file) as archive:
        found = {member.name: (member.type, oct(member.mode), member.uid) for member in archive}
    assert found == {
        "x": (tarfile.DIRTYPE, "0o755", 0),
        "x/y": (tarfile.DIRTYPE, "0o755", 0),
        "x/y/b": (tarfile.DIRTYPE, "0o755", 0),
        "x/y/b/c.py": (tarfile.REGTYPE, "0o644", 0),
        "x/y/c.py": (tarfile.REGTYPE, "0o644", 0),
        "x/y/inner": (tarfile.SYMTYPE, "0o777", 0),
        "x/y/run": (tarfile.REGTYPE, "0o755", 0),
    }


def test_a_digest_follows_content_mode_and_time(tmp_path):
    file = tmp_path / "a"
    file.write_text("1")
    one = digest_of([Entry("a", source=file)])
    assert one == digest_of([Entry("a", source=file)])
    assert (
        len({one, digest_of([Entry("a", 0o755, file)]), digest_of([Entry("a", source=file, modified=1)])})
        == 3
    )
    file.write_text("2")
    assert digest_of([Entry("a", source=file)]) != one


def frames_of(data: bytes) -> list[StreamFrame]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        return list(read_frames(ours))


def block(payload: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


def test_frames_within_blocks_however_they_are_cut():
    inner = b"R\x00\x00\x00\x03abc" + b"O\x00\x00\x00\x00" + b"E\x00\x00\x00\x02{}"
    wanted = [StreamFrame("R", b"abc"), StreamFrame("O"), StreamFrame("E", b"{}")]
    assert frames_of(block(inner)) == wanted
    assert frames_of(b"".join(block(inner[place : place + 1]) for place in range(len(inner)))) == wanted
    assert frames_of(block(b"Traceback", 2) + block(inner)) == [StreamFrame("C", b"Traceback"), *wanted]
    assert frames_of(block(inner)[:-1]) == []
    assert frames_of(b"") == []


@pytest.mark.parametrize("inner", [b"X\x00\x00\x00\x00", b"R\x7f\xff\xff\xff"])
def test_frames_that_the_first_process_never_writes(inner):
    with pytest.raises(BrokenFramesError):
        frames_of(block(inner))


def test_the_sdk_is_not_loaded_before_it_is_used():
    code = (
        "import sys; from gistpoint.sandbox.ladder import builtin_backends; builtin_backends()['docker'](); "
        "assert not {'docker', 'requests', 'urllib3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"exit": "x"}', b"[" * 5_000, b"\xff"])
def test_an_end_of_another_form_is_like_a_stream_that_breaks_off(payload: bytes) -> None:
    followed = FollowedRun(ResultLines(RunLimits(), lambda line: None), Tail(100))
    assert _take_frame(StreamFrame("E", payload), followed)
    assert (followed.stop, followed.exit_code) == (None, None)
    assert "in a form that" in followed.complaint
