"""The data dictionary of the tidy tables, a Frictionless tabular data package (specs.frictionlessdata.io)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gistpoint.core.study.declaration import Study
from gistpoint.sessions.exports.study.columns import CellType, TidyColumn, TidyTable, tables

DATAPACKAGE = "datapackage.json"
_DIALECT = {
    "delimiter": ",",
    "lineTerminator": "\r\n",
    "quoteChar": '"',
    "doubleQuote": True,
    "skipInitialSpace": False,
    "header": True,
    "csvddfVersion": 1.2,
}


def datapackage(study: Study, written: Mapping[str, tuple[str, bytes]]) -> bytes:
    """Return the content of `datapackage.json`; `written` maps table names to file names and contents."""
    simulated = study.simulated
    title = study.title or study.id
    package = {
        "profile": "tabular-data-package",
        "name": f"simulated-{study.id}" if simulated else study.id,
        "title": f"SIMULATED: {title}" if simulated else title,
        "description": "A study of gistpoint: attempts at coding tasks by people, and models alongside them."
        + (" All of it is simulated: no real person or model took part." if simulated else ""),
        "simulated": simulated,
        "resources": [_resource(table, *written[table.name]) for table in tables()],
    }
    return json.dumps(package, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"


def _resource(table: TidyTable, path: str, content: bytes) -> dict[str, Any]:
    return {
        "profile": "tabular-data-resource",
        "name": table.name,
        "path": path,
        "description": table.meaning,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "dialect": _DIALECT,
        "schema": {
            "fields": [_field(column) for column in table.columns],
            "missingValues": [""],
            "primaryKey": list(table.key),
            **({"foreignKeys": _foreign_keys(table)} if table.references else {}),
        },
    }


def _field(column: TidyColumn) -> dict[str, Any]:
    constraints: dict[str, Any] = {"required": True} if column.required else {}
    if column.values:
        constraints["enum"] = list(column.values)
    return {
        "name": column.name,
        "type": column.type.value,
        **({"format": "default"} if column.type is CellType.MOMENT else {}),
        "description": column.meaning,
        **({"unit": column.unit} if column.unit else {}),
        **({"constraints": constraints} if constraints else {}),
    }


def _foreign_keys(table: TidyTable) -> list[dict[str, Any]]:
    keys = {known.name: known.key for known in tables()}
    return [
        {
            "fields": [reference.column],
            "reference": {"resource": reference.table, "fields": list(keys[reference.table])},
        }
        for reference in table.references
    ]
