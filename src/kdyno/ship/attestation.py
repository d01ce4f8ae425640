"""A card in the forms of others: an in-toto statement with SLSA provenance, and CycloneDX's list of components."""

from __future__ import annotations

import json
from typing import Any

from kdyno.ship.card import Card

STATEMENT = "https://in-toto.io/Statement/v1"
PROVENANCE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:kdyno:ship:v1"
BUILDER = "urn:kdyno"


def statement(card: Card) -> dict[str, Any]:
    """Return the in-toto statement about the kernel file of a card. It isn't signed. Pure."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": card.image.path.lstrip("/"), "digest": {"sha256": card.image.sha256}}],
        "predicateType": PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"recipe": card.recipe, "source": card.source.spec, "release": card.release},
                "internalParameters": {
                    "make": list(card.make),
                    "environment": card.environment,
                    "configuration": {"base": card.configuration.base, "asked": card.configuration.asked},
                    "verdicts": card.verdicts.model_dump(mode="json"),
                },
                "resolvedDependencies": _dependencies(card),
            },
            "runDetails": {
                "builder": {"id": BUILDER, "version": {"kdyno": card.kdyno}},
                "metadata": {"invocationId": card.judged.key},
            },
        },
    }


def _dependencies(card: Card) -> list[dict[str, Any]]:
    kind, _, value = card.source.identity.partition(":")
    source_digest = {"gitCommit" if kind == "git" else "sha256": value}
    inputs = [{"name": f"input {name}", "digest": {"sha256": digest}} for name, digest in card.inputs.items()]
    return [
        {"name": f"linux {card.source.version}", "digest": source_digest, "annotations": {"kind": kind}},
        {"name": card.compiler.banner, "digest": {"sha256": card.compiler.digest}},
        {"name": "configuration", "digest": {"sha256": card.configuration.sha256}},
        *({"name": f"patch {digest[:12]}", "digest": {"sha256": digest}} for digest in card.patches),
        *inputs,
    ]


def components(card: Card) -> dict[str, Any]:
    """Return the kernel, its source, its patches and its compiler as a list in CycloneDX 1.6. The same card gives the
    same list.
    """
    from uuid import NAMESPACE_URL, uuid5

    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType, Patch, PatchClassification, Pedigree
    from cyclonedx.output.json import JsonV1Dot6

    def sha256(value: str) -> HashType:
        return HashType(alg=HashAlgorithm.SHA_256, content=value)

    kernel = Component(
        name="linux",
        version=card.release,
        type=ComponentType.OPERATING_SYSTEM,
        bom_ref="kernel",
        hashes=[sha256(card.image.sha256)],
        pedigree=Pedigree(patches=[Patch(type=PatchClassification.UNOFFICIAL) for _ in card.patches]),
        properties=[
            Property(name="kdyno:image", value=card.judged.key),
            *(Property(name=f"kdyno:patch:{number}", value=value) for number, value in enumerate(card.patches)),
        ],
    )
    kind, _, value = card.source.identity.partition(":")
    source = Component(
        name="linux source",
        version=card.source.version,
        type=ComponentType.FILE,
        bom_ref="source",
        description=card.source.origin,
        hashes=[] if kind == "git" else [sha256(value)],
        properties=[Property(name="kdyno:identity", value=card.source.identity)],
    )
    compiler = Component(
        name=card.compiler.family,
        version=card.compiler.version,
        type=ComponentType.APPLICATION,
        bom_ref="compiler",
        description=card.compiler.banner,
        hashes=[sha256(card.compiler.digest)],
    )
    bom = Bom(
        components=[source, compiler], serial_number=uuid5(NAMESPACE_URL, f"urn:kdyno:{card.image.sha256}"), version=1
    )
    bom.metadata.component = kernel
    bom.register_dependency(kernel, [source, compiler])
    written: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    written["metadata"].pop("timestamp", None)  # the time of the call says nothing of the kernel
    return written
