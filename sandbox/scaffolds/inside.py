"""The part of gistpoint inside an agent's sandbox, which forwards its two connections to sockets.

Started as a script, without gistpoint:

    inside.py forward PORT MODEL_SOCKET -- COMMAND ...   run a command, with the model's proxy at a port
    inside.py relay TOOLS_SOCKET                         be an MCP server on standard streams

The sandbox has no network but its own loopback.
"""

# mypy: ignore-errors

import contextlib
import os
import socket
import subprocess
import sys
import threading

BLOCK = 1 << 16


def connected(path):
    """Return a connection to a Unix socket."""
    to = socket.socket(socket.AF_UNIX)
    to.connect(path)
    return to


def copy(read, write, done):
    """Copy blocks until the end, and then call `done`."""
    with contextlib.suppress(OSError):
        while block := read(BLOCK):
            write(block)
    with contextlib.suppress(OSError):
        done()


def join(one, path):
    """Copy between a connection and a new one to a socket, in both directions."""
    try:
        other = connected(path)
    except OSError:
        one.close()
        return
    arguments = (one.recv, other.sendall, lambda: other.shutdown(socket.SHUT_WR))
    threading.Thread(target=copy, args=arguments, daemon=True).start()
    copy(other.recv, one.sendall, lambda: one.shutdown(socket.SHUT_WR))
    other.close()
    one.close()


def forward(port, path, command):
    """Forward a port on loopback to a socket while a command runs; return its exit code."""
    server = socket.create_server(("127.0.0.1", port), backlog=64)

    def accept():
        while True:
            one, _ = server.accept()
            threading.Thread(target=join, args=(one, path), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return subprocess.call(command, stdin=subprocess.DEVNULL)


def relay(path):
    """Copy between the standard streams and a socket until the other side closes it; return 0."""
    other = connected(path)

    def write(block):
        while block:
            block = block[os.write(1, block) :]

    arguments = (lambda most: os.read(0, most), other.sendall, lambda: other.shutdown(socket.SHUT_WR))
    threading.Thread(target=copy, args=arguments, daemon=True).start()
    copy(other.recv, write, lambda: None)
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "forward":
        code = forward(int(sys.argv[2]), sys.argv[3], sys.argv[5:])
    else:
        code = relay(sys.argv[2])
    sys.stdout.flush()
    os._exit(code if code >= 0 else 128 - code)
