"""Build the wheel by pyproject.toml, and write its version into it as a module.

The version is that of the git tags (setuptools-scm). It is not written into the clone, where it would be that
of an earlier commit; a clone has `__version__` of `src/gistpoint/__init__.py` (decision 188).
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithVersion(build_py):
    """Copies the package and writes `gistpoint/_version.py`, except for an editable installation."""

    def run(self) -> None:
        """Copy and write."""
        super().run()
        if not self.editable_mode:
            text = (
                f'"""Written when this was built."""\n\n__version__ = "{self.distribution.get_version()}"\n'
            )
            Path(self.build_lib, "gistpoint", "_version.py").write_text(text, encoding="utf-8")


setup(cmdclass={"build_py": BuildWithVersion})
