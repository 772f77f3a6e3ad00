from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from gistpoint.core.errors import SourceError
from gistpoint.sandbox.environments.sdists import unpack
from gistpoint.sandbox.environments.sources import Fetcher

if shutil.which("git") is None:
    pytest.skip("needs git", allow_module_level=True)

import git


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_an_sdist_is_fetched_without_running_its_code(shelf, tmp_path):
    trap = tmp_path / "trap"
    setup = f"open({str(trap)!r}, 'w').close()\n"
    shelf.sdist("thing", "2.0", {"setup.py": setup, "thing.py": "x = 1\n", "tests/test_thing.py": ""})
    source, folder = Fetcher().fetch("thing==2.0", tmp_path / "into")
    assert (source.kind, source.name, source.revision) == ("sdist", "thing", "2.0")
    assert files_below(folder) == {"PKG-INFO", "setup.py", "thing.py", "tests/test_thing.py"}
    assert not trap.exists()


def test_an_sdist_that_is_not_there(shelf, tmp_path):
    shelf.wheel("only", "1.0")
    with pytest.raises(
        SourceError, match=r"only==3.0 can't be found: there is no version of only==3.0\. Check"
    ):
        Fetcher().fetch("only==3.0", tmp_path / "a")
    with pytest.raises(SourceError, match="no source distribution"):
        Fetcher().fetch("only==1.0", tmp_path / "b")


def test_a_folder_is_copied_and_named_by_its_content(write, tmp_path):
    folder = write(
        {
            "pyproject.toml": '[project]\nname = "thing"\n',
            "a.py": "x\n",
            "__pycache__/a.pyc": "",
            ".git/x": "",
        }
    )
    source, copy = Fetcher().fetch(str(folder), tmp_path / "one")
    assert (source.kind, source.name) == ("folder", "thing")
    assert files_below(copy) == {"pyproject.toml", "a.py"}
    assert Fetcher().fetch(str(folder), tmp_path / "two")[0].revision == source.revision
    (folder / "a.py").write_text("y\n")
    assert Fetcher().fetch(str(folder), tmp_path / "three")[0].revision != source.revision
    assert (copy / "a.py").read_text() == "x\n"


@pytest.fixture
def repository(write):
    folder = write({"mod.py": "first\n", ".gitattributes": "tests export-ignore\n", "tests/test_x.py": "t\n"})
    repository = git.Repo.init(folder, initial_branch="main")
    author = git.Actor("somebody", "somebody@example.org")
    repository.git.add("--all")
    first = repository.index.commit("one", author=author, committer=author).hexsha
    (folder / "mod.py").write_text("second\n")
    repository.git.add("--all")
    repository.index.commit("two", author=author, committer=author)
    repository.create_tag("v2")
    (folder / "mod.py").write_text("not committed\n")
    hook = folder / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {folder}/hooked\n")
    hook.chmod(0o755)
    return folder, first


def test_a_git_repository_at_a_commit(repository, tmp_path):
    folder, first = repository
    source, copy = Fetcher().fetch(f"{folder}@{first[:10]}", tmp_path / "one")
    assert (source.kind, source.name, source.revision) == ("git", "repository", first)
    assert files_below(copy) == {"mod.py", ".gitattributes", "tests/test_x.py"}
    assert (copy / "mod.py").read_text() == "first\n"
    _, tagged = Fetcher().fetch(f"git+file://{folder}@v2", tmp_path / "two")
    assert (tagged / "mod.py").read_text() == "second\n"
    assert not (folder / "hooked").exists()


