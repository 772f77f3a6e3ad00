"""A terminal workbench for repository-level coding tasks."""

from pathlib import Path

__version__ = "0.1.0.dev0"
try:  # only what was built has this module (decision 188)
    import gistpoint._version as _built  # pyright: ignore[reportMissingImports]
except ImportError:
    pass
else:
    __version__ = _built.__version__

if not (Path(__file__).parent / "core").is_dir():
    raise ImportError(
        "gistpoint was unpacked without its symbolic links: src/gistpoint/core and its siblings are no"
        " folders here. Clone it again with `git clone -c core.symlinks=true` (Windows: in developer mode),"
        " or unpack a tar archive instead of a zip file."
    )
