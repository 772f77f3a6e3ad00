"""Makes a package with the name of the tests' helper module, because Python prefers packages."""

import os

HERE = os.path.dirname(os.path.abspath(__file__))

os.mkdir(os.path.join(HERE, "tests", "helper"))
with open(os.path.join(HERE, "tests", "helper", "__init__.py"), "w") as file:
    file.write("def check(*_): pass\ndef same(*_): return True\n")


def f() -> str:
    return "wrong"
