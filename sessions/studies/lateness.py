"""Frees the tasks of people who do not come back, as `core.study.assigning` defines them."""

from __future__ import annotations

from gistpoint.core.study.assigning import late_assignments
from gistpoint.core.study.ledger import Assignment
from gistpoint.core.study.operations import Returned, StudyOperationKind, person
from gistpoint.core.text import plural
from gistpoint.sessions.studies.folder import StudyFolder


def return_late(study: StudyFolder, but: str = "") -> list[Assignment]:
    """Free and return the open assignments of people who left no record for longer than the design allows.

    The person with the code `but` is exempt. Nothing is freed if the design sets no limit.
    """
    late = late_assignments(study.study, study.ledger, study.clock.utc_ms())
    found = [given for given in late if given.person != but]
    for given in found:
        why = f"no record for {plural(study.study.design.return_after_hours, 'hour')}"
        data = Returned(assignment=given.id, why=why, late=True)
        study.record(given.person, person(given.person), StudyOperationKind.RETURNED, data)
    return found
