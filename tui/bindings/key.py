"""A key binding and its scope."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from textual.binding import Binding


class KeyScope(StrEnum):
    """The part of the program in which a binding works."""

    APP = "app"
    HOME = "home"
    SOLVE = "solve"
    SUMMARY = "summary"
    DIALOG = "dialog"
    CONSOLE = "console"
    CODE = "code"
    EDITOR = "editor"
    RESULTS = "results"
    RUNS = "runs"
    REVIEW = "review"
    PLACES_IN_RUNS = "places_in_runs"
    COMPARE = "compare"
    PROFILES = "profiles"
    TREE = "tree"
    VALIDATE = "validate"
    PLACES = "places"
    FILES = "files"
    VALIDATE_GIST = "validate_gist"
    VALIDATE_PAGE = "validate_page"
    """The pages of tasks without corrupted functions."""
    GIST_SOLVE = "gist_solve"
    GIST = "gist"
    TRACE = "trace"
    WATCH = "watch"
    WATCH_RUN = "watch_run"
    TILES = "tiles"
    WATCH_ATTEMPT = "watch_attempt"
    BRIEF = "brief"
    TOUR = "tour"
    STUDY = "study"
    ASSIGNED = "assigned"
    BLIND_READING = "blind_reading"
    CAMPAIGN = "campaign"
    GLANCE = "glance"
    GLANCE_DIFF = "glance_diff"
    LABELLING = "labelling"
    READING = "reading"
    """The keys of widgets for reading and writing. The widgets bind them with the same ids."""


class Key(NamedTuple):
    """One binding. `keys` are alternatives with Textual's names, separated by commas."""

    id: str
    keys: str
    action: str
    description: str
    tooltip: str
    group: str
    scope: KeyScope
    show: bool = False
    priority: bool = False

    def binding(self) -> Binding:
        """Return the binding as Textual needs it."""
        return Binding(
            self.keys,
            self.action,
            self.description,
            show=self.show,
            priority=self.priority,
            tooltip=self.tooltip,
            id=self.id,
        )


class KeyGroup(NamedTuple):
    """Bindings of one scope, listed under one heading of the help. Calling the group returns a binding."""

    name: str
    scope: KeyScope

    def __call__(
        self,
        id: str,
        keys: str,
        action: str,
        description: str,
        tooltip: str,
        *,
        show: bool = False,
        priority: bool = False,
    ) -> Key:
        """Return a binding of this group."""
        return Key(id, keys, action, description, tooltip, self.name, self.scope, show, priority)
