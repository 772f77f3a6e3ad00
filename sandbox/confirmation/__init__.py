"""Confirms passes on a backend, with the suite in one process and the submission in another.

The public names are in this module; the modules in this package are private.
"""

from gistpoint.sandbox.confirmation.confirming import SandboxConfirmer, confirmer_on

__all__ = ["SandboxConfirmer", "confirmer_on"]
