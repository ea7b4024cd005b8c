"""What SARIF asks of the properties that compatcheck writes, and of no others.

The rules are those of https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
INDEX = {"type": "integer", "minimum": 0}
LINE = {"type": "integer", "minimum": 1}
BAG: dict[str, Any] = {
    "type": "object",
    "properties": {"tags": {"type": "array", "uniqueItems": True, "items": TEXT}},
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
WORDS = {"type": "object", "additionalProperties": TEXT}


def of(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def rows(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


MESSAGE = of("text", text=TEXT, markdown=TEXT)
ARTIFACT = of("uri", uri={"type": "string", "format": "uri-reference"}, uriBaseId=TEXT)
LOCATION = of(
    "physicalLocation",
    physicalLocation=of("artifactLocation", artifactLocation=ARTIFACT, region=of("startLine", startLine=LINE)),
    message=MESSAGE,
)
RULE = of(
    "id shortDescription fullDescription help",
    id=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    helpUri={"type": "string", "format": "uri"},
    defaultConfiguration=of("level", level=LEVEL),
    properties=BAG,
)
SUPPRESSION = of(
    "kind",
    kind={"enum": ["inSource", "external"]},
    status={"enum": ["accepted", "underReview", "rejected"]},
    justification=TEXT,
)
RESULT = of(
    "message ruleId ruleIndex locations partialFingerprints",
    ruleId=TEXT,
    ruleIndex=INDEX,
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=LEVEL,
    message=MESSAGE,
    locations={**rows(LOCATION), "minItems": 1, "maxItems": 10},
    partialFingerprints=WORDS,
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
    suppressions={**rows(SUPPRESSION), "uniqueItems": True},
    properties=BAG,
)
INVOCATION = of(
    "executionSuccessful",
    executionSuccessful={"type": "boolean"},
    exitCode={"type": "integer"},
    exitCodeDescription=TEXT,
    properties=BAG,
    toolConfigurationNotifications=rows(of("message", message=MESSAGE, level=LEVEL, locations=rows(LOCATION))),
)
RUN = of(
    "tool results",
    tool=of("driver", driver=of("name rules", name=TEXT, version=TEXT, rules=rows(RULE), properties=BAG)),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={"type": "object", "additionalProperties": ARTIFACT},
    invocations=rows(INVOCATION),
    results=rows(RESULT),
)
RULES = of(
    "version runs", **{"$schema": {"type": "string", "format": "uri"}}, version={"const": "2.1.0"}, runs=rows(RUN)
)
