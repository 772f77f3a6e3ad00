"""Leaves a file with a given name for the next run, in every place where a run may write.

The file ends with the mark of this series of attacks, because other series may leave such files at the same
time.
"""

import json
import os
import sys

order = json.loads(sys.argv[1])

places = [
    order["site"],
    os.getcwd(),
    os.path.expanduser("~"),
    os.environ.get("TMPDIR", "/tmp"),
    "/tmp",
    "/dev/shm",
]
for place in places:
    path = os.path.join(place, order["name"])
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.chmod(os.path.dirname(path), 0o755)
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "w") as file:
            file.write(f"{order['text']}# {order['victim_mark']}\n")
    except OSError:
        continue
