"""Leaves a file in a folder of the host."""

import json
import os
import sys

order = json.loads(sys.argv[1])

with open(os.path.join(order["outside"], "written"), "w") as file:
    file.write("here")
