"""A verifier in Python, for comparison: signature, subject, schema, stamp and the
digests of the artifacts. It judges nothing and reads no conversation."""

import hashlib
import json
import os
import sys

import jsonschema
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def main(schema, public, bundles):
    validator = jsonschema.Draft202012Validator(json.load(open(schema)))
    public = load_ssh_public_key(open(public, "rb").read())
    for path in bundles:
        data = open(path, "rb").read()
        sealed = json.load(open(path[: -len("json")] + "intoto.jsonl"))
        keyid = sealed["signatures"][0]["keyid"]
        envelope = Envelope.from_dict(sealed)
        envelope.verify([SSlibKey.from_crypto(public, keyid=keyid)], 1)
        statement = json.loads(envelope.payload)
        digest = hashlib.sha256(data).hexdigest()
        assert statement["subject"][1]["digest"]["sha256"] == digest
        evidence = json.loads(data)
        validator.validate(evidence)
        stamp = evidence.pop("evidence_sha256")
        text = json.dumps(evidence, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(text.encode()).hexdigest() == stamp
        for artifact in evidence["artifacts"]:
            content = open(os.path.join(os.path.dirname(path), artifact["path"]), "rb").read()
            assert hashlib.sha256(content).hexdigest() == artifact["sha256"]


main(sys.argv[1], sys.argv[2], sys.argv[3:])
