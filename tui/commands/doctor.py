"""`gistpoint doctor`: report which isolation works, how to fix the others, and what each withstands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.locations import Locations
from gistpoint.core.plugins import (
    GROUPS,
    HINT,
    PluginError,
    declared,
    instance_of,
    is_callable,
    load,
    named,
    package_of,
    unreadable,
)
from gistpoint.core.requests import Request
from gistpoint.core.text import plural, visible
from gistpoint.core.trees import SourceTree
from gistpoint.core.user_settings import read_user_settings
from gistpoint.sandbox.attacks.table import SMALL, Attack, Expected
from gistpoint.sandbox.attacks.trying import ANSWERED, ANSWERED_TESTS, AttackFinding, self_test
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.confirmation import ForgeryTrial
from gistpoint.sandbox.ladder import Diagnosis, diagnose, has_consented, versions, withdraw_consent
from gistpoint.sandbox.limits import LIMITS
from gistpoint.sandbox.testruns import EnvironmentSource
from gistpoint.tui.commands.arguments import JSON, sandbox_option
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, option
from gistpoint.tui.commands.output import print_json, print_table
from gistpoint.tui.commands.progress import ProgressLine

_ANSWER_LIMIT_S = 60.0
"""The time limit, in seconds, of a run in which a function's answers are forged."""
_CONSENTED = (
    "You agreed to run code without isolation on this machine; `gistpoint doctor --withdraw-consent`"
    " withdraws this consent."
)
_NOT_CONSENTED = "Nobody has agreed to run code without isolation on this machine."
_Tried = tuple[Attack, Mapping[str, AttackFinding]]
"""An attack, with its outcome on each backend by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseRequest(Request):
    """A request to report on the isolation; with `self_test`, attacks on it are tried as well."""

    self_test: bool = False
    withdraw_consent: bool = False
    sandbox: str | None = None
    json: bool = False


def doctor(request: DiagnoseRequest) -> int:
    """Probe the isolation, report on it, and on request withdraw the consent and try the attacks.

    Return 1 if no isolation works, if the requested backend doesn't, or if an attack's outcome isn't as
    promised.
    """
    locations = Locations.of_user()
    if request.withdraw_consent:
        withdraw_consent(locations.config)
    consented = has_consented(locations.config)
    found, working = diagnose()
    requested = request.sandbox or read_user_settings(locations.config).sandbox or None
    chosen = requested or next((diagnosis.name for diagnosis in found if diagnosis.isolates), None)
    tried = _self_tested(working, locations.cache, quiet=request.json) if request.self_test else []
    broken = _broken(tried)
    if request.json:
        print_json("gistpoint.doctor/1", _document(found, chosen, tried, consented))
    else:
        _print_diagnosis(found, chosen, requested)
        print(_CONSENTED if consented else _NOT_CONSENTED)
        if tried:
            _print_attacks(tried, list(working), broken)
    return DONE if _is_usable(found, working, requested) and not broken else NEGATIVE


def _broken(tried: list[_Tried]) -> list[AttackFinding]:
    """Return the findings that differ from what is promised."""
    return [finding for _, findings in tried for finding in findings.values() if not finding.as_promised]


def _is_usable(found: tuple[Diagnosis, ...], working: Mapping[str, Backend], requested: str | None) -> bool:
    isolated = any(diagnosis.isolates for diagnosis in found)
    return isolated and (requested is None or requested in working)


def _self_tested(working: Mapping[str, Backend], cache: Path, *, quiet: bool) -> list[_Tried]:
    tried: list[_Tried] = []
    with ProgressLine(quiet=quiet) as progress:
        for attack, findings in self_test(working, cache, _answer_trial):
            progress.stage(attack.what)
            tried.append((attack, findings))
    return tried


def _answer_trial(backend: Backend, environments: EnvironmentSource, tree: SourceTree) -> ForgeryTrial:
    return ForgeryTrial(
        backend, environments, tree, ANSWERED, ANSWERED_TESTS, limits=SMALL, timeout_s=_ANSWER_LIMIT_S
    )


def _document(
    found: tuple[Diagnosis, ...],
    chosen: str | None,
    tried: list[_Tried],
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
                "name": diagnosis.name,
                "works": diagnosis.probe.works,
                "isolates": diagnosis.isolates,
                "version": diagnosis.probe.version,
                "why_not": diagnosis.probe.why_not,
                "mend": diagnosis.probe.fix,
                "reduced": diagnosis.probe.warning,
                "enforced": dict(diagnosis.enforced),
                "plugin": diagnosis.plugin,
            }
            for diagnosis in found
        ],
        "unreadable_packages": unreadable(),
        "plugins": [
            {
                "group": plugin.group,
                "name": plugin.name,
                "distribution": package_of(plugin),
                "why_not": _why_not(plugin),
            }
            for plugin in _plugins()
        ],
    }
    if tried:
        document["attacks"] = [
            {
                "name": attack.name,
                "what": attack.what,
                "outcomes": {
                    name: {
                        "reached": finding.reached,
                        "suspicious": list(finding.suspicious),
                        "expected": finding.expected.value,
                        "as_promised": finding.as_promised,
                    }
                    for name, finding in findings.items()
                },
            }
            for attack, findings in tried
        ]
    return document


def _print_diagnosis(found: tuple[Diagnosis, ...], chosen: str | None, requested: str | None) -> None:
    used = versions()
    print(f"gistpoint {__version__}, Python {used['python']}, {used['system']}, as {_user_words()}")
    print(f"pytest {used['pytest']}, uv {used['uv']}, Docker's SDK {used['docker']}\n")
    _print_backends(found)
    _print_plugins()
    _print_choice(found, chosen, requested)


def _print_backends(found: tuple[Diagnosis, ...]) -> None:
    print_table(["backend", "here", "version", "why not"], [_backend_row(diagnosis) for diagnosis in found])
    working = [diagnosis for diagnosis in found if diagnosis.probe.works]
    if working:
        print_table(
            ["limit enforced by", *LIMITS],
            [[diagnosis.name, *diagnosis.enforced.values()] for diagnosis in working],
        )
    warnings = [
        f"{diagnosis.name}: {diagnosis.probe.warning}." for diagnosis in found if diagnosis.probe.warning
    ]
    fixes = [
        f"To fix {diagnosis.name}: {diagnosis.probe.fix}"
        for diagnosis in found
        if diagnosis.probe.fix and not diagnosis.probe.works
    ]
    for sentence in (*warnings, *fixes):
        print(visible(sentence))


def _backend_row(found: Diagnosis) -> list[str]:
    works = "works" if found.isolates else "no isolation"
    here = works if found.probe.works else "does not work"
    name = f"{found.name} (plugin)" if found.plugin else found.name
    return [name, here, found.probe.version, found.probe.why_not]


def _print_plugins() -> None:
    for package, why_not in unreadable().items():
        print(visible(f"The entry points of {package} can't be read: {why_not}. {HINT}"))
    for plugin in _plugins():
        why_not = _why_not(plugin)
        broken = f" can't be loaded: {why_not}. {HINT}" if why_not else ""
        package = f" from {package_of(plugin)}" if package_of(plugin) else ""
        print(visible(f"Plugin {plugin.name} ({plugin.group}){package}{broken}"))


def _print_choice(found: tuple[Diagnosis, ...], chosen: str | None, requested: str | None) -> None:
    if requested is not None and not any(diagnosis.name == requested for diagnosis in found):
        known = ", ".join(diagnosis.name for diagnosis in found)
        print(
            visible(
                f"\nThere is no sandbox {requested!r}: nothing runs until it is one of {known}, or none is"
                " requested."
            )
        )
    elif requested is not None and not any(
        diagnosis.name == requested and diagnosis.probe.works for diagnosis in found
    ):
        print(visible(f"\n{requested} was requested but does not work here: nothing runs until it does."))
    elif chosen is None:
        print(
            "\nIsolation does not work here: code runs and is built only with --allow-unsandboxed,"
            " and with your own rights."
        )
    else:
        why = "as requested" if requested else "the strongest that works"
        print(visible(f"\nTests run in {chosen}, {why}."))


def _plugins() -> list[EntryPoint]:
    return sorted(
        (entry for group in GROUPS for entry in declared(group)), key=lambda entry: (entry.group, entry.name)
    )


_BY_NAME = frozenset(f"gistpoint.{name}" for name in ("backends", "exporters", "scaffolds", "task_exporters"))
"""The groups whose plugins are chosen by the names of their entry points."""


def _why_not(plugin: EntryPoint) -> str:
    """Return why a plugin can't be loaded; empty if it can be."""
    from gistpoint.core.corruption.registry import fault_of_operator
    from gistpoint.core.kinds.registry import fault_among_others
    from gistpoint.sessions.records.format import Format

    checks = {
        "gistpoint.formats": instance_of(Format),
        "gistpoint.kinds": fault_among_others,
        "gistpoint.operators": fault_of_operator,
    }
    try:
        if plugin.group in _BY_NAME:
            named(plugin.group, plugin.name)
        load(plugin, checks.get(plugin.group, is_callable))
    except PluginError as error:
        return error.why
    return ""


