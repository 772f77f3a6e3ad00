"""The keys of blind reading: a function to be read, and its diff afterwards."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_GL, _GD = KeyScope.GLANCE, KeyScope.GLANCE_DIFF

GLANCE_KEYS: tuple[Key, ...] = (
    Key("glance.show", "enter", "show", "Show", "Show the next function; its time begins", "Glance", _GL, True),
    Key("glance.mark", "m", "mark", "Mark line", "Mark the line at the cursor, or unmark it", "Glance", _GL, True),
    Key("glance.fault", "1", "say('fault')", "Fault", "I see a fault, at the marked line", "Glance", _GL, True),
    Key("glance.doubtful", "2", "say('doubtful')", "Doubtful", "Something may be wrong", "Glance", _GL, True),
    Key("glance.nothing", "3", "say('nothing')", "Nothing", "I see nothing wrong", "Glance", _GL, True),
    Key("glance.undo", "backspace", "take_back", "Take back", "Take back the last answer", "Glance", _GL),
    Key("glance.leave", "escape,q", "leave", "Leave", "Close this; what you said is kept", "Glance", _GL, True),
    Key("verdict.good", "1", "judge('good')", "Good", "A fault, and nothing gives it away", "Verdict", _GD, True),
    Key("verdict.borderline", "2", "judge('borderline')", "Borderline", "Doubted at its place", "Verdict", _GD, True),
    Key("verdict.glance", "3", "judge('at a glance')", "At a glance", "Seen by reading alone", "Verdict", _GD, True),
    Key("verdict.none", "4", "judge('not a fault')", "No fault", "Nobody can call it wrong", "Verdict", _GD, True),
    Key("verdict.undo", "backspace", "take_back", "Take back", "Take back the verdict in sight", "Verdict", _GD),
    Key("verdict.back", "left_square_bracket", "turn(-1)", "Back", "Go to the diff before", "Verdict", _GD, True),
    Key("verdict.forward", "right_square_bracket", "turn(1)", "On", "Go to the next diff", "Verdict", _GD, True),
    Key("verdict.leave", "escape,q", "leave", "Leave", "Close this; what you said is kept", "Verdict", _GD, True),
)
