"""Looks for the command lines of the host's processes."""

import json
import os
import sys

order = json.loads(sys.argv[1])

for name in os.listdir("/proc"):
    if name.isdigit():
        with open(f"/proc/{name}/cmdline", "rb") as file:
            if file.read().endswith(b"\0" + order["victim_mark"].encode() + b"\0"):
                os.write(order["results"], order["token"].encode() + b"\n")
