"""A certificate authority for tests, and certificates that it has signed, all in one folder."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Authority:
    """An authority with its certificate `ca.crt` in a folder; creating the authority makes both."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=us"),
            *("-keyout", "ca.key", "-out", "ca.crt"),
        )

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"

    def sign(self, name: str, subject: str) -> tuple[Path, Path]:
        """Make a certificate and a key for a subject, `IP:127.0.0.2` or `DNS:host`; return their files."""
        self._openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"),
            *("-keyout", f"{name}.key", "-out", f"{name}.csr"),
        )
        (self.folder / "names").write_text(f"subjectAltName={subject}")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", f"{name}.crt", "-extfile", "names"),
        )
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)
