"""Runs the command line: `python -m gistpoint`."""

from gistpoint.tui.cli import main

raise SystemExit(main())
