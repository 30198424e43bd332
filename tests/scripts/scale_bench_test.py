#!/usr/bin/env python3
"""The benchmark of growth: what it says of one fleet, and where its picture puts things. Usage: scale_bench_test.py
TANGRAM SCRIPT"""

import argparse
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from script_module import module_of

SVG = "{http://www.w3.org/2000/svg}"


def check_run(tangram, script):
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        done = subprocess.run([sys.executable, script, "--binary", tangram, "--cases", "64", "--csv", str(table)],
                              capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr  # 1: how fast this machine is, is not tested
        assert "64 GPUs of 2 types,  34 layers" in done.stdout, done.stdout
        assert "missed: 64 GPUs: search_gap" not in done.stdout, done.stdout
        header, row = table.read_text(encoding="utf-8").splitlines()
        assert float(dict(zip(header.split(","), row.split(",")))["search_gap"]) == 0, row


def check_target(bench, tangram):
    case = bench.Case("16", {bench.TYPES[0]: 1, bench.TYPES[1]: 1}, bench.gpt(8))
    with tempfile.TemporaryDirectory() as folder:
        for target in ("generic", "megatron"):
            bench.measure(case, tangram, argparse.Namespace(jobs=1, target=target), Path(folder))
            plan = json.loads((Path(folder) / "plan.json").read_text(encoding="utf-8"))
            assert plan["execution"]["runtime"] == target, plan["execution"]


def check_misses(bench):
    case = bench.Case("8", {"T4": 1}, bench.gpt(2), most_seconds=1, most_gap=0)
    row = {"seconds": 2, "search_gap": 0, "relaxed_gap": 5, "peak_mib": 4000}
    assert bench.misses(case, row) == ["seconds 2, not 1"], bench.misses(case, row)
    assert bench.fleet_of(case)["nodes"][0]["name"] == "t4-[0001-0001]", json.dumps(bench.fleet_of(case))


def check_picture(bench):
    # A panel of 300 x 240 at (70, 64), seven powers of ten high: 100 labels at 240 - 2/7 of 240, 10 s at 4/7.
    points = [(1, {"labels": 100, "cpu_s": 0}), (100, {"labels": 10**7, "cpu_s": 10})]
    root = ElementTree.fromstring(bench.draw({"things": points}))
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(SVG + "circle")][2:]  # behind the legend
    assert circles == [(70.0, 235.4), (370.0, 64.0), (70.0, 304.0), (370.0, 166.9)], circles


def main(tangram, script):
    bench = module_of(script)
    check_misses(bench)
    check_picture(bench)
    check_target(bench, tangram)
    check_run(tangram, script)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
