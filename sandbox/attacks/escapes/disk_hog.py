"""Fills the disk with files, each small enough, and holds them."""

import json
import os
import sys
import time

order = json.loads(sys.argv[1])

for number in range(order["count"]):
    with open(f"hog{number}", "wb") as file:
        file.write(bytes(order["bytes"]))
time.sleep(2)
os.write(order["results"], order["token"].encode() + b"\n")
