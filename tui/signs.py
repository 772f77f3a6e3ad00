"""The signs on screens and in printed text: each has one meaning, or one group of meanings, and one name.

Other modules of the user interface contain no literal sign, so that a sign can be found, compared and
replaced here. Punctuation, such as `…`, `·`, `–`, `×` and `−`, is part of a sentence, and not a sign.
"""

from __future__ import annotations

# Results

GOOD = "✔"
BAD = "✘"
SKIPPED = "↷"
WARNING = "⚠"
DIFFERS = "≠"
NOTHING = "∅"
"""Nothing could be compared."""

# What is known or read

FULL = "●"
"""Known, read, left over or marked."""
EMPTY = "○"
"""Not known, not read, or used up."""
DERIVED = "◐"
EXECUTED = "◉"
SEEN = "•"
"""A bullet: an item of a list, a step that was seen, a task that was not."""

# What somebody wrote

LABEL = "⚑"
"""A label of a reviewer, or a suspect of a solver."""
COMMENT = "✎"
"""A comment of a reviewer, or writing as an activity."""

# Positions and movement

HERE = "▸"
"""The cursor, the current item, or a folded one."""
UNFOLDED = "▾"
LEADS = "→"
FOLLOWS = "↳"
REWOUND = "↶"
BACK = "⟲"
FOLDED = "⋯"
WRAPPED = "↪"
CUT_LEFT = "‹"
CUT_RIGHT = "›"
ASCENDING = "▲"
DESCENDING = "▼"
UP_KEY = "↑"
DOWN_KEY = "↓"
PROMPT = "❯"

# Activities and budgets

FORWARD = "▶"
"""Something runs or plays; the budget of submissions."""
PAUSED = "‖"
READS = "¶"
EXPLORES = "◎"
IDLE = "◌"
ENDED = "■"
BEST = "★"
DIAMOND = "◆"
"""The budget of calls, or a cell that a click has marked."""

# Drawing

HEADING = "──"
RULE = "─"
BAR = "│"
THICK_BAR = "┃"
BLOCK = "█"
SHADE = "░"
EDGE = "▏"
LOW_BLOCK = "▃"
EIGHTHS_ACROSS = "▏▎▍▌▋▊▉█"
"""The parts of a bar's last cell, from one eighth to the whole."""
EIGHTHS_UP = "▁▂▃▄▅▆▇█"
ONE, TWO, THREE = "①", "②", "③"
NUMBERS = ONE + TWO + THREE
