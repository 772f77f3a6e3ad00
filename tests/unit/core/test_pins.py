from __future__ import annotations

import re
from dataclasses import replace

import pytest
from _pytest.config import get_config
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.pins import EnvironmentPins, LockLine, _options_in, fault_in, quoted, read_lock_line

HASH = " --hash=sha256:" + "0af9" * 16
GOOD = EnvironmentPins(
    python="3.11", lock=(f"pytest==8.4.2{HASH}",), import_roots=("src", "."), plugins=("a.b", "c d")
)

LINES = (
    f"pytest==8.4.2{HASH}",
    f"zope.interface==7.0.post1+local.1{HASH}{HASH}",
    f"colorama==0.4.6 ; sys_platform == 'win32'{HASH}",
    f'x==1!2.0rc1 ; (python_version < "3.8" and os_name=="nt") or extra == "a b"{HASH}',
)
NO_LINES = (
    "",
    "pytest==8.4.2",
    f"pytest{HASH}",
    f"pytest>=8{HASH}",
    f"pytest===8.4.2{HASH}",
    f"pytest==8.*{HASH}",
    f"pytest[dev]==8.4.2{HASH}",
    f"pytest == 8.4.2{HASH}",
    f" pytest==8.4.2{HASH}",
    f"pytest==8.4.2{HASH} ",
    f"pytest==8.4.2{HASH}\n",
    f"pytest==8.4.2{HASH}\r",
    f"pytest==8.4.2{HASH}\nevil @ http://127.0.0.1/x.tar.gz",
    f"pytest==8.4.2\n{HASH}",
    f"pytest==8.4.2 \\\n{HASH}",
    f"pytest==8.4.2\t{HASH}",
    f"pytest==8.4.2\u2028{HASH}",
    f"pytest==8.4.2{HASH} --index-url=http://127.0.0.1",
    f"pytest==8.4.2 --index-url=http://127.0.0.1{HASH}",
    f"pytest==8.4.2 # comment{HASH}",
    f"pytest==8.4.2 ; os_name == 'a --index-url b'{HASH}",
    f"pytest==8.4.2 ; os_name == '\n-r x'{HASH}",
    f"pytest==8.4.2 ; os_name == '\\n-r x'{HASH}",
    f"pytest==8.4.2 ; os_name == '${{HOME}}'{HASH}",
    f"pytest==8.4.2 ;{HASH}",
    f"pytest==8.4.2 --hash=md5:{'0' * 32}",
    f"pytest==8.4.2 --hash=sha256:{'0' * 63}",
    f"pytest==8.4.2 --hash=sha256:{'0' * 65}",
    f"evil @ http://127.0.0.1:18766/setup.tar.gz{HASH}",
    f"evil @ file:///tmp/x.whl{HASH}",
    f"http://127.0.0.1/x.tar.gz{HASH}",
    f"./x{HASH}",
    f"git+https://example.org/x@main{HASH}",
    f"-e .{HASH}",
    "-r /etc/passwd",
    "-c /etc/passwd",
    "--index-url http://127.0.0.1",
    "--find-links=/tmp",
    "--no-binary=:all:",
    f"-pytest==8.4.2{HASH}",
    f"${{HOME}}==1{HASH}",
    f"pytést==8.4.2{HASH}",
)  # fmt: skip


@pytest.mark.parametrize("text", LINES)
def test_lines_of_a_lock(text):
    line = read_lock_line(text)
    assert line is not None
    assert text.startswith(f"{line.name}=={line.version}")
    assert read_lock_line(str(line)) == line
    assert fault_in(replace(GOOD, lock=(text,))) == ""


@pytest.mark.parametrize("text", NO_LINES)
def test_nothing_else_is_read(text):
    assert read_lock_line(text) is None
    fault = fault_in(replace(GOOD, lock=(*LINES, text)))
    assert "'environment.lock[4]'" in fault
    assert quoted(text) in fault
    assert fault.isprintable()


