"""Holds a JSON document against a JSON Schema.

    schema_check.py SCHEMA DOCUMENT

Both are files. Exits with 1 and the first deviations where the document is not valid.
"""

import json
import sys

import jsonschema


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


schema, document = map(read, sys.argv[1:3])
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
wrong = [f"{error.json_path}: {error.message}" for error in validator(schema).iter_errors(document)]
if wrong:
    sys.exit("\n".join(wrong[:10]))