def test_settings_of_a_git_repository_run_nothing(repository, tmp_path, monkeypatch):
    folder, first = repository
    (folder / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (folder / "link").symlink_to("/etc/passwd")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
    program.chmod(0o755)
    opened = git.Repo(folder)
    opened.git.add("--all")
    author = git.Actor("somebody", "somebody@example.org")
    commit = opened.index.commit("three", author=author, committer=author, skip_hooks=True).hexsha
    with opened.config_writer() as writer:
        for section, key in (
            ("core", "fsmonitor"), ("core", "sshCommand"), ("core", "pager"), ("core", "alternateRefsCommand"),
            ("core", "editor"), ("core", "gitProxy"), ("credential", "helper"), ("uploadpack", "packObjectsHook"),
            ('filter "evil"', "smudge"), ('filter "evil"', "clean"), ('filter "evil"', "process"),
            ('diff "evil"', "textconv"), ("gpg", "program"), ('remote "origin"', "uploadpack"),
        ):  # fmt: skip
            writer.set_value(section, key, str(program))
        writer.set_value("core", "hooksPath", str(tmp_path))
    opened.close()
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        (tmp_path / hook).symlink_to(program)
    _, copy = Fetcher().fetch(f"{folder}@{commit}", tmp_path / "one")
    assert (copy / "mod.py").read_text() == "not committed\n"
    assert not (copy / "link").is_symlink()
    assert Fetcher().fetch(f"{folder}@{first}", tmp_path / "two")[0].revision == first
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("commit", ["0" * 40, "no-such", "--upload-pack=touch"])
def test_a_commit_that_is_not_there(repository, tmp_path, commit):
    with pytest.raises(SourceError):
        Fetcher().fetch(f"{repository[0]}@{commit}", tmp_path / "one")


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("git+{folder}@nosuchrev", "fatal: Needed a single revision"),
        ("git+{folder}/nowhere@HEAD", "fatal: repository '{folder}/nowhere' does not exist"),
        ("git+ssh://-oProxyCommand=touch/y@HEAD", "fatal: strange hostname '-oProxyCommand=touch' blocked"),
    ],
)
def test_why_git_fails_is_told_in_its_own_words(repository, tmp_path, place, told):
    given = place.format(folder=repository[0])
    with pytest.raises(SourceError) as caught:
        Fetcher().fetch(given, tmp_path / "one")
    assert caught.value.message == f"{given} is not available: {told.format(folder=repository[0])}"
    assert "`git clone`" in caught.value.hint


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "git printed nothing."),
        ("Cloning into '/x'...\n", "git printed nothing."),
        ("Cloning into '/x'...\nPermission denied (publickey).\nfatal: Could not read from remote.\n\nPlease look\n",
         "Permission denied (publickey).; fatal: Could not read from remote."),
        ("fatal: detected dubious ownership\nTo add an exception, call:\n\n\tgit config\nfatal: Could not read\n",
         "fatal: detected dubious ownership"),
        ("it is\nbroken\n", "it is; broken"),
    ],
)  # fmt: skip
def test_of_what_git_says_the_first_cause_is_told(monkeypatch, tmp_path, said, told):
    def refuse(*_, **__):
        raise git.GitCommandError(["git", "clone"], 128, said.encode())

    monkeypatch.setattr(git.Repo, "clone_from", refuse)
    with pytest.raises(SourceError) as caught:
        Fetcher().fetch("git+/somewhere@HEAD", tmp_path / "one")
    assert caught.value.message == f"git+/somewhere@HEAD is not available: {told}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://host/y.tar.gz", "An address must be that of a git repository, with a commit"),
        ("{file}", "It is a file, but a source is a folder"),
        ("./nowhere", "There is no such folder"),
        ("~nobody-of-this-name/x", "There is no such folder"),
        ("name", "The version of the package is missing"),
    ],
)
def test_what_is_no_source_is_told_what_it_lacks(tmp_path, text, said):
    (tmp_path / "y.tar.gz").write_bytes(b"")
    with pytest.raises(SourceError) as caught:
        Fetcher().fetch(text.format(file=tmp_path / "y.tar.gz"), tmp_path / "into")
    assert caught.value.message.startswith(said)
    assert caught.value.hint.startswith("Give `name==version` of a package, a folder, or")


@pytest.mark.parametrize(
    "text", ["", "name", "./nowhere", "@x", "git+@x", "thing==", "a b==1", "ext::sh -c touch% x@y"]
)
def test_what_is_no_source(tmp_path, text):
    with pytest.raises(SourceError) as caught:
        Fetcher().fetch(text, tmp_path / "into")
    assert caught.value.hint


