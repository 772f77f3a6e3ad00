"""Looks for the command lines of the host's processes."""

import json
import os
import sys

order = json.loads(sys.argv[1])

for name in os.listdir("/proc"):
    if name.isdigit():
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                seen = file.read()
        except OSError:
            continue
        if seen.endswith(b"\0" + order["victim_mark"].encode() + b"\0"):
            os.write(order["results"], order["token"].encode() + b"\n")
