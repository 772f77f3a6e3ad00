"""Reference gists: one file with the code that an entrypoint ran, bundled and then reduced.

The public names are in this module; the modules inside are private (decision 70).
"""

from gistpoint.core.kinds.gist.reference.limits import limits_of
from gistpoint.core.kinds.gist.reference.making import (
    Breadth,
    NoReferenceError,
    flat_gist,
    make_reference,
    pasted,
    undefined_names,
)
from gistpoint.core.kinds.gist.reference.modules import Codebase
from gistpoint.core.kinds.gist.reference.reduction import OracleVerdict

__all__ = [
    "Breadth",
    "Codebase",
    "NoReferenceError",
    "OracleVerdict",
    "flat_gist",
    "limits_of",
    "make_reference",
    "pasted",
    "undefined_names",
]
