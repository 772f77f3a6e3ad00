"""The name of this process's user, under which reviews and answers are stored by default."""

from __future__ import annotations

import os


def login_name() -> str:
    """Return the user's login name, or `uid-1000` for a user without one, as in many containers."""
    import getpass  # most commands need no name

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 and later raise the second
        return f"uid-{os.getuid()}"
