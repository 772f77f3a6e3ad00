"""Fills the disk with files, each small enough, and leaves them, faster than anybody can look."""

import json
import os
import sys

order = json.loads(sys.argv[1])

for number in range(order["count"]):
    with open(f"hog{number}", "wb") as file:
        file.write(bytes(order["bytes"]))
os.write(order["results"], order["token"].encode() + b"\n")
