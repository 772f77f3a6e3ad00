"""Makes a user namespace, in which it would be root over more of the kernel."""

import ctypes
import json
import os
import sys

order = json.loads(sys.argv[1])

if ctypes.CDLL(None).unshare(0x10000000) == 0:
    os.write(order["results"], order["token"].encode() + b"\n")
