"""`gistpoint study share`: put a study on the team's store, where every machine finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.core.locations import Locations
from gistpoint.core.study.operations import StudyError
from gistpoint.core.text import plural
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.team.address import chosen_address
from gistpoint.sessions.team.connecting import require_extra
from gistpoint.sessions.team.study_note import read_note
from gistpoint.tui.commands.arguments import JSON
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, argument
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.studies import StudyRequest
from gistpoint.tui.study_opening import open_study

if TYPE_CHECKING:
    from gistpoint.sessions.studies.folder import StudyFolder
    from gistpoint.sessions.team.address import StoreAddress


def sharing(request: StudyRequest) -> int:
    """Put a study on the team's store. Return the exit code.

    Raises `StudyError` if no store is chosen.
    """
    require_extra()
    from gistpoint.sessions.team.study_sharing import share

    study = open_study(request.study)
    done = share(study, _address_of(study))
    study = open_study(request.study)
    sent = synchronise(study)
    study.store.send()
    identity, people = study.study.id, len(study.ledger.people)
    if request.json:
        values = {
            "id": identity,
            "store": done.address.url,
            "files": done.files,
            "new": done.new,
            "people": people,
        }
        print_json(
            "gistpoint.study-share/1", {**values, "replaced": done.replaced, "problems": list(sent.problems)}
        )
        return DONE
    became = "is now" if done.new else "has its changed declaration" if done.replaced else "was already"
    print_text(
        f"{identity} {became} on {done.address}: {plural(done.files, 'file')},"
        f" {plural(people, 'person', 'people')}"
    )
    print_text("On every machine that takes part, once:")
    print_text(f"  gistpoint store use '{done.address.for_others}'")
    if done.address.local:
        print_text(
            f"{done.address} is an address of this machine: use the name of the server on other machines."
        )
    elif "service" in done.address.options:
        print_text(f"Their own service file gives the location of {done.address.options['service']}.")
    print_text(f"Then: gistpoint study join {identity} --code CODE")
    return DONE


def _address_of(study: StudyFolder) -> StoreAddress:
    """Return the address of a study's store or, if it has none, of the chosen store.

    Raises `StudyError` if there is neither.
    """
    note = read_note(study.root)
    address = note.address if note is not None else chosen_address(Locations.of_user().config)
    if address is None:
        raise StudyError(
            "No team store is chosen, so the study can't be shared.",
            hint="gistpoint store use postgresql://USER@HOST/DATABASE, then gistpoint store init.",
        )
    return address


SHARE = CliCommand(
    StudyRequest,
    sharing,
    {"study": argument("DIR", "the study's folder"), "json": JSON},
    about=(
        "Puts a study on the store that `gistpoint store use` has chosen: its declaration, texts and"
        " tasks, and everything recorded so far. On every machine that uses the store, `gistpoint"
        " study join ID --code C` and the other commands then find it by its id. If the declaration"
        " was changed, repeat the command."
    ),
)
