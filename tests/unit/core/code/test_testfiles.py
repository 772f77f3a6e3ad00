import pytest

from gistpoint.core.code.testfiles import is_protected, is_test_path


@pytest.mark.parametrize(
    "path",
    [
        "tests/helper.py", "pkg/test/data.txt", "pkg/testing/a.py", "Tests/a.py", "test_a.py", "src/test_a.py",
        "a_test.py", "conftest.py", "pkg/conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml",
        "./tests/a.py",
    ],
)  # fmt: skip
def test_files_of_the_suite(path: str) -> None:
    assert is_test_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "latest.py", "contest/a.py", "src/pytest_plugin/a.py", "attest/testify.py", "testing.py", "tests.py",
        "a_test.txt", "pkg/tests_data/a.py", "my_conftest.py", "setup.py", "", "fastest/protest.py", "tested/a.py",
    ],
)  # fmt: skip
def test_a_part_of_a_name_makes_no_test(path: str) -> None:
    assert not is_test_path(path)


def test_a_collected_file_is_protected_whatever_its_name() -> None:
    collected = frozenset({"pkg/checks.py"})
    assert is_protected("pkg/checks.py", collected)
    assert is_protected("./pkg/checks.py", collected)
    assert is_protected("conftest.py", collected)
    assert not is_protected("pkg/core.py", collected)
