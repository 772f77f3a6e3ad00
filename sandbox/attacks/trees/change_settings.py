"""Changes the settings in which the tests find their expected value."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(HERE, "setup.cfg"), "w") as file:
    file.write("[suite]\nexpected = wrong\n")


def f() -> str:
    return "wrong"
