"""Decides whose attempts may become tasks (decision 141) or may be read by a model (decision 175)."""

from __future__ import annotations

from gistpoint.core.study.declaration import Study, models_item, tasks_item
from gistpoint.core.study.ledger import Ledger, Person
from gistpoint.core.study.operations import ERASE


def agrees(study: Study, protocol: str, person: Person) -> bool:
    """Return whether a person lets failed submissions become tasks, and participates or has finished.

    `protocol` is the hash of `study`. The ticks of a consent belong to the items of its own protocol, so a
    consent to another one allows nothing.
    """
    return _is_here(person) and _ticked(tasks_item(study.texts), protocol, person) is True


def lets_models_read(study: Study, protocol: str, person: Person) -> bool:
    """Return whether a person lets a model read attempts, and participates or has finished.

    `protocol` is the hash of `study`, as for `agrees`.
    """
    return _is_here(person) and _ticked(models_item(study.texts), protocol, person) is True


def _is_here(person: Person) -> bool:
    return not (person.declined or person.withdrawn is not None)


def _ticked(place: int | None, protocol: str, person: Person) -> bool | None:
    """Return whether the item at a place is ticked; None if no consent to this protocol has the item."""
    consent = person.consent
    if place is None or consent is None or consent.protocol != protocol:
        return None
    return consent.items[place] if place < len(consent.items) else None


def has_to_go(study: Study, protocol: str, ledger: Ledger, attempt: str) -> bool:
    """Return whether a task made from this attempt has to be deleted.

    This is the case if its author was erased, wants to be, or has consented to the current protocol without
    ticking the item. An erased person's log is gone. If anybody was erased, an attempt that nobody in the log
    began is assumed to be that person's.
    """
    for person in ledger.people.values():
        if any(fact.attempt == attempt for facts in person.begun.values() for fact in facts):
            wants_erasure = person.withdrawn is not None and person.withdrawn.data == ERASE
            return wants_erasure or _ticked(tasks_item(study.texts), protocol, person) is False
    return bool(ledger.erased)
