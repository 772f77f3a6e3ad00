"""The settings of all tests, the choice of tests, and a report on the backends of the contract."""

from __future__ import annotations

import compileall
import gc
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from examples import load_profile
from warm_homes import share

load_profile()

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""Compiled files are kept, because workers and programs under test would otherwise mostly compile."""

os.environ["TZ"] = "UTC"
time.tzset()
"""Fixed, because screens show local time, and pictures of them must be the same everywhere."""

os.environ["GISTPOINT_CONFIRM"] = "no"
"""Confirmation is off, because it costs a few runs for each task made or passed; its own tests enable it."""

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""One thread, because regressions of studies are small: others would spin longer than they compute.

The variable is read when numpy is imported, so it is set before all such imports.
"""

gc.set_threshold(50_000, 20, 50)
"""The threshold of garbage collection: tests and their modules are a million permanent objects.

With Python's thresholds, searching them takes a third of the time to collect tests, and a quarter of an app's
time.
"""

RELEASE = (
    "contract",
    "corpora",
    "docker_backend",
    "e2e",
    "hazards",
    "integration",
    "screens/flows",
    "simulations",
)
"""The folders of tests that only a release needs: each sandbox, servers, whole libraries (decision 125).

The gate runs them too.
"""

_TESTS = Path(__file__).parent
_LEFT_OUT = {_TESTS / folder for folder in RELEASE}
_LONG_ID = 200
_CONTRACT = re.compile(r"tests/contract/.*\[(?:[^]]*-)?(bwrap|docker|landlock|plain)[]-]")


@pytest.fixture(scope="session", autouse=True)
def _own_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the key that tags journals' heads out of the config folder of the user who runs the tests.

    Each worker has its own, because some tests replace the key.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        if home := os.environ.get("GISTPOINT_HOME"):  # otherwise, all workers would use its config folder
            patch.delenv("GISTPOINT_HOME")
            patch.setenv("XDG_DATA_HOME", str(Path(home, "data")))
            patch.setenv("XDG_CACHE_HOME", str(Path(home, "cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_cache_for_all_homes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Share one cache among all homes and workers, so that its content is made only once."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent  # a worker's own folder is below that of the session
    with pytest.MonkeyPatch.context() as patch:
        share(folder, patch)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which the gate runs all tests."""
    parser.addoption(
        "--whole", action="store_true", help=f"run what only a release needs too: {', '.join(RELEASE)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run all tests if the command names a folder, file, test, marker or keyword; prepare for workers."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if named or config.option.markexpr or config.option.keyword:
        config.option.whole = True  # before workers are started, which are given the same options
    if not config.option.whole:
        os.fsync = lambda descriptor: None  # 20,000 waits for the disk; the gate's tests wait
    if getattr(config.option, "numprocesses", None):
        _compile_once(config)


def _compile_once(config: pytest.Config) -> None:
    """Compile the program and the tests before workers are started; in a new clone, each would compile all."""
    # The files of attacks are read as data, from folders that are listed.
    listed = re.compile(r"/attacks/")
    for folder in ("core", "sandbox", "sessions", "tui"):
        place = _TESTS.parent / "src" / "gistpoint" / folder
        compileall.compile_dir(place, rx=listed, quiet=2, workers=0)
    cores = len(os.sched_getaffinity(0))
    tests = sorted(
        path
        for path in _TESTS.glob("*/**/test_*.py")
        if not any(_is_left_out(folder, config) for folder in path.parents)
    )
    # Forked, because the configuration can't be pickled.
    forked = multiprocessing.get_context("fork")
    parts = [forked.Process(target=_rewrite, args=(tests[first::cores], config)) for first in range(cores)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()


def _rewrite(tests: list[Path], config: pytest.Config) -> None:
    """Rewrite the assertions of test files and keep the result, as pytest does when it imports them.

    pytest has no public function for this. The result is only a cache: a file that fails here is rewritten
    again by the worker that imports it, which also reports why.
    """
    state = config.stash[rewrite.assertstate_key]
    for path in tests:
        kept = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
        if rewrite._read_pyc(path, kept) is not None or not rewrite.try_makedirs(kept.parent):
            continue
        try:
            source_stat, code = rewrite._rewrite_test(path, config)
        except (OSError, SyntaxError, ValueError):
            continue
        rewrite._write_pyc(state, code, source_stat, kept)


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is no such hook
def pytest_xdist_auto_num_workers() -> int | None:
    """Return two workers more than there are cores: tests of screens and sandboxes wait a third of their time.

    The result is None if the environment sets the number.
    """
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) + 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore the folders that only a release needs, unless the command asks for them."""
    return True if _is_left_out(collection_path, config) else None


def _is_left_out(path: Path, config: pytest.Config) -> bool:
    return not config.option.whole and path in _LEFT_OUT


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return a line with the folders that are left out; None if all are run."""
    return None if config.option.whole else f"left out, for --whole to run: {', '.join(RELEASE)}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of a file that share a fixture to one worker; otherwise each worker makes it again."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares_something(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _shares_something(item: pytest.Item) -> bool:
    """Return whether a test uses a module-scoped fixture of these tests."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    return any(fixture.scope == "module" and fixture.baseid for fixture in fixtures)


def pytest_collection_finish() -> None:
    """Exempt all existing objects from garbage collection before the first test."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Return a shortened id for a long text: workers exchange the ids, and reports print them.

    Returns None for any other value.
    """
    if isinstance(val, str | bytes) and len(val) > _LONG_ID:
        return f"{val[:_LONG_ID]!a} and {len(val) - _LONG_ID} more"
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the backends on which tests of the contract passed, if there are any."""
    ran = {
        found[1]
        for report in terminalreporter.stats.get("passed", [])
        if (found := _CONTRACT.match(report.nodeid))
    }
    if ran:
        terminalreporter.write_line(f"sandbox contract ran against: {', '.join(sorted(ran))}")
