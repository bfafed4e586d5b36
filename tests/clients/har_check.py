"""Whether standard input is an HTTP archive by the published schema of HAR 1.2 (`har/schema.json`)."""

import json
import pathlib
import sys

from jsonschema import Draft6Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT6


schemas = json.loads((pathlib.Path(__file__).parent / "har" / "schema.json").read_text())
registry = Registry().with_resources(
    [(schema["$id"].rstrip("#"), Resource.from_contents(schema, DRAFT6)) for schema in schemas]
)
whole = {"$ref": "har.json"}
validator = Draft6Validator(whole, registry=registry, format_checker=FormatChecker())
archive = json.load(sys.stdin)
errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(archive)]
# A check that finds nothing wrong with nothing would find nothing.
empty = [error.message for error in validator.iter_errors({"log": {"entries": [{}]}})]
print(json.dumps(dict(ok=not errors and bool(empty), errors=errors[:10], entries=len(archive["log"]["entries"]))))
