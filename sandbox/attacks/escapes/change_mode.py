"""Gives everyone access to a private file of the host."""

import json
import os
import sys

order = json.loads(sys.argv[1])

os.chmod(order["private"], 0o666)