@given(st.text(alphabet="ab1.=<>!~;()'\" -\\#$\n\t:@/[],_+*ä", max_size=80))
def test_a_line_holds_one_word_before_its_marker_and_hashes_after_it(text):
    line = read_lock_line(text + HASH)
    if line is not None:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._!+-]+", f"{line.name}=={line.version}")
        assert " -" not in text
        assert text.isprintable()
        assert not set("\\#$@/") & set(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000 + "!",
        "a==1 ;" + " python" * 50_000 + "$" + HASH,
        "a==1 ;" + "a" * 200_000 + "$",
        "a==1 ; '" + " a" * 100_000,
        "a==1 ;" + "=" * 200_000 + HASH + "x",
        "a==1" + " " * 200_000,
        "a==1" + HASH * 2_000 + " x",
        "a==" + "1." * 100_000 + "$",
    ],
)
def test_a_long_line_is_refused_soon(text):
    assert read_lock_line(text) is None


@pytest.mark.parametrize(
    "python", ["", "3", "3.11.7", "python3", "/tmp/python3.11", "./python", "3.11 ", "-3.11", ">=3"]
)
def test_a_python_is_a_version(python):
    assert "'environment.python'" in fault_in(replace(GOOD, python=python))


def test_without_a_lock_the_python_may_be_gistpoints_own():
    assert fault_in(EnvironmentPins(python="")) == ""
    assert "'environment.python'" in fault_in(EnvironmentPins(python="/bin/sh"))


@pytest.mark.parametrize("root", ["/", "/tmp", "..", "../x", "src/..", "src/../..", "a:/tmp", "a\0", "a\nb"])
def test_an_import_root_is_inside_the_repository(root):
    assert "'environment.import_roots[1]'" in fault_in(replace(GOOD, import_roots=("src", root)))


@pytest.mark.parametrize("name", ["", "-p", "--co", " x", "a\nb", "a\0"])
def test_a_plugin_is_no_option(name):
    assert "'environment.plugins[0]'" in fault_in(replace(GOOD, plugins=(name,)))


PARSER = get_config()._parser._getparser()
FLAGS = st.sampled_from(("-", "-q", "-xvs", "-l", "-k", "-r"))
LETTERS = st.builds("{}{}".format, FLAGS, st.sampled_from(("c", "p", "o", "q", "m", "W")))
OPTIONS = LETTERS | st.sampled_from(
    ("--config-file", "--rootdir", "--confcutdir", "--override-ini", "--", "--co", "-q")
)
VALUES = st.sampled_from(("there/x", "c/x", "p", "addopts=-qcthere/x", "addopts=-k -pthere", "tests", "-q"))
WORDS = st.one_of(
    st.tuples(OPTIONS, VALUES),
    st.tuples(st.builds("{}{}{}".format, OPTIONS, st.sampled_from(("", "=")), VALUES)),
)


@examples(300)
@given(st.lists(WORDS, max_size=3).map(lambda pairs: [word for pair in pairs for word in pair]))
def test_whatever_pytest_reads_in_its_arguments_is_checked(words: list[str]) -> None:
    try:
        read = vars(PARSER.parse_known_args(words)[0])
    except pytest.UsageError:
        return
    values = [read.get(name) for name in ("inifilename", "rootdir", "confcutdir")] + (
        read.get("plugins") or []
    )
    further = [setting.partition("=") for setting in read.get("override_ini") or []]
    inner = [_options_in(value.split()) for name, _, value in further if name == "addopts"]
    found = {value.removeprefix("=") for value in values if value} | {
        value for one in inner for _, value in one
    }
    assert found <= {value for _, value in _options_in(words)}


def test_what_is_quoted_is_visible_and_short():
    assert quoted("a\x1b[31m\u202eb\n") == "'a␛[31m⇄b␊'"
    assert len(quoted("x" * 10_000)) < 200


def test_a_line_is_written_as_it_was_read():
    line = LockLine("a", "1", ("0" * 64, "1" * 64), "os_name == 'nt'")
    assert str(line) == f"a==1 ; os_name == 'nt' --hash=sha256:{'0' * 64} --hash=sha256:{'1' * 64}"
