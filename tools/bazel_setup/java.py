"""What the Java side of a Debian Bazel needs in another place: its class path and its CA certificates."""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
import zipfile
from pathlib import Path

HOST_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def manifest_class_path(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as jar:
            text = jar.read("META-INF/MANIFEST.MF").decode("utf-8", "replace")
    except (KeyError, zipfile.BadZipFile):
        return []
    found = re.search(r"^Class-Path:(.*)$", re.sub(r"\r?\n ", "", text), re.M)
    return found[1].split() if found else []


def write_class_path(root: Path, final: Path) -> tuple[int, list[str]]:
    """Move Debian's list of jars into the prefix, dependencies first; returns their count and the absent ones.

    The jars' manifests name one another by absolute system paths. Naming every jar, each one after what
    its manifest names, keeps a host's own /usr/share/java out of the server.
    """
    listing = root / "usr/share/bazel/bazel_classpath_debian_depends.txt"
    order: list[str] = []
    seen: set[str] = set()
    absent: list[str] = []

    def visit(jar: str) -> None:
        if jar in seen:
            return
        seen.add(jar)
        path = root / jar.lstrip("/")
        if not path.exists():
            absent.append(os.path.basename(jar))
            return
        for need in manifest_class_path(path):
            visit(os.path.normpath(os.path.join(os.path.dirname(jar), need)))
        order.append(jar)

    for line in listing.read_text().split():
        visit(line)
    listing.write_text("".join(f"{final}/root{jar}\n" for jar in order))
    return len(order), sorted(absent)


def write_trust_store(root: Path) -> int:
    """The host's CA certificates as a Java key store, so that https works in repository rules.

    The JKS format in full: magic, version, entries, then a digest keyed with the conventional password.
    """
    out = root / "etc/ssl/certs/java/cacerts"
    out.parent.mkdir(parents=True, exist_ok=True)
    certificates: list[bytes] = []
    if HOST_CERTIFICATES.is_file():
        text = HOST_CERTIFICATES.read_text(errors="replace")
        for pem in re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", text, re.S):
            certificates.append(ssl.PEM_cert_to_DER_cert(pem))

    def utf(text: str) -> bytes:
        raw = text.encode()
        return struct.pack(">H", len(raw)) + raw

    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for at, der in enumerate(certificates):
        body += struct.pack(">I", 2) + utf(f"ca{at}") + struct.pack(">Q", 0)
        body += utf("X.509") + struct.pack(">I", len(der)) + der
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    out.write_bytes(body + hashlib.sha1(salt + body).digest())
    return len(certificates)
