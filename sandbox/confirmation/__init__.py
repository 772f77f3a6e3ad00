"""Confirming passes on a backend: the suite in one process, the submission in another.

The public names are in this module; the modules inside are private.
"""

from gistpoint.sandbox.confirmation.confirming import SandboxConfirmer, confirmer_on

__all__ = ["SandboxConfirmer", "confirmer_on"]
