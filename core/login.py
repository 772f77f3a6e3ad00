"""The name of the user of this process, under which reviews and answers are kept unless another is given."""

from __future__ import annotations

import os


def login_name() -> str:
    """Return the user's login name, or `uid-1000` for a user without one, as in many containers."""
    import getpass  # most commands need no name

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the second from Python 3.13 on
        return f"uid-{os.getuid()}"
