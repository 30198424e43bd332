#!/usr/bin/env python3
"""The JSON Schemas accept every shipped file and written plans, and refuse an unknown key; that of measurements, which
belong to their publications, refuses what the program refuses. Skipped (77) without the packages python3-jsonschema
and python3-yaml.

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


def written_plans(binary, configs, inputs):
    tiny, geo = inputs / "tiny.json", configs / "clusters" / "geo-two-zones.json"
    profiles = ",".join(str(configs / "profiles" / f"{name}-gpt-350m.json") for name in ("a100-40gb", "v100-16gb"))
    runs = {
        "a dense plan": (tiny, inputs / "mini.yaml"),
        "a plan of experts": (tiny, inputs / "moe.yaml"),
        "a plan of zero bubble": (tiny, inputs / "mini.yaml", "--schedule", "zero-bubble"),
        "a measured plan": (geo, configs / "models" / "gpt-350m-tf32.yaml", "--profile", profiles),
    }
    for title, arguments in runs.items():
        yield title, json.loads(output(binary, "plan", *arguments, "--json", "-q"))
    yield "a plan of interleaved chunks", json.loads((inputs / "interleaved.plan.json").read_text())


def check_measurements(binary, configs, inputs):
    """Every key of the schema is one that the program reads, and its type the program's."""
    schema = json.loads(output(binary, "schema", "measurements"))
    validator = jsonschema.Draft202012Validator(schema)
    dataset = json.loads((inputs / "measurements.json").read_text())
    assert validator.is_valid(dataset) and validator.is_valid(dataset["rows"])
    shipped = sorted((configs / "measurements").glob("*.json"))
    assert shipped and all(validator.is_valid(json.loads(path.read_text())) for path in shipped)
    for key in schema["$defs"]["measurement"]["properties"]:
        row = {"gpus": 1, key: {"wrong": 1} if key == "dp" else [[["wrong"]]]}
        if key == "model":
            row[key] = "wrong"
        assert not validator.is_valid([row]), row
        run = subprocess.run([binary, "accuracy", "/dev/stdin"], input=json.dumps([row]), capture_output=True, text=True,
                             check=False)
        assert run.returncode == 4 and f'"{key}" must be' in run.stderr, (row, run.stderr)


def main():
    binary, configs = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    names = ("cluster", "model", "profile", "timings", "launch_plan", "kernels", "operator_times",
             "serving_measurements")
    schemas = {name: json.loads(output(binary, "schema", name)) for name in names}
    documents = [(kind, path, json.loads(without_comments(path.read_text())))
                 for kind in ("cluster", "profile") for path in sorted((configs / f"{kind}s").glob("*.json"))]
    documents += [("operator_times", path, json.loads(path.read_text()))
                  for path in sorted((configs / "kernels").glob("*.json"))]
    documents += [("serving_measurements", path, json.loads(path.read_text()))
                  for path in sorted((configs / "measurements" / "serving").glob("fluidgpu.json"))]
    documents += [("kernels", path, json.loads(path.read_text()))
                  for path in sorted((configs / "measurements" / "serving").glob("gpt-*.json"))]
    documents += [("kernels", f"kernels of {model}", json.loads(output(
        binary, "kernels", "synth", model, "--phase", "prefill,decode", "--gpu", "L40S,T4", "--json", "-q")))
                  for model in ("llama-3-8b", "deepseek-v2-lite", "gpt2-medium")]
    documents += [("model", path, yaml.safe_load(path.read_text()))
                  for path in sorted((configs / "models").glob("*.yaml"))]
    documents += [("timings", f"{path}:{number}", json.loads(line))
                  for path in sorted((configs / "timings").glob("*.jsonl"))
                  for number, line in enumerate(path.read_text().splitlines(), 1)]
    for title, plan in written_plans(binary, configs, Path(__file__).resolve().parent / "inputs"):
        documents += [("launch_plan", title, plan), ("model", f"the model of {title}", plan["model"])]
        documents += [("profile", f"a profile of {title}", entry["profile"]) for entry in plan.get("profiles", [])]
    assert {name for name, _, _ in documents} == set(names)
    assert len(documents) > 20

    for name, path, document in documents:
        validator = jsonschema.Draft202012Validator(schemas[name])
        errors = [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(document)]
        assert not errors, (path, errors)
        worse = copy.deepcopy(document)
        worse["frobnicate"] = 1
        assert not validator.is_valid(worse), (path, "takes unknown keys")
    check_measurements(binary, configs, Path(__file__).resolve().parent / "inputs")


if __name__ == "__main__":
    main()
