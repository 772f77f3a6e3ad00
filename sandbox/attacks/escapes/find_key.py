"""Looks for the segment of shared memory that an earlier run left, and removes it."""

import ctypes
import json
import os
import sys

order = json.loads(sys.argv[1])

libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(order["key"], 4096, 0o666)
if segment >= 0:
    libc.shmctl(segment, 0, 0)
    os.write(order["results"], order["token"].encode() + b"\n")
