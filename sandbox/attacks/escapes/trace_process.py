"""Attaches to a process of the host as a debugger would."""

import ctypes
import json
import os
import sys

order = json.loads(sys.argv[1])

libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, order["victim"], 0, 0) == 0:
    os.write(order["results"], order["token"].encode() + b"\n")
    os.waitpid(order["victim"], 0x40000000)
    libc.ptrace(17, order["victim"], 0, 0)
