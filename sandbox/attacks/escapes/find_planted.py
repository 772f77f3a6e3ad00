"""Looks for a file that an earlier run left."""

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


def is_planted(path: str) -> bool:
    try:
        with open(path) as file:
            return order["victim_mark"] in file.read()
    except OSError:
        return False


if any(is_planted(os.path.join(place, order["name"])) for place in places):
    os.write(order["results"], order["token"].encode() + b"\n")
