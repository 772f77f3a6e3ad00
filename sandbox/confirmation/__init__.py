"""Confirming passes on a backend: the suite in one process, the submission in another.

The public name is in this module; the modules inside are private.
"""

from gistpoint.sandbox.confirmation.confirming import SandboxConfirmer

__all__ = ["SandboxConfirmer"]
