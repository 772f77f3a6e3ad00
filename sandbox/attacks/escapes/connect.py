"""Reaches a server of the host over TCP, UDP, a socket in a folder, or an abstract socket."""

import json
import os
import socket
import sys

order = json.loads(sys.argv[1])

family, kind, address = order["address"]
given = tuple(address) if isinstance(address, list) else address
with socket.socket(family, kind) as client:
    client.settimeout(3)
    client.connect(given)
    if kind == socket.SOCK_DGRAM:
        client.send(b"hello")
    os.write(order["results"], client.recv(100) + b"\n")
