"""Returns an object that is equal to everything, of a class made without a class statement."""


def f() -> object:
    return type("Right", (), {"__eq__": lambda self, other: True})()
