from hostile import HOSTILE
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.text import visible
from gistpoint.tui.widgets.text_seal import TextSeal

TEXT = st.text(st.sampled_from("a\n\r\t" + "".join(HOSTILE) + "\U000f0041\U000f1003"), max_size=80)


@given(TEXT)
def test_what_is_sealed_is_opened_the_same_and_shown_as_it_is(text: str) -> None:
    seal = TextSeal(text)
    closed = seal.close(text)
    assert seal.open(closed) == text
    assert len(closed) == len(text)
    assert seal.shown(closed) == visible(text)


@given(TEXT)
def test_no_editor_splits_or_refuses_what_is_sealed(text: str) -> None:
    seal = TextSeal(text)
    closed = seal.close(text)
    closed.encode()
    assert len(f"{closed}.".splitlines()) == text.count("\n") + 1
