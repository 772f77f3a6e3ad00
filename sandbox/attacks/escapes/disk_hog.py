"""Fills the disk with many small files, and leaves them, faster than anybody can look."""

import json
import os
import sys

order = json.loads(sys.argv[1])

for number in range(order["count"]):
    with open(f"hog{number}", "wb") as file:
        file.write(bytes(order["bytes"]))
os.write(order["results"], order["token"].encode() + b"\n")
