"""A terminal workbench for repository-level coding tasks."""

from pathlib import Path

try:  # only what was built has this module (decision 188)
    from gistpoint._version import __version__ as __version__  # pyright: ignore[reportMissingImports]
except ImportError:
    __version__ = "0.1.0.dev0"

if not (Path(__file__).parent / "core").is_dir():
    raise ImportError(
        "gistpoint was unpacked without its symbolic links: src/gistpoint/core and its siblings are no"
        " folders here. Clone it again with `git clone -c core.symlinks=true` (Windows: in developer mode),"
        " or unpack a tar archive instead of a zip file."
    )
