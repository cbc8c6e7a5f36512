"""A certificate for servers on this machine, made by Java's own keytool: what a broker has, and what its clients."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

STORE_PASSWORD = "only-for-tests"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The file that the broker has, with the private key, and the one by which clients know it."""

    store: Path
    authority: Path

    @property
    def of_broker(self) -> dict[str, str]:
        """Settings of a broker."""
        return {"ssl.keystore.location": str(self.store), "ssl.keystore.type": "PKCS12",
                "ssl.keystore.password": STORE_PASSWORD, "ssl.key.password": STORE_PASSWORD}  # fmt: skip

    @property
    def of_client(self) -> dict[str, str]:
        """Settings of a client that trusts it, and speaks to it with a password."""
        return {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "ssl.ca.location": str(self.authority)}


def certificate(folder: Path) -> Certificate:
    """Make one for 127.0.0.1."""
    store, authority = folder / "broker.p12", folder / "authority.pem"
    _keytool("-genkeypair", "-keystore", str(store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD,
             "-alias", "broker", "-keyalg", "EC", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1",
             "-ext", "bc:c", "-validity", "2")  # fmt: skip
    _keytool("-exportcert", "-rfc", "-keystore", str(store), "-storepass", STORE_PASSWORD, "-alias", "broker",
             "-file", str(authority))  # fmt: skip
    return Certificate(store, authority)


def _keytool(*arguments: str) -> None:
    home = os.environ.get("JAVA_HOME")
    tool = os.path.join(home, "bin", "keytool") if home else "keytool"
    subprocess.run([tool, *arguments], check=True, capture_output=True)
