"""Changes the settings from which the tests take what they are to check."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(HERE, "setup.cfg"), "w") as file:
    file.write("[suite]\nexpected = wrong\n")


def f() -> str:
    return "wrong"
