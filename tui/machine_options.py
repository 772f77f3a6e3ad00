"""What the commands about this machine can be told."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Run = Callable[[argparse.Namespace], int]


def add_machine_commands(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], command: Callable[[str, str], Run]
) -> None:
    """Add `gistpoint doctor` and `gistpoint cache`."""
    doctor = commands.add_parser(
        "doctor",
        help="say which isolation works here, and what would mend the rest",
        description="Tries each kind of isolation. Exit code 0 if one that isolates works, else 1; with --self-test "
        "also 1 where an attack did not come out as promised.",
    )
    doctor.add_argument("--self-test", action="store_true", help="try the list of attacks against each that works")
    doctor.add_argument(
        "--withdraw-consent", action="store_true", help="take back the consent to run code without isolation"
    )
    doctor.add_argument("--sandbox", metavar="BACKEND", default=None, help="as if it were asked for")
    doctor.add_argument("--json", action="store_true", help="as JSON")
    doctor.set_defaults(run=command("doctor", "doctor"))

    cache = commands.add_parser("cache", help="list or clean what can be built again")
    cache_commands = cache.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = cache_commands.add_parser("list", help="environments, images and leftovers, with their sizes")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(run=command("cache", "listing"))
    clean = cache_commands.add_parser("clean", help="remove them; nothing of a task or an attempt is touched")
    clean.add_argument("--json", action="store_true", help="as JSON")
    clean.set_defaults(run=command("cache", "clean"))
