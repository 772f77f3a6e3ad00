"""Opens a private file of the host to everyone."""

import json
import os
import sys

order = json.loads(sys.argv[1])

os.chmod(order["private"], 0o666)
