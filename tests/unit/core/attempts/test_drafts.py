"""Half-written text is journalled as its changes, and a paste without its text."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.events import AffordanceUsed, BufferEdited, JournalEvent
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.kinds.gist.state import GistState
from gistpoint.core.kinds.gist.tools import GIST_BUFFER

TEXT = st.text(st.sampled_from("ab\n é\U0001f600\ud800"), max_size=40)
LONG = "".join(f"value_{number} = {number}\n" for number in range(500))


@given(texts=st.lists(TEXT, min_size=1, max_size=8), pad=st.sampled_from(["", LONG]))
def test_a_text_is_the_same_after_any_edits(texts: list[str], pad: str) -> None:
    for buffer in ("a.py::f", GIST_BUFFER):
        known, events = None, []
        for number, text in enumerate(texts, start=1):
            now = f"{pad[: len(pad) // 2]}{text}{pad[len(pad) // 2 :]}"
            data = BufferEdited.between(buffer, known, now)
            assert data.after(known) == now
            events.append(JournalEvent(number, data.type, 0, 0, data))
            known = now
        assert fold(events, AttemptState(of_kind=GistState())).buffered(buffer) == known


def test_a_key_in_a_long_text_is_journalled_as_a_key() -> None:
    edited = partial(BufferEdited, buffer="f")
    at = LONG.index("value_250")
    assert BufferEdited.between("f", LONG, f"{LONG[:at]}x{LONG[at:]}") == edited(text="x", at=at, removed=0)
    assert BufferEdited.between("f", LONG, LONG[:at] + LONG[at + 9 :]) == edited(text="", at=at, removed=9)
    assert BufferEdited.between("f", None, LONG) == edited(text=LONG)
    assert BufferEdited.between("f", "x", LONG) == edited(text=LONG)
    assert BufferEdited.between("f", "short", "shorter") == edited(text="shorter")


def test_journals_of_whole_texts_fold_as_before() -> None:
    events = [
        JournalEvent(n, "edit_buffer", 0, 0, BufferEdited(buffer="f", text=text))
        for n, text in enumerate(("a", "ab", ""), 1)
    ]
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
        data = AffordanceUsed.paste(text, shown, outside=True)
        assert data == AffordanceUsed("paste", 1, len(text), sha256_of_text(text), known, True)
    assert not AffordanceUsed.paste("x = 1", [], outside=False).shown
