"""For scripts/calibrate and scripts/ablation: GPU types of configs/gpus, and `tangram accuracy` with changed ones."""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GPUS = ROOT / "configs" / "gpus"
NUMBER = r"-?[0-9.]+(?:[eE][-+]?[0-9]+)?"


def die(message):
    sys.exit(f"{Path(sys.argv[0]).name}: error: {message}")


def without_comments(text):
    """JSON of a catalogue file: // to the end of the line goes, unless inside a string."""
    return re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*', lambda match: match.group(1) or "", text)


class Catalogue:
    """The files of a folder, `like` resolved. A figure is a number of a GPU type's "calibration", or "pcie.NAME"."""

    def __init__(self, folder):
        self.files = {path: path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.json"))}
        self.records = {}
        for text in self.files.values():
            self.records.update(json.loads(without_comments(text))["gpus"])
        if not self.records:
            die(f"{folder}: no GPU types")

    def part(self, name, key):
        """An object of a GPU type (calibration, pcie), with what it takes over from another."""
        record = self.records[name]
        above = self.part(record["like"], key) if "like" in record else {}
        return {**above, **record.get(key, {})}

    def figure(self, name, figure):
        key, inner = split(figure)
        return self.part(name, key)[inner]

    def peak(self, name, dtype):
        """Dense, in FLOP/s."""
        return self.part(name, "peak_tflops")[dtype] * 1e12

    def changed(self, name, figures):
        """The GPU type as it is, but for these figures: a record of tangram.gpus/1."""
        record = {"like": name, "calibration": self.part(name, "calibration")}
        if "pcie" in self.records[name]:
            record["pcie"] = self.part(name, "pcie")
        for figure, value in figures.items():
            key, inner = split(figure)
            record[key][inner] = value
        return record

    def write(self, name, figure, text):
        """In place, so that comments and layout stay; nothing where the record takes the figure over from another."""
        key, inner = split(figure)
        if inner not in self.records[name].get(key, {}):
            return
        start = rf'"{re.escape(name)}": \{{'
        pattern = re.compile(rf'({start}.*?"{key}": \{{.*?"{inner}": ){NUMBER}', re.DOTALL)
        for path, old in self.files.items():
            if re.search(start, old):
                self.files[path], count = pattern.subn(lambda match: match.group(1) + text, old, count=1)
                if count != 1:
                    die(f"{path}: cannot find {figure} of {name}")

    def save(self):
        for path, text in self.files.items():
            if path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                print(f"wrote {path}")


def split(figure):
    key, _, inner = figure.rpartition(".")
    return key or "calibration", inner


def read_rows(path):
    """Of what `tangram accuracy` reads."""
    try:
        text = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        die(f"{path}: {error}")
    rows = text.get("rows") if isinstance(text, dict) else text
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "id" in row for row in rows):
        die(f"{path}: not a dataset: an array of objects, each with an \"id\"")
    return rows


def accuracy_with(binary, dataset, gpus, scratch, options=()):
    """As accuracy(), with these records of GPU types in place of the program's."""
    file = Path(scratch) / "gpus.json"
    file.write_text(json.dumps({"schema": "tangram.gpus/1", "gpus": gpus}), encoding="utf-8")
    return accuracy(binary, dataset, ["--gpus", str(file), *options])


def accuracy(binary, dataset, options=()):
    """Measurements as `tangram accuracy --json` judges them."""
    command = [binary, "accuracy", str(dataset), *options, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        die(f"tangram accuracy failed: {run.stderr or run.stdout}")
    return json.loads(run.stdout)["measurements"]


def release_binary():
    """Brought up to date first."""
    subprocess.run([str(ROOT / "scripts" / "tangram"), "version"], check=True, stdout=subprocess.DEVNULL)
    return str(ROOT / "build" / "release" / "apps" / "tangram" / "tangram")
