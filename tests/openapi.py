"""Requests made of the HTTP door's own description, against a node: every answer is what the description says.

    python -m tests openapi --examples 50 --tool /path/to/schemathesis

Schemathesis (https://schemathesis.readthedocs.io) is a program of its own, and no dependency of the tests. What is checked:
status, content type, headers and body of each answer are described; an internal error is not, for its SQLSTATE is none that an
answer may have. Streams that do not end, and the statuses that it expects of errors (4xx; they are 500 here by the
specification) are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import lake.doors.http.app  # noqa: F401  (fills ROUTES)
from lake.doors.http.openapi import describe
from tests.cluster import running_node

CHECKS: Final = (
    "status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,"
    "unsupported_method,use_after_free"
)


def main(arguments: Sequence[str]) -> int:
    """The program's exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests openapi", description=__doc__.split("\n")[0])
    parser.add_argument("--tool", default="schemathesis")
    parser.add_argument("--examples", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    described = describe()
    streams = [op["operationId"] for path in described["paths"].values() for op in path.values() if op.get("x-streams")]
    with tempfile.TemporaryDirectory() as folder, running_node(Path(folder) / "lake") as node:
        node.sql("CREATE TABLE events (id BIGINT PRIMARY KEY, name VARCHAR); INSERT INTO events VALUES (1, 'a')")
        place = Path(folder) / "http.json"
        place.write_text(json.dumps(described))
        command = [options.tool, "run", str(place), "--url", node.url, "--checks", CHECKS, "--seed", str(options.seed)]
        command += ["--max-examples", str(options.examples), "--suppress-health-check", "all", "--warnings", "off"]
        command += ["--continue-on-failure", "--request-timeout", "60"]
        for name in streams:
            command += ["--exclude-operation-id", name]
        status = subprocess.run(command, check=False).returncode
        assert node.sql("SELECT 1 AS one") == [{"one": 1}], "the node does not answer SELECT 1"
    return status
