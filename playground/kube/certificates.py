"""The certificates and keys of a control plane for tests, made by openssl."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Nothing of the machine's own configuration of openssl gets into the certificates.
_CONFIGURATION = "[req]\ndistinguished_name = subject\n[subject]\n"
_CURVE = ("ec_paramgen_curve:P-256",)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, files in PEM."""

    certificate: Path
    key: Path


class Authority:
    """Signs what the API server trusts: its own certificate and those of its users. Valid for two days."""

    def __init__(self, directory: Path, signed: Path) -> None:
        """Use the authority in `directory`, or make a new one there; the files of what it signs go to `signed`."""
        for folder in (directory, signed):
            folder.mkdir(parents=True, exist_ok=True)
        self._directory = signed
        self._configuration = signed / "openssl.cnf"
        self._configuration.write_text(_CONFIGURATION, encoding="ascii")
        self._own = KeyPair(directory / "ca.crt", directory / "ca.key")
        if not self._own.certificate.exists():
            self._new(self._own, "/CN=test authority", "basicConstraints=critical,CA:TRUE")

    @property
    def certificate(self) -> Path:
        """Return what clients trust."""
        return self._own.certificate

    def server(self, names: Sequence[str]) -> KeyPair:
        """Return the pair of the API server, for names such as `DNS:localhost` and `IP:127.0.0.1`."""
        alternatives = f"subjectAltName={','.join(names)}"
        return self._signed("server", "/CN=kube-apiserver", "extendedKeyUsage=serverAuth", alternatives)

    def user(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """Return the pair of a client: Kubernetes takes its user and groups from the certificate's subject."""
        subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
        return self._signed(f"user-{name}".replace(":", "-"), subject, "extendedKeyUsage=clientAuth")

    def signing_key(self) -> Path:
        """Return the key that signs the tokens of ServiceAccounts."""
        key = self._directory / "service-accounts.key"
        if not key.exists():
            # The older of two forms: Kubernetes finds the public key in it, too.
            _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
        return key

    def _signed(self, stem: str, subject: str, *extensions: str) -> KeyPair:
        pair = KeyPair(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        self._new(pair, subject, "basicConstraints=CA:FALSE", *extensions, signed_by=self._own)
        return pair

    def _new(self, pair: KeyPair, subject: str, *extensions: str, signed_by: KeyPair | None = None) -> None:
        key = ("-newkey", "ec", "-pkeyopt", *_CURVE, "-nodes", "-keyout", str(pair.key))
        added = [part for extension in extensions for part in ("-addext", extension)]
        by = ("-CA", str(signed_by.certificate), "-CAkey", str(signed_by.key)) if signed_by else ()
        form = ("-x509", "-days", "2", "-subj", subject, "-out", str(pair.certificate))
        _openssl("req", "-config", str(self._configuration), *key, *form, *added, *by)


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
