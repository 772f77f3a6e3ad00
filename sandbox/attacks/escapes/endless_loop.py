"""Loops forever, and ignores signals that ask it to end."""

import json
import signal
import sys

order = json.loads(sys.argv[1])

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
while True:
    pass
