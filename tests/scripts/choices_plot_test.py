#!/usr/bin/env python3
"""The plot of choices: where points lie, what it refuses. Usage: choices_plot_test.py SCRIPT"""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def choice(gpus, dollars, tokens):
    return {"gpus": gpus, "dollars_per_hour": dollars, "iteration_s": 1, "tokens_per_s": tokens,
            "cost_per_mtoken": dollars, "used": {"a": gpus}}


def run(script, document):
    return subprocess.run([sys.executable, script], input=document, capture_output=True, text=True, check=False)


def circles(script, choices):
    done = run(script, json.dumps({"schema": "tangram.choices/1", "fleet": "f<1>", "model": "m", "choices": choices}))
    assert done.returncode == 0, done.stderr
    root = ElementTree.fromstring(done.stdout)
    return [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(SVG + "circle")]


def main(script):
    # Axes end at 10 GPUs, 100 dollars and 1,000 tokens a second: panels of 440 x 300 at (84, 60) and (620, 60).
    points = circles(script, [choice(10, 100, 1000), choice(5, 40, 500)])
    assert points == [(524.0, 60.0), (304.0, 210.0), (1060.0, 60.0), (796.0, 210.0)], points
    assert len(circles(script, [choice(10, None, 1000)])) == 1, "no money, no second panel"
    for document, words in (("{", "standard input:1:2"), ("{}", "not a list of choices"),
                            ('{"schema": "tangram.choices/1", "choices": []}', "the list is empty")):
        done = run(script, document)
        assert done.returncode == 4 and words in done.stderr, (document, done.stderr)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
