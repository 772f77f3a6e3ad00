"""Reads a file of the host and reports its content."""

import json
import os
import sys

order = json.loads(sys.argv[1])

with open(order["target"], "rb") as file:
    os.write(order["results"], file.read() + b"\n")