def _user_words() -> str:
    return "root" if os.geteuid() == 0 else "an ordinary user"


def _print_attacks(
    tried: list[tuple[Attack, Mapping[str, AttackFinding]]], names: list[str], broken: list[AttackFinding]
) -> None:
    print()
    rows = [[attack.what, *(_word(findings[name]) for name in names)] for attack, findings in tried]
    print_table(["attack", *names], rows)
    for finding in broken:
        print(visible(f"NOT AS PROMISED: {finding.attack.what} on {finding.backend}. {finding.detail}"))
    attacks, outcomes = plural(len(tried), "attack"), plural(len(broken), "unexpected outcome")
    print(f"{attacks} on {', '.join(names)}: {outcomes}")


def _word(finding: AttackFinding) -> str:
    if not finding.as_promised:
        unmarked = finding.expected is Expected.MARKED and finding.reached
        return "UNMARKED!" if unmarked else "REACHED!" if finding.reached else "STOPPED?"
    if not finding.reached:
        return "stopped"
    words = {Expected.REACHES: "reached", Expected.MARKED: "reached, marked"}
    return words.get(finding.expected, "reached (allowed)")


DOCTOR = CliCommand(
    DiagnoseRequest,
    doctor,
    {
        "self_test": option("try the list of attacks against each isolation that works"),
        "withdraw_consent": option("withdraw the consent to run code without isolation"),
        "sandbox": sandbox_option("check this isolation as if it had been requested"),
        "json": JSON,
    },
    about=(
        "Tries each kind of isolation. The exit code is 0 if one that isolates works, otherwise 1; with"
        " --self-test also 1 if an attack had an unexpected outcome."
    ),
)
