"""`gistpoint doctor`: which isolation works here, why the others don't, what would mend them, and what each holds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from gistpoint import __version__
from gistpoint.core.locations import Locations
from gistpoint.core.text import visible
from gistpoint.core.user_settings import read_user_settings
from gistpoint.sandbox.attacks.table import Attack, Expected
from gistpoint.sandbox.attacks.trying import Finding
from gistpoint.sandbox.ladder import Diagnosis, diagnose, has_consented, plugins, self_test, versions, withdraw_consent
from gistpoint.sandbox.limits import LIMITS
from gistpoint.tui.cli import DONE, NEGATIVE
from gistpoint.tui.commands.output import ProgressLine, print_json, print_table

_CONSENTED = (
    "You agreed to run code without isolation on this machine; `gistpoint doctor --withdraw-consent` takes it back."
)
_NOT_CONSENTED = "Nobody agreed to run code without isolation on this machine."


def doctor(options: argparse.Namespace) -> int:
    """Probe, tell, and try the attacks where asked to; 1 where no isolation works or holds less than it promises."""
    locations = Locations.of_user()
    if options.withdraw_consent:
        withdraw_consent(locations.config)
    consented = has_consented(locations.config)
    found, working = diagnose()
    wished = options.sandbox or read_user_settings(locations.config).sandbox or None
    chosen = wished or next((d.name for d in found if d.isolates), None)
    tried: list[tuple[Attack, Mapping[str, Finding]]] = []
    if options.self_test:
        with ProgressLine() as progress:
            for attack, findings in self_test(working, locations.cache):
                progress.line(attack.what)
                tried.append((attack, findings))
    broken = [finding for _, findings in tried for finding in findings.values() if not finding.as_promised]
    if options.json:
        print_json("gistpoint.doctor/1", _document(found, chosen, tried, consented))
    else:
        _tell(found, chosen, wished)
        print(_CONSENTED if consented else _NOT_CONSENTED)
        if tried:
            _tell_attacks(tried, list(working), broken)
    usable = any(d.isolates for d in found) and (wished is None or wished in working)
    return DONE if usable and not broken else NEGATIVE


def _document(
    found: tuple[Diagnosis, ...],
    chosen: str | None,
    tried: list[tuple[Attack, Mapping[str, Finding]]],
    consented: bool,
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "gistpoint": __version__,
        "versions": dict(versions()),
        "root": os.geteuid() == 0,
        "chosen": chosen,
        "unsandboxed_consent": consented,
        "backends": [
            {
                "name": d.name,
                "works": d.probe.works,
                "isolates": d.isolates,
                "version": d.probe.version,
                "why_not": d.probe.why_not,
                "mend": d.probe.mend,
                "reduced": d.probe.warning,
                "enforced": dict(d.enforced),
                "plugin": d.plugin,
            }
            for d in found
        ],
        "plugins": [{"group": group, "name": name, "distribution": of} for group, name, of in plugins()],
    }
    if tried:
        document["attacks"] = [
            {
                "name": attack.name,
                "what": attack.what,
                "outcomes": {
                    name: {
                        "reached": f.reached,
                        "suspicious": list(f.suspicious),
                        "expected": attack.expected(name).value,
                        "as_promised": f.as_promised,
                    }
                    for name, f in findings.items()
                },
            }
            for attack, findings in tried
        ]
    return document


def _tell(found: tuple[Diagnosis, ...], chosen: str | None, wished: str | None) -> None:
    told = versions()
    print(f"gistpoint {__version__}, Python {told['python']}, {told['system']}, as {_who()}")
    print(f"pytest {told['pytest']}, uv {told['uv']}, Docker's SDK {told['docker']}\n")
    rows = []
    for d in found:
        word = "works" if d.isolates else "no isolation" if d.probe.works else "does not work"
        rows.append([d.name + (" (plugin)" if d.plugin else ""), word, d.probe.version, d.probe.why_not])
    print_table(["backend", "here", "version", "why not"], rows)
    working = [d for d in found if d.probe.works]
    if working:
        print_table(["limit held by", *LIMITS], [[d.name, *d.enforced.values()] for d in working])
    for d in found:
        if d.probe.warning:
            print(visible(f"{d.name}: {d.probe.warning}."))
    for d in found:
        if not d.probe.works and d.probe.mend:
            print(visible(f"To mend {d.name}: {d.probe.mend}"))
    for group, name, of in plugins():
        print(visible(f"Plugin {name} ({group}) from {of}"))
    if wished is not None and not any(d.name == wished for d in found):
        known = ", ".join(d.name for d in found)
        print(
            visible(f"\nThere is no sandbox {wished!r}: nothing runs until it is one of {known}, or none is asked for.")
        )
    elif wished is not None and not any(d.name == wished and d.probe.works for d in found):
        print(
            visible(f"\n{wished} is asked for and does not work here: nothing runs until it does, or is not asked for.")
        )
    elif chosen is None:
        print("\nNo isolation works here: code runs and is built only with --allow-unsandboxed, with your own rights.")
    else:
        why = "asked for" if wished else "the strongest that works"
        print(visible(f"\nTests run in {chosen}, {why}."))


def _who() -> str:
    return "root" if os.geteuid() == 0 else "an ordinary user"


def _tell_attacks(tried: list[tuple[Attack, Mapping[str, Finding]]], names: list[str], broken: list[Finding]) -> None:
    print()
    rows = [[attack.what, *(_word(findings[name]) for name in names)] for attack, findings in tried]
    print_table(["attack", *names], rows)
    for finding in broken:
        print(visible(f"NOT AS PROMISED: {finding.attack.what} on {finding.backend}. {finding.detail}"))
    print(f"{len(tried)} attacks on {', '.join(names)}: {len(broken)} outcomes other than promised")


def _word(finding: Finding) -> str:
    expected = finding.attack.expected(finding.backend)
    if not finding.as_promised:
        unmarked = expected is Expected.MARKED and finding.reached
        return "UNMARKED!" if unmarked else "REACHED!" if finding.reached else "STOPPED?"
    if not finding.reached:
        return "stopped"
    words = {Expected.REACHES: "reached", Expected.MARKED: "reached, marked"}
    return words.get(expected, "reached (may be)")
