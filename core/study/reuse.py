"""Whose failed submissions may become tasks, and which of these tasks have to go (decision 141)."""

from __future__ import annotations

from gistpoint.core.study.declaration import Study, tasks_item
from gistpoint.core.study.ledger import Ledger, Person
from gistpoint.core.study.operations import ERASE


def agrees(study: Study, protocol: str, person: Person) -> bool:
    """Return whether a person lets failed submissions become tasks, and takes part or has finished.

    `protocol` is the hash of `study`. The ticks of a consent belong to the items of its own protocol, so a
    consent to another one allows nothing.
    """
    is_away = person.declined or person.withdrawn is not None
    return not is_away and _ticked(study, protocol, person) is True


def _ticked(study: Study, protocol: str, person: Person) -> bool | None:
    """Return whether the item is ticked; None if the person's consent does not have the item."""
    place, consent = tasks_item(study.texts), person.consent
    if place is None or consent is None or consent.protocol != protocol:
        return None
    return consent.items[place] if place < len(consent.items) else None


def has_to_go(study: Study, protocol: str, ledger: Ledger, attempt: str) -> bool:
    """Return whether a task made from this attempt has to be deleted.

    That is so if its author was erased, wants to be, or has not ticked the item again. The log of a person
    who was erased is gone, so an attempt that nobody in the log has begun belonged to such a person.
    """
    for person in ledger.people.values():
        if any(fact.attempt == attempt for facts in person.begun.values() for fact in facts):
            wants_erasure = person.withdrawn is not None and person.withdrawn.data == ERASE
            return wants_erasure or _ticked(study, protocol, person) is False
    return bool(ledger.erased)
