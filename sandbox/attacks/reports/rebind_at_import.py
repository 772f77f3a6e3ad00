"""Rebinds another function of its module during the import, in a default value."""


def assert_same(left: object, right: object) -> None:
    assert left == right


def f(_: None = globals().__setitem__("assert_same", lambda left, right: None)) -> None:
    pass
