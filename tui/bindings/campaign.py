"""The keys of the screen that shows how tasks are made."""

from __future__ import annotations

from gistpoint.tui.bindings.key import Key, KeyScope

_CA = KeyScope.CAMPAIGN

CAMPAIGN_KEYS: tuple[Key, ...] = (
    Key("campaign.leave", "q", "leave", "Leave", "Stop, and print the tables; what is kept stays", "Making", _CA, True),
    Key("campaign.stop", "ctrl+c", "leave", "Stop", "The same", "Making", _CA, priority=True),
)
