"""Ports for servers that a test starts as another process, which takes its port only seconds later."""

from __future__ import annotations

import random
import socket

PORTS = range(20_000, 30_000)
"""Below those of outgoing connections (32768-60999 on Linux), any of which may take a free one at any time, and of
Kubernetes' NodePorts (30000-32767); above those of Ray's workers (10002-19999)."""


def free_ports(count: int) -> list[int]:
    """That many ports on which nothing listens, and which no outgoing connection takes."""
    free = (port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))
    return [next(free) for _ in range(count)]


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
