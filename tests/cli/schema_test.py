#!/usr/bin/env python3
"""The JSON Schemas accept every shipped file and a written plan, and refuse an unknown key. Skipped (77) without the
packages python3-jsonschema and python3-yaml.

    schema_test.py BINARY CONFIGS
"""
import copy
import json
import re
import subprocess
import sys
from pathlib import Path

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}; sudo apt-get install python3-jsonschema python3-yaml")
    sys.exit(77)


def without_comments(text):
    return re.sub(r"^\s*//.*$|(?<=[\s,])//\s.*$", "", text, flags=re.MULTILINE)


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    binary, configs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    inputs = Path(__file__).resolve().parent / "inputs"
    schemas = {name: json.loads(output(binary, "schema", name)) for name in ("cluster", "model", "launch_plan")}
    documents = [("cluster", path, json.loads(without_comments(path.read_text())))
                 for path in sorted((configs / "clusters").glob("*.json"))]
    documents += [("model", path, yaml.safe_load(path.read_text()))
                  for path in sorted((configs / "models").glob("*.yaml"))]
    plan = json.loads(output(binary, "plan", inputs / "tiny.json", inputs / "mini.yaml", "--json", "-q"))
    documents += [("launch_plan", "a plan", plan), ("model", "a plan's model", plan["model"])]
    assert len(documents) > 20

    for name, path, document in documents:
        validator = jsonschema.Draft202012Validator(schemas[name])
        errors = [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(document)]
        assert not errors, (path, errors)
        worse = copy.deepcopy(document)
        worse["frobnicate"] = 1
        assert not validator.is_valid(worse), (path, "takes unknown keys")


if __name__ == "__main__":
    main()
