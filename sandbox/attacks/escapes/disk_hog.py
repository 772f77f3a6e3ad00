"""Fills the disk with many files, faster than any check can run, and leaves them there."""

import json
import os
import sys

order = json.loads(sys.argv[1])

for number in range(order["count"]):
    with open(f"hog{number}", "wb") as file:
        file.write(bytes(order["bytes"]))
os.write(order["results"], order["token"].encode() + b"\n")
