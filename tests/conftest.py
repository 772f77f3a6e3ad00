"""How property tests run, and which backends the contract was tried on."""

from __future__ import annotations

import gc
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples import load_profile
from warm_homes import share

load_profile()

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""Compiled files are kept: without them, compiling is most of what a worker and each program under test do.
"""

os.environ["TZ"] = "UTC"
time.tzset()
"""Screens show local time, and pictures of them are the same everywhere."""

os.environ["GISTPOINT_CONFIRM"] = "no"
"""Making a task or passing one costs a few runs more; tests of the confirmation make what confirms
themselves.
"""

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""Regressions of studies are small: threads beside each worker spin longer than they compute. Read when
numpy is imported, so it stands before everything that does.
"""

gc.set_threshold(50_000, 20, 50)
"""Tests and their modules are a million objects that live to the end. With Python's thresholds, to look
through them for garbage is a third of collecting the tests, and a quarter of driving an app.
"""

RELEASE = ("contract", "corpora", "docker_backend", "e2e", "hazards", "integration")
"""Folders of what only a release needs: each sandbox, servers, whole libraries and programs (decision 125).

The gate runs them too.
"""

_TESTS = Path(__file__).parent
_LONG_ID = 200
_CONTRACT = re.compile(r"tests/contract/.*\[(?:[^]]*-)?(bwrap|docker|landlock|plain)[]-]")


@pytest.fixture(scope="session", autouse=True)
def _own_config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the key that tags heads of journals out of the config folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_cache_for_all_homes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Let all homes and workers share what each would make for itself, and what is the same in all."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent  # a worker's own folder is below that of the session
    with pytest.MonkeyPatch.context() as patch:
        share(folder, patch)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which the gate runs everything."""
    parser.addoption(
        "--whole", action="store_true", help=f"run what only a release needs too: {', '.join(RELEASE)}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run all that a command names, by its folder, file, test or marker."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if named or config.option.markexpr or config.option.keyword:
        config.option.whole = True  # before workers are started, which are given the same options


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is no such hook
def pytest_xdist_auto_num_workers() -> int | None:
    """Run one worker more than there are cores, as the gate does: many tests wait more than they compute."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) + 1


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of what only a release needs, unless the command asks for it."""
    left_out = not config.option.whole and collection_path.parent == _TESTS
    return True if left_out and collection_path.name in RELEASE else None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is left out."""
    return None if config.option.whole else f"left out, for --whole to run: {', '.join(RELEASE)}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give those tests of a file that share something to one worker: else each worker makes it again."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None and _shares_something(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _shares_something(item: pytest.Item) -> bool:
    """Whether a test is given something that is made once a module, by a fixture of ours."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    return any(fixture.scope == "module" and fixture.baseid for fixture in fixtures)


def pytest_collection_finish() -> None:
    """Let the garbage collector look no more at what is there before the first test."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten the id of a test that is given a long text: workers exchange the ids, and reports print them."""
    if isinstance(val, str | bytes) and len(val) > _LONG_ID:
        return f"{val[:_LONG_ID]!a} and {len(val) - _LONG_ID} more"
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which backends the contract's tests ran on."""
    ran = {
        found[1]
        for report in terminalreporter.stats.get("passed", [])
        if (found := _CONTRACT.match(report.nodeid))
    }
    if ran:
        terminalreporter.write_line(f"sandbox contract ran against: {', '.join(sorted(ran))}")
