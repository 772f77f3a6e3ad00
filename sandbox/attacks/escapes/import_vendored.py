"""Imports a copy of a package that is bundled in another package, from any Python's installed packages."""

import importlib
import json
import os
import sys

order = json.loads(sys.argv[1])

sys.path.insert(0, order["vendors"])
os.write(order["results"], importlib.import_module("carrier._vendor.package").TOKEN.encode() + b"\n")
