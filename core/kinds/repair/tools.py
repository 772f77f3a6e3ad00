"""The tools of repairs, by mode."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.browsing import BROWSING
from gistpoint.core.tools.declaration import Tool
from gistpoint.core.tools.replacing import REPLACE_FUNCTION, SUBMIT_ATTEMPT

REPAIR_TOOLS: Mapping[str, tuple[Tool, ...]] = {
    Mode.REMOVE: (*BROWSING, SUBMIT_ATTEMPT),
    Mode.DISCOVERY: (*BROWSING, REPLACE_FUNCTION),
}
"""By mode, browsing ones first and the one that submits last."""
