"""TLS on the doors' own ports. Spec: HTTP, TLS."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import lake
from lake.config import load
from lake.errors import InvalidParameter, IoFailure
from lake.net.tls import context_of, is_own_machine, takes_plain
from tests.cluster import Node, free_port, running_node


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1)).add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    )  # fmt: skip
    certificate, secret = folder / f"{name}.pem", folder / f"{name}.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, secret


@dataclass(frozen=True, slots=True)
class Secure:
    """A node with a certificate, the port of its Postgres door, and a certificate that is not its own."""

    node: Node
    port: int
    certificate: Path
    other: Path


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """A node that speaks TLS on both doors."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = make_certificate(folder, "node")
    other, _ = make_certificate(folder, "other")
    port = free_port()
    flags = ("--tls-cert", str(certificate), "--tls-key", str(key), "--pg", f"127.0.0.1:{port}")
    with running_node(folder / "lake", *flags) as node:
        yield Secure(node, port, certificate, other)


def test_https_and_plain_on_one_port(secure: Secure) -> None:
    """The first byte decides; the Python client checks the certificate by ``ca``. HTTP Rights 17."""
    with lake.connect(f"https://127.0.0.1:{secure.node.port}", ca=str(secure.certificate)) as db:
        assert db.sql("SELECT 1 AS a").rows() == [(1,)]
        assert len(db.sql("SELECT * FROM range(300000)").rows()) == 300_000
        db.sql("CREATE TABLE IF NOT EXISTS t (a INT)")
        assert db.append("t", [{"a": number} for number in range(1000)]).duplicate is False
    assert secure.node.sql("SELECT 1 AS a") == [{"a": 1}]
    assert f"https://127.0.0.1:{secure.node.port}" in secure.node.output()


def test_another_certificate_is_not_trusted(secure: Secure) -> None:
    """58030 where the node's certificate is signed by somebody else."""
    with lake.connect(f"https://127.0.0.1:{secure.node.port}", ca=str(secure.other)) as db, pytest.raises(IoFailure):
        db.sql("SELECT 1")


def test_postgres_over_tls(secure: Secure) -> None:
    """SSLRequest is answered S; the client checks the certificate and its name."""
    dsn = f"host=127.0.0.1 port={secure.port} user=admin dbname=lake"
    with psycopg.connect(f"{dsn} sslmode=verify-full sslrootcert={secure.certificate}", autocommit=True) as client:
        assert client.pgconn.ssl_in_use
        assert client.execute("SELECT sum(value) FROM range(100000)").fetchone() == (4_999_950_000,)
        with client.cursor().copy("COPY (SELECT * FROM range(50000)) TO STDOUT") as copy:
            assert sum(1 for _ in copy.rows()) == 50_000
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        psycopg.connect(f"{dsn} sslmode=verify-full sslrootcert={secure.other}")
    with psycopg.connect(f"{dsn} sslmode=disable") as client:
        assert not client.pgconn.ssl_in_use


def test_nothing_unencrypted_slips_in(secure: Secure) -> None:
    """Bytes sent behind SSLRequest and before the handshake end the connection."""
    with socket.create_connection(("127.0.0.1", secure.port), timeout=30) as client:
        client.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f" + b"Q\x00\x00\x00\x0dSELECT 1\x00")
        assert b"unencrypted data after SSL request" in client.recv(1_000)


def test_bad_handshakes_do_no_harm(secure: Secure) -> None:
    """A handshake that is none, and a client that goes away, leave the doors as they were."""
    for port, greeting in ((secure.node.port, b""), (secure.port, b"\x00\x00\x00\x08\x04\xd2\x16\x2f")):
        for sent in (b"\x16\x03\x01\x00\x05hello" * 20, b"\x16", b""):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(greeting)
                if greeting:
                    assert client.recv(1) == b"S"
                client.sendall(sent)
    assert secure.node.sql("SELECT 1 AS a") == [{"a": 1}]
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", secure.node.port, context=old, timeout=30)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok"
    connection.close()


def test_plain_from_other_machines(tmp_path: Path) -> None:
    """Only where LAKE_TLS=optional, or where there is no certificate at all. HTTP Rights 17."""
    certificate, key = make_certificate(tmp_path, "node")
    options = {"lake": "memory:", "tls_cert": str(certificate), "tls_key": str(key)}
    required, optional = load(environ={}, options=options), load(environ={"LAKE_TLS": "optional"}, options=options)
    context = context_of(required)
    assert context is not None
    assert not takes_plain(required, context, "10.0.0.7", "10.0.0.1")
    assert takes_plain(required, context, "10.0.0.1", "10.0.0.1") and takes_plain(required, context, "127.0.0.1", "127.0.0.1")
    assert takes_plain(optional, context, "10.0.0.7", "10.0.0.1") and takes_plain(required, None, "10.0.0.7", "10.0.0.1")
    assert is_own_machine("::1", "::1") and not is_own_machine("somewhere", "elsewhere")


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    """22023 for one without the other, and for files that do not go together."""
    certificate, _ = make_certificate(tmp_path, "one")
    _, key = make_certificate(tmp_path, "two")
    for options in ({"tls_cert": str(certificate)}, {"tls_cert": str(certificate), "tls_key": str(key)},
                    {"tls_cert": str(tmp_path / "missing"), "tls_key": str(key)}):  # fmt: skip
        with pytest.raises(InvalidParameter, match="--tls-cert and --tls-key"):
            context_of(load(environ={}, options={"lake": "memory:", **options}))
