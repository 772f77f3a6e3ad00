"""Lowers a host process's limit on open files, so that it can't open any more."""

import json
import os
import resource
import sys

order = json.loads(sys.argv[1])

resource.prlimit(order["victim"], resource.RLIMIT_NOFILE, (4, 4))
os.write(order["results"], order["token"].encode() + b"\n")
