"""Strings that a repository, a test run or a model could contain, and that a careless screen would obey."""

MARKUP = (
    "list[int]",
    "[ERROR] boom",
    "[/x]",
    "a[/]b",
    "[",
    "[/",
    "]",
    "[bold]not bold[/bold]",
    "[red on blue]",
    "[@click=app.quit]quit[/]",
    "[@click=app.bell('x')]ring",
    "[@click=",
    "[tag=value:",
    "[link=https://example.invalid]x[/link]",
    "re.compile('[a-z]+')",
    "[x for x in xs]",
    "$text-error",
    "[$accent]themed[/]",
    "\\[escaped]",
    "d['key'][0][/0]",
    ":smile: :rocket:",
    "{{ braces }} %s {0}",
    "# Markdown *not* `drawn`",
)
CONTROLS = (
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[H\x1b]0;title\x07",
    "\x1b]8;;https://example.invalid\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b",
    "\x9b31mC1",
    "nul\x00nul",
    "bell\x07back\x08space",
    "50%\r100%",
    "form\x0cfeed\x0bvertical",
    "\x7fdelete\x85next\x1cseparator",
    "line\u2028separator\u2029paragraph",
)
UNICODE = (
    "user\u202e\u2066// admin\u2069\u2066",
    "\u200bzero\u200cwidth\u200d\ufeff",
    "\ud800lone\udfff",
    "漢字テスト한글",
    "ｆｕｌｌｗｉｄｔｈ",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️ 🏳️‍🌈",
    "e\u0301 o\u0308\u0323 Z\u0351\u036b\u0343",
    "العربية עברית",
    "\u0301starts with a combining mark",
    "tag\U000e0041\U000e007f",
    "\U0010ffff\ufffe",
)
HOSTILE = (*MARKUP, *CONTROLS, *UNICODE)
"""Hostile strings, each of which fits on one row of 80 cells."""

HUGE_LINES = ("x" * 50_000, "漢" * 20_000, "\t" * 9_000, "[/x]" * 5_000, "e\u0301" * 10_000, "\x00" * 30_000)
