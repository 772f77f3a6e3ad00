"""Looks for a network interface other than loopback."""

import json
import os
import socket
import sys

order = json.loads(sys.argv[1])

if any(name != "lo" and not name.startswith(("tunl", "sit", "ip6tnl")) for _, name in socket.if_nameindex()):
    os.write(order["results"], order["token"].encode() + b"\n")
