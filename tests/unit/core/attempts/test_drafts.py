"""Half-written text is journalled as what changed in it, and a paste without its text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.drafts import draft_data, drafted, paste_data
from gistpoint.core.attempts.events import Event
from gistpoint.core.attempts.state import fold
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.kinds.gist.text import GIST_BUFFER

TEXT = st.text(st.sampled_from("ab\n é\U0001f600\ud800"), max_size=40)
LONG = "".join(f"value_{number} = {number}\n" for number in range(500))


@given(texts=st.lists(TEXT, min_size=1, max_size=8), pad=st.sampled_from(["", LONG]))
def test_a_text_is_the_same_after_any_edits(texts: list[str], pad: str) -> None:
    for buffer in ("a.py::f", GIST_BUFFER):
        known, events = None, []
        for number, text in enumerate(texts, start=1):
            now = f"{pad[: len(pad) // 2]}{text}{pad[len(pad) // 2 :]}"
            data = draft_data(known, now)
            assert drafted(known, data) == now
            events.append(Event(number, "edit_buffer", 0, 0, {"buffer": buffer, **data}))
            known = now
        assert fold(events).buffered(buffer) == known


def test_a_key_in_a_long_text_is_journalled_as_a_key() -> None:
    at = LONG.index("value_250")
    assert draft_data(LONG, f"{LONG[:at]}x{LONG[at:]}") == {"at": at, "removed": 0, "text": "x"}
    assert draft_data(LONG, LONG[:at] + LONG[at + 9 :]) == {"at": at, "removed": 9, "text": ""}
    assert draft_data(None, LONG) == {"text": LONG}
    assert draft_data("x", LONG) == {"text": LONG}
    assert draft_data("short", "shorter") == {"text": "shorter"}


def test_journals_of_whole_texts_fold_as_before() -> None:
    events = [Event(n, "edit_buffer", 0, 0, {"buffer": "f", "text": text}) for n, text in enumerate(("a", "ab", ""), 1)]
    assert [fold(events[:n]).buffers["f"] for n in (1, 2, 3)] == ["a", "ab", ""]


def test_a_paste_is_recorded_without_its_text() -> None:
    shown = ["x = 1\n    def total(self):\n\n        return 3\n[15 tool uses left]"]
    for text, known in (
        ("def total(self):\n    return 3", True),
        ("    return 3\n", True),
        ("\n", True),
        ("def total(self):\n    return 4", False),
        ("return 3\nreturn 3", False),
    ):
        data = paste_data(text, shown, outside=True)
        assert data == {"characters": len(text), "sha256": sha256_of_text(text), "shown": known, "outside": True}
    assert not paste_data("x = 1", [], outside=False)["shown"]
