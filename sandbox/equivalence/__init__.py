"""Compares two versions of a function on recorded and varied inputs.

The public name is in this module; the modules in this package are private.
"""

from gistpoint.sandbox.equivalence.comparing import SandboxEquivalenceTester

__all__ = ["SandboxEquivalenceTester"]
