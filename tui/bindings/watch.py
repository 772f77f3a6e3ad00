"""The keys of looking on at a run or an attempt."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_W = KeyScope.WATCH
_WA = KeyScope.WATCH_ATTEMPT

WATCH_KEYS: tuple[Key, ...] = (
    Key("watch.leave", "escape,q", "leave", "Leave", "Close this; what is looked on at goes on", "Watch", _W, True),
    Key("watch.take", "f9", "take", "Take over", "Go on with it yourself: it then counts nowhere", "Watch", _WA, True),
    Key("watch.give", "f10", "give", "Give back", "Let the model go on, with a note", "Watch", _WA, True),
    Key("watch.brief", "f2", "pane('brief')", "Brief", "The task as it was told", "Panes", _WA, priority=True),
    Key("watch.files", "f3", "pane('files')", "Files", "What results have shown", "Panes", _WA, priority=True),
    Key("watch.code", "f4", "pane('code')", "Code", "The code that was shown last", "Panes", _WA, priority=True),
    Key("watch.model", "f6", "pane('model')", "Model", "What the model says", "Panes", _WA, priority=True),
    Key("watch.results", "f7", "pane('results')", "Results", "Every answer so far", "Panes", _WA, priority=True),
)
