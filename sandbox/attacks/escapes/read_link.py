"""Reads the host's file to which a link in the tree points."""

import json
import os
import sys

order = json.loads(sys.argv[1])

with open("link", "rb") as file:
    os.write(order["results"], file.read() + b"\n")
