import pytest

from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import UserError


@pytest.mark.parametrize(
    "text",
    [
        "src/a.py::f",
        "a.py::C.method",
        "a.py::outer.<locals>.inner",
        "a.py::C.value#2",
        "a b/ü.py::größe",
        "C:x.py::f",
    ],
)
def test_a_name_comes_back_as_it_was(text: str) -> None:
    assert str(FunctionRef.parse(text)) == text


def test_the_first_of_several_carries_no_number() -> None:
    assert FunctionRef.parse("a.py::f#1") == FunctionRef("a.py", "f")


def test_identifiers_are_compared_as_python_stores_them() -> None:
    assert FunctionRef.parse("a.py::ﬁnd").qualname == "find"


@pytest.mark.parametrize(
    "text",
    [
        "", "f", "::f", "a.py::", "a.py:f", "a.py::1f", "a.py::f#0", "a.py::f#", "a.py::f#x", "a.py::f.<locals>",
        "a.py::f..g", "/etc/a.py::f", "../a.py::f", "a\0.py::f", "a.py::f()", "a.py::<lambda>", "a.py::f#2.g",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_the_form_to_write(text: str) -> None:
    with pytest.raises(CodeError, match="path::qualname") as refusal:
        FunctionRef.parse(text)
    assert isinstance(refusal.value, UserError)


def test_parts_of_a_name() -> None:
    ref = FunctionRef.parse("a.py::C.f.<locals>.g#3")
    assert (ref.plain, ref.name) == ("C.f.<locals>.g", "g")
