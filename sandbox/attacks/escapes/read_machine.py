"""Reads files that distinguish machines; the order contains the hash of each as the host sees it."""

import hashlib
import json
import os
import sys

order = json.loads(sys.argv[1])

for path, digest in order["machine"].items():
    try:
        with open(path, "rb") as file:
            found = hashlib.sha256(file.read()).hexdigest()
    except OSError:
        continue
    if found == digest:
        os.write(order["results"], order["token"].encode() + b"\n")
