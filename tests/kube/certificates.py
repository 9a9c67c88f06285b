"""Self-signed certificates, and a server that knows its clients by theirs."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key."""

    chain: Path
    key: Path


def certificate(folder: Path, name: str) -> Certificate:
    """A new one in that folder, for 127.0.0.1 and of this common name."""
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    about = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(made.key), "-out", str(made.chain)]
    subprocess.run(["openssl", "req", "-x509", *kind, *about, *files], check=True, capture_output=True)
    return made


def serving(own: Certificate, *clients: Certificate) -> ssl.SSLContext:
    """What serves HTTPS with its own certificate, and asks for those of clients."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own.chain, own.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    for client in clients:
        context.load_verify_locations(client.chain)
    return context
