"""Failing checks of all judges are noticed, whatever hides the failure, and passing ones are not.

The functions of judges are replaced permanently, so the checks run in a separate process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gistpoint.sandbox.payload import failed_checks

_RIGHT = """
assert 1 == 1
case.assertEqual(1, 1)
case.assertTrue(1)
with case.assertRaises(KeyError): raise KeyError
called.assert_called()
called.assert_called_with(1)
called.assert_called_once_with(1)
called.assert_any_call(1)
called.assert_has_calls([mock.call(1)])
mock.Mock().assert_not_called()
awaited.assert_awaited_once_with(1)
mock.AsyncMock().assert_not_awaited()
numpy.testing.assert_(True)
numpy.testing.assert_equal(1, 1)
assert_equal(1 + 2j, 1 + 2j)
numpy.testing.assert_equal({"a": [1, "b"]}, {"a": [1, "b"]})
numpy.testing.assert_allclose([1.0, 2.0], [1.0, 2.0])
numpy.testing.assert_almost_equal(1.0, 1.0)
numpy.testing.assert_approx_equal(1.0, 1.0)
numpy.testing.assert_array_less([1], [2])
numpy.testing.assert_string_equal("a", "a")
pandas.testing.assert_series_equal(pandas.Series([1]), pandas.Series([1]))
pandas.testing.assert_index_equal(pandas.Index([1]), pandas.Index([1]))
assert_frame_equal(pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [1]}), check_like=True)
"""
_WRONG = """
assert 1 == 2
pytest.fail("no")
with pytest.raises(KeyError): pass
with pytest.warns(UserWarning): pass
case.assertEqual(1, 2)
case.assertTrue(0)
case.fail("no")
with case.assertRaises(KeyError): pass
mock.Mock().assert_called()
mock.Mock().assert_called_once()
mock.Mock().assert_called_with(1)
called.assert_called_with(2)
called.assert_called_once_with(2)
called.assert_not_called()
called.assert_any_call(2)
called.assert_has_calls([mock.call(2)])
called.assert_has_calls([mock.call(2)], any_order=True)
mock.create_autospec(len).assert_called_once_with([])
mock.AsyncMock().assert_awaited()
mock.AsyncMock().assert_awaited_once()
awaited.assert_awaited_with(2)
awaited.assert_any_await(2)
awaited.assert_not_awaited()
numpy.testing.assert_(False)
numpy.testing.assert_equal(1, 2)
assert_equal(1 + 2j, 1 + 3j)
numpy.testing.assert_equal({"a": [1, "b"]}, {"a": [1, "c"]})
numpy.testing.assert_equal(numpy.array([1]), numpy.array([2]))
numpy.testing.assert_allclose([1.0, 2.0], [1.0, 3.0])
numpy.testing.assert_array_equal([1], [1, 2])
numpy.testing.assert_almost_equal(1.0, 2.0)
numpy.testing.assert_array_almost_equal([1.0], [2.0])
numpy.testing.assert_approx_equal(1.0, 2.0)
numpy.testing.assert_array_less([2], [2])
numpy.testing.assert_array_max_ulp(1.0, 2.0)
numpy.testing.assert_string_equal("a", "b")
pandas.testing.assert_series_equal(pandas.Series([1]), pandas.Series([2]))
pandas.testing.assert_series_equal(pandas.Series([1]), [1])
pandas.testing.assert_index_equal(pandas.Index([1]), pandas.Index([2]))
pandas.testing.assert_extension_array_equal(pandas.array([1]), pandas.array([2]))
assert_frame_equal(pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [2]}))
assert_frame_equal(pandas.DataFrame({"a": [1]}), pandas.DataFrame({"b": [1]}), check_like=True)
"""
_MODULE = """
import asyncio, unittest
from unittest import mock
import numpy, pandas, pytest
from numpy.testing import assert_equal
from pandas.testing import assert_frame_equal
case, called, awaited = unittest.TestCase(), mock.Mock(), mock.AsyncMock()
called(1)
asyncio.run(awaited(1))
"""
_RUN = """
import contextlib, importlib.util, io, json, sys
import pytest
class Plugin:
    def pytest_collection_modifyitems(self, items):
        seen = importlib.util.spec_from_file_location("checks", sys.argv[1])
        module = importlib.util.module_from_spec(seen)
        seen.loader.exec_module(module)
        self.found = []
        self.checks = module.FailedChecks(self.found.append)
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item):
        self.checks.begin()
plugin = Plugin()
with contextlib.redirect_stdout(io.StringIO()):
    pytest.main(["-q", "-p", "no:cacheprovider", "test_all.py"], plugins=[plugin])
print(json.dumps(plugin.found))
"""


def _checks(text: str) -> list[str]:
    return text.strip().splitlines()


def _noticed(folder: Path) -> frozenset[str]:
    """Return the checks that are noticed as failed, among those that must hold and those that must not."""
    lines = [*_checks(_MODULE), "def test_all():"]
    places: dict[str, str] = {}
    for check in (*_checks(_RIGHT), *_checks(_WRONG)):
        lines += ["    try:", f"        {check}", "    except BaseException: pass"]
        places[f"a check at test_all.py:{len(lines) - 1}"] = check
    (folder / "test_all.py").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-c", _RUN, failed_checks.__file__]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return frozenset(places[place] for place in json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def noticed(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    return _noticed(tmp_path_factory.mktemp("checks"))


@pytest.mark.parametrize("check", _checks(_WRONG))
def test_a_failed_check_is_noticed(noticed: frozenset[str], check: str) -> None:
    assert check in noticed


@pytest.mark.parametrize("check", _checks(_RIGHT))
def test_a_check_that_holds_is_not(noticed: frozenset[str], check: str) -> None:
    assert check not in noticed
