"""Takes memory, in one process or in several, and holds it."""

import json
import os
import sys
import time

order = json.loads(sys.argv[1])

for _ in range(order["processes"] - 1):
    if os.fork() == 0:
        break
held = bytearray(b"x") * order["bytes"]
time.sleep(order["hold"])
os.write(order["results"], order["token"].encode() + b"\n")
