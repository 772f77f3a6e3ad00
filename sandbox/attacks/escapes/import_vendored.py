"""Imports a copy of a package that another package contains, from the installed packages of some Python."""

import importlib
import json
import os
import sys

order = json.loads(sys.argv[1])

sys.path.insert(0, order["vendors"])
os.write(order["results"], importlib.import_module("carrier._vendor.package").TOKEN.encode() + b"\n")
