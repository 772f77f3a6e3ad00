"""Confirms passes on a backend, with the suite in one process and the submission in another.

The public names are in this module; the modules in this package are private.
"""

from gistpoint.sandbox.confirmation.confirming import SandboxConfirmer, confirmer_on
from gistpoint.sandbox.confirmation.trial import ForgeryTrial

__all__ = ["ForgeryTrial", "SandboxConfirmer", "confirmer_on"]
