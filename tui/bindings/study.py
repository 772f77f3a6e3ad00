"""The keys of a study: taking part, the tasks behind a link, and reading changes blind."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_AS = KeyScope.ASSIGNED
_BR = KeyScope.BLIND_READING
_ST = KeyScope.STUDY

STUDY_KEYS: tuple[Key, ...] = (
    Key("blind.merge", "1", "say('merge')", "Merge", "Merge the change", "Blind reading", _BR, True),
    Key(
        "blind.after",
        "2",
        "say('merge_after_changes')",
        "After changes",
        "Merge it after changes",
        "Blind reading",
        _BR,
        True,
    ),
    Key("blind.reject", "3", "say('reject')", "Reject", "Reject the change", "Blind reading", _BR, True),
    Key("blind.back", "left_square_bracket", "turn(-1)", "Back", "Go to the change before", "Blind reading", _BR, True),
    Key("blind.forward", "right_square_bracket", "turn(1)", "On", "Go to the next change", "Blind reading", _BR, True),
    Key("blind.leave", "escape,q", "leave", "Leave", "Close this; what you said is kept", "Blind reading", _BR, True),
    Key("study.next", "f9,ctrl+r", "next", "Next", "Go on, once all that is needed is there", "Study", _ST, True),
    Key("study.withdraw", "ctrl+g", "withdraw", "Stop taking part", "Keep your data, or erase", "Study", _ST, True),
    Key("assigned.open", "enter", "open", "Open", "Begin the task, or go on with it", "Your tasks", _AS, True),
)