def tar_with(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o4755
    return info


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out", "a\\..\\out"])
def test_paths_that_lead_out(tmp_path, name):
    with pytest.raises(SourceError, match="leads out"):
        unpack(tar_with(tmp_path / "x.tar.gz", (entry(name), b"x")), tmp_path / "into" / "deep")
    assert not (tmp_path / "into" / "out").exists()


def test_links_and_devices(tmp_path):
    archive = tar_with(
        tmp_path / "x.tar.gz",
        (entry("top/real"), b"data"),
        (entry("top/inner", tarfile.SYMTYPE, "real"), b""),
        (entry("top/outer", tarfile.SYMTYPE, "../../secret"), b""),
        (entry("top/absolute", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (entry("top/d/e", tarfile.SYMTYPE, "../.."), b""),
        (entry("top/d/trick", tarfile.SYMTYPE, "e/../secret"), b""),
        (entry("top/through", tarfile.SYMTYPE, ".."), b""),
        (entry("top/fifo", tarfile.FIFOTYPE), b""),
        (entry("top/device", tarfile.CHRTYPE), b""),
    )
    folder = unpack(archive, tmp_path / "into")
    root = folder.parent.resolve()
    assert (folder / "inner").read_text() == "data"
    assert not any(
        (folder / name).is_symlink() or (folder / name).exists()
        for name in ("outer", "absolute", "fifo", "device")
    )
    assert all(path.resolve().is_relative_to(root) for path in folder.rglob("*"))
    assert (folder / "real").stat().st_mode & 0o7777 == 0o755


def test_a_file_is_not_written_through_a_link(tmp_path):
    (tmp_path / "outside").mkdir()
    archive = tar_with(
        tmp_path / "x.tar.gz",
        (entry("top/link", tarfile.SYMTYPE, "../../outside"), b""),
        (entry("top/link/file"), b"x"),
    )
    unpack(archive, tmp_path / "into")
    assert list((tmp_path / "outside").iterdir()) == []


HARD = tarfile.LNKTYPE


@pytest.mark.parametrize(
    "link",
    [
        entry("top/link", HARD, "top/absent"),
        entry("top/link", HARD, "top/link"),
        entry("top/link", HARD, "top/alias"),
        entry("top/link", HARD, "top"),
        entry("top/link", HARD, "../../outside"),
        entry("top/link", HARD, "/etc/passwd"),
        entry("top/link", HARD, ""),
    ],
)
def test_a_hard_link_to_what_is_not_there_is_a_sentence(tmp_path, link):
    alias = entry("top/alias", tarfile.SYMTYPE, "loop")
    loop = entry("top/loop", tarfile.SYMTYPE, "alias")
    archive = tar_with(
        tmp_path / "x.tar.gz", (entry("top/real"), b"x"), (alias, b""), (loop, b""), (link, b"")
    )
    with pytest.raises(SourceError, match=r"hard link|leads out"):
        unpack(archive, tmp_path / "into")


def test_a_hard_link_is_a_copy(tmp_path):
    links = (entry("./top/same", HARD, "top/real"), b""), (entry("top/real", HARD, "top/real"), b"")
    folder = unpack(tar_with(tmp_path / "x.tar.gz", (entry("top/real"), b"data"), *links), tmp_path / "into")
    assert (folder / "real").read_text() == (folder / "same").read_text() == "data"
    assert (folder / "same").stat().st_nlink == 1
    assert (folder / "same").stat().st_mode & 0o7777 == 0o755


def test_copies_by_hard_links_count(tmp_path):
    links = [(entry(f"./top/{n}", HARD, "top/real"), b"") for n in range(20)]
    archive = tar_with(tmp_path / "x.tar.gz", (entry("top/real"), bytes(100)), *links)
    with pytest.raises(SourceError, match="when unpacked"):
        unpack(archive, tmp_path / "into", most_bytes=1000)
    assert len(list((tmp_path / "into").rglob("*"))) < 12


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_of_an_archive_with_too_many_files_none_is_written(tmp_path, kind):
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            for n in range(101):
                archive.writestr(f"top/{n}", "")
    else:
        tar_with(tmp_path / "x.tar.gz", *((entry(f"top/{n}"), b"") for n in range(101)))
    with pytest.raises(SourceError, match=r"when unpacked|more than 100 members"):
        unpack(tmp_path / f"x.{kind}", tmp_path / "into", most_files=100)
    assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize("mode", ["w:gz", "w:bz2", "w:xz", "w"])
def test_a_damaged_archive_is_a_sentence(tmp_path, mode):
    with tarfile.open(tmp_path / "x", mode) as archive:
        archive.addfile(entry("top/real"), io.BytesIO(b""))
    whole = (tmp_path / "x").read_bytes()
    refused = 0
    for damage in range(min(len(whole), 180)):
        (tmp_path / "x").write_bytes(whole[:damage] + bytes([whole[damage] ^ 0xFF]) + whole[damage + 1 :])
        try:
            folder = unpack(tmp_path / "x", tmp_path / f"into-{damage}")
        except SourceError as error:
            told = error.message
            assert told.startswith("x can't be unpacked: ")
            assert told.endswith(".")
            refused += 1
        else:  # the damage is in a byte that means nothing here, such as a time
            assert [(file.name, file.read_bytes()) for file in folder.iterdir()] == [("real", b"")]
    assert refused > 60


def test_zip_archives_and_damaged_ones(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("thing-1/a.py", "x")
    assert (unpack(tmp_path / "x.zip", tmp_path / "one") / "a.py").read_text() == "x"
    (tmp_path / "bad.tar.gz").write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(SourceError, match="can't be unpacked"):
        unpack(tmp_path / "bad.tar.gz", tmp_path / "two")
