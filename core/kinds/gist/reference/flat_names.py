"""Chooses the name of each definition in a flat file, which has one namespace for many modules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gistpoint.core.kinds.gist.reference.extraction import DEFINED, MODULE, Entity, UnitSelection, Use

_TEST_WEIGHT = 1_000_000


@dataclass(slots=True)
class FlatNames:
    """The names in a flat file, where each name can belong to one definition only.

    `winners` maps each name to its final entity. An entity that lost its own name has one of `aliases`.
    Modules in `boxed` have their own namespaces; all others are the flat file itself.
    """

    winners: dict[str, Entity]
    aliases: dict[Entity, str] = field(default_factory=dict)
    boxed: dict[str, str] = field(default_factory=dict)
    """The name of the namespace object of each boxed module."""
    box_attributes: dict[Entity, set[tuple[str, str]]] = field(default_factory=dict)
    """The (module, attribute) pairs by which boxes contain an entity."""
    itself: str = "sys.modules[__name__]"
    """The expression for the flat file's own module."""
    own_name: str = ""
    """The variable that keeps `__name__` while it is that of an original module; empty if it never is."""

    def name_of(self, entity: Entity) -> str:
        """Return an expression for the entity that is valid anywhere in the flat file."""
        if entity.kind == MODULE:
            return self.boxed.get(entity.module, self.itself)
        if self.winners.get(entity.own_name) == entity:
            return entity.own_name
        return self.aliases[entity]

    def replacement(self, use: Use) -> tuple[int, str] | None:
        """Return how much of a site to replace, and its replacement; None if it can stay.

        0 is the name alone, n the name with n attributes.
        """
        if use.site.stores and not use.site.in_function:
            return None
        entities = use.entities
        reachable = self.winners.get(use.site.name) == entities[0]
        for holder, attribute, entity in steps(use):
            if holder not in self.boxed and self.winners.get(attribute) != entity:
                reachable = False
        if reachable:
            return None
        return len(entities) - 1, self.name_of(entities[-1])


def steps(use: Use) -> Iterator[tuple[str, str, Entity]]:
    """Yield each attribute of a use: the module that has it, its name, and its entity."""
    for holder, attribute, entity in zip(use.entities, use.site.chain, use.entities[1:], strict=False):
        yield holder.module, attribute, entity


def flat_names(
    selection: UnitSelection, fixed: Collection[Use], taken: Collection[str], *, module_names: bool = False
) -> FlatNames:
    """Return the names of a flat file; each name belongs to the entity with the most uses of it.

    Uses that can't be rewritten (`fixed`) take precedence. If they contradict each other, the modules through
    which they reach a name are boxed. `taken` are identifiers that aliases must not use. With `module_names`,
    `__name__` may change from statement to statement.
    """
    boxed: set[str] = set()
    while True:
        claims = _claims(selection, fixed, boxed)
        winners = {name: max(found, key=lambda e: (found[e], repr(e))) for name, found in claims.items()}
        names = FlatNames(winners)
        more = _contradicted(fixed, names, boxed)
        if more <= boxed:
            break
        boxed |= more
    _name_boxes(names, boxed, selection, taken)
    used = set(taken) | set(winners) | set(names.boxed.values())
    for entity in sorted(selection.entities, key=repr):
        if entity.kind != MODULE and winners.get(entity.own_name) != entity:
            names.aliases[entity] = _fresh(f"{entity.own_name}_{_tail(entity)}", used)
    if module_names:
        names.itself = _fresh("itself", used)
        names.own_name = _fresh("own_name", used)
    return names


def _claims(
    selection: UnitSelection, fixed: Collection[Use], boxed: set[str]
) -> Mapping[str, Mapping[Entity, int]]:
    """Return, for each name, the entities that it may mean, each with its weighted number of uses."""
    claims: dict[str, dict[Entity, int]] = defaultdict(lambda: defaultdict(int))
    for entity in selection.entities:
        if entity.kind == DEFINED:
            claims[entity.name][entity] += 1
    pinned = {id(use) for use in fixed}
    for use in selection.uses:
        weight = _TEST_WEIGHT if id(use) in pinned else 2
        claims[use.site.name][use.entities[0]] += weight
        for holder, attribute, entity in steps(use):
            if holder not in boxed:
                claims[attribute][entity] += weight
    return claims


def _contradicted(fixed: Collection[Use], names: FlatNames, boxed: set[str]) -> set[str]:
    """Return `boxed` and the modules through which the test reaches something other than a name's winner."""
    found = set(boxed)
    for use in fixed:
        for holder, attribute, entity in steps(use):
            if holder not in boxed and names.winners.get(attribute) != entity:
                found.add(holder)
    return found


def _name_boxes(names: FlatNames, boxed: set[str], selection: UnitSelection, taken: Collection[str]) -> None:
    used = set(taken) | set(names.winners)
    for module in sorted(boxed):
        entity = Entity(MODULE, module, "")
        held = sorted(name for name, winner in names.winners.items() if winner == entity)
        names.boxed[module] = held[0] if held else _fresh(module.rpartition(".")[2] + "_module", used)
    for use in selection.uses:
        for holder, attribute, entity in steps(use):
            if holder in boxed:
                names.box_attributes.setdefault(entity, set()).add((holder, attribute))


def _fresh(name: str, used: set[str]) -> str:
    candidate = name
    number = 2
    while candidate in used:
        candidate = f"{name}_{number}"
        number = number + 1
    used.add(candidate)
    return candidate


def _tail(entity: Entity) -> str:
    return entity.module.rpartition(".")[2].strip("_") or "external"
