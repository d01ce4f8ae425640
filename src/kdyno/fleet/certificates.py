"""Makes the certificates of a fleet: an authority of its own, and one certificate for each role.

Nobody is known by a host name: who has a certificate of the authority belongs to the fleet, and nobody else does. That
of a client can't be used by one who listens, so that a client can't pose as the scheduler.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kdyno.fleet.fleet_file import AUTHORITY, Role

DAYS = 825
"""The days that a certificate is valid."""
SKEW = timedelta(days=1)
"""A certificate is valid from so much before it is made: the clocks of the hosts may differ."""
ID_DIGITS = 16


def make_certificates(directory: Path) -> str:
    """Make the authority and the certificates in a directory; return the id of the fleet."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    name = _name("kdyno fleet")
    authority = (
        _builder(name, name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    identity = hashlib.sha256(authority.public_bytes(serialization.Encoding.DER)).hexdigest()[:ID_DIGITS]
    _write_certificate(directory / AUTHORITY, authority)
    _write_key(directory / "ca.key", authority_key)
    for role in get_args(Role):
        key = ec.generate_private_key(ec.SECP256R1())
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if role != "client":
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        certificate = (
            _builder(_name(f"kdyno {role}"), name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False
            )
            .sign(authority_key, hashes.SHA256())
        )
        _write_certificate(directory / f"{role}.pem", certificate)
        _write_key(directory / f"{role}.key", key)
    return identity


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + timedelta(days=DAYS))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
