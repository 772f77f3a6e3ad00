"""Leaves a segment of shared memory in the kernel, which the next run could read."""

import ctypes
import json
import sys

order = json.loads(sys.argv[1])

libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(order["key"], 4096, 0o1666)
if segment < 0:
    sys.exit("no segment")
