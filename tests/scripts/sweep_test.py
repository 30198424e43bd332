#!/usr/bin/env python3
"""The sweep: its table agrees with single runs, its plot has a point per plan. Usage: sweep_test.py TANGRAM INPUTS SCRIPT"""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


def main(tangram, inputs, script):
    cluster, model = f"{inputs}/tiny.json", f"{inputs}/mini.yaml"

    def sweep(*words):
        return subprocess.run([sys.executable, script, cluster, model, "--tangram", tangram, *words],
                              capture_output=True, text=True, check=False)

    with tempfile.TemporaryDirectory() as folder:
        plot = Path(folder) / "sweep.svg"
        done = sweep("--add", "gpu=Big,nodes={}", "--values", "1,2", "-o", str(plot))
        assert done.returncode == 0, done.stderr
        header, *rows = (line.split("\t") for line in done.stdout.splitlines())
        assert header[:2] == ["value", "tokens_per_s"] and [row[0] for row in rows] == ["1", "2"], done.stdout
        alone = subprocess.run([tangram, "plan", cluster, model, "--json", "-q", "--add", "gpu=Big,nodes=2"],
                               capture_output=True, text=True, check=True)
        tokens = json.loads(alone.stdout)["predicted"]["tokens_per_s"]
        assert rows[1][1] == f"{tokens:.6g}", (rows, tokens)
        assert float(rows[1][1]) > float(rows[0][1]), "more GPUs, more tokens"
        assert len(list(ElementTree.parse(plot).getroot().iter(SVG + "circle"))) == 2
    # 4 GPUs of 16 GiB with 1 % of their memory hold nothing: a row without figures.
    done = sweep("--drop", "gpu=Big", "--set", "gpu(Small).memory={}%", "--values", "20,100")
    assert done.returncode == 0 and done.stdout.splitlines()[1].startswith("20\t-\t"), (done.stdout, done.stderr)
    done = sweep("--add", "gpu=Bog,nodes={}", "--values", "1")
    assert done.returncode == 4 and "Bog" in done.stderr, done.stderr
    done = sweep("--values", "1,2")
    assert done.returncode == 64, done.stderr
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
