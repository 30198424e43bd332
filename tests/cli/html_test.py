#!/usr/bin/env python3
"""Pages that --html writes: well-formed for XML and HTML, nothing is loaded from elsewhere, ids are unique, numbers finite,
the size bounded; timelines end when `simulate` says; names in files never become markup; the same plan gives the same bytes.

    html_test.py BINARY CONFIGS
"""
import html
import json
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from pathlib import Path

BINARY = Path(sys.argv[1]).resolve()
CONFIGS = Path(sys.argv[2]).resolve()
INPUTS = Path(__file__).resolve().parent / "inputs"
LARGEST = 1_100_000  # bytes of a page
VOID = {"meta", "link", "br", "hr", "img", "input"}
NUMBERS = {"x", "y", "width", "height", "rx"}
NASTY = """</title><script>alert("1")</script>&'<b onload='x'>"""


def run(*words, exits=0):
    done = subprocess.run([BINARY, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == exits, (words, done.returncode, done.stdout[-500:], done.stderr)
    return done


class Elements(HTMLParser):
    """As a browser reads it: every element that begins ends, in order; what each is, with its attributes."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


def elements_of(text):
    parser = Elements()
    parser.feed(text)
    parser.close()
    assert not parser.open, parser.open
    return parser.found


def check_numbers(attributes):
    for name in NUMBERS & attributes.keys():
        value = float(attributes[name])
        assert abs(value) < 1e7 and (value >= 0 or name in "xy"), (name, attributes)
    for value in attributes.values():
        assert not re.search(r"\b(nan|inf|infinity)\b", value or "", re.IGNORECASE), attributes


def check_page(text):
    """What holds for every page; its elements."""
    assert len(text.encode()) < LARGEST, len(text)
    xml.fromstring(text.partition("\n")[2])  # behind the doctype
    found = elements_of(text)
    scripts = [1 for tag, _ in found if tag == "script"]
    figures = [a for tag, a in found if tag == "figure"]
    assert len(scripts) == (1 if figures else 0)
    ids = [a["id"] for _, a in found if "id" in a]
    assert len(ids) == len(set(ids)), ids
    for tag, attributes in found:
        assert not {"href", "src", "xlink:href", "action", "data"} & attributes.keys(), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert tag not in {"link", "img", "iframe", "object", "embed", "base", "form", "use", "image"}, tag
        check_numbers(attributes)
    style = text[text.index("<style>"):text.index("</style>")]
    assert not re.search(r"url\(|@import|://", style)
    for figure in figures:
        check_figure(figure)
    return found


def check_figure(attributes):
    """Windows are apart, begin with the run and end with it; no span ends later."""
    end = int(attributes["data-end-ns"])
    assert 0 < int(attributes["data-last-ns"]) <= end
    windows = [tuple(map(int, window.split("-"))) for window in attributes["data-windows"].split()]
    assert windows[0][0] == 0 and windows[-1][1] == end and len(windows) <= 3, windows
    assert all(a < b for a, b in windows) and all(a[1] < b[0] for a, b in zip(windows, windows[1:])), windows


def check_plan_page(plan, page):
    """Its timeline is that of `simulate`, and the bars end where the plot does."""
    found = check_page(page)
    simulated = json.loads(run("simulate", plan, "--json").stdout)
    figures = [a for tag, a in found if tag == "figure"]
    assert [int(f["data-end-ns"]) for f in figures] == [simulated["iteration_ns"]], (plan, figures)
    assert [int(f["data-last-ns"]) for f in figures] == [simulated["iteration_ns"]], (plan, figures)
    plot = next(a for tag, a in found if tag == "svg" and a.get("class") == "plot")
    classes = {"f", "b", "w", "y", "o"}
    bars = [a for tag, a in found if tag == "rect" and "y" not in a and set(a.get("class", "").split()) & classes]
    rightmost = max(float(b["x"]) + float(b["width"]) for b in bars)
    assert abs(rightmost - float(plot["width"])) < 0.5, (rightmost, plot)
    return found


def planned(folder, name, *words, again=True):
    """A plan and its page; `show` of the written plan draws the same bytes, and so does the same command on one core."""
    plan, page = folder / f"{name}.json", folder / f"{name}.html"
    run("plan", *words, "-q", "-o", plan, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert run("show", plan, "--html", "-").stdout == text, name
    assert not again or run("plan", *words, "-q", "-j", 1, "--html", "-").stdout == text, name
    check_plan_page(plan, text)
    return plan, text


def kinds_of_plans(folder):
    clusters, models = CONFIGS / "clusters", CONFIGS / "models"
    tiny, mini = INPUTS / "tiny.json", INPUTS / "mini.yaml"
    _, usual = planned(folder, "mixed", clusters / "h100-a100-v100.json", models / "mixtral-8x7b.yaml", again=False)
    assert "16 x H100-80GB-SXM" in usual and re.search("(best of|optimal in) tangram/space-2", usual)
    _, zero = planned(folder, "zero", tiny, mini, "--schedule", "zero-bubble")
    assert "weight gradient" in zero and 'class="w' in zero and "exposed sync" in zero
    _, modules = planned(folder, "modules", tiny, INPUTS / "two_encoders.yaml", "--placement", "disjoint")
    assert all(f'<span class="tag">{name}</span>' in modules for name in ("vision", "audio", "language"))
    _, unlike = planned(folder, "unlike", INPUTS / "pair.json", INPUTS / "six_layers.yaml", "--forbid", "mixed",
                        "--pipelines", "any")
    assert all(f"Pipeline {p}: " in unlike and f">pipeline {p}</text>" in unlike for p in (0, 1))
    _, parts = planned(folder, "parts", INPUTS / "pair.json", INPUTS / "six_layers.yaml")
    assert parts.count('class="part"') == 2 and parts.count('class="box') == 1
    _, alike = planned(folder, "alike", INPUTS / "three.json", INPUTS / "seven.yaml", "--forbid", "dp")
    assert "Pipelines 0 to 2, 3 alike: " in alike and alike.count('class="box') == 1
    interleaved = run("show", INPUTS / "interleaved.plan.json", "--html", "-").stdout
    check_plan_page(INPUTS / "interleaved.plan.json", interleaved)
    assert "the later its model chunk" in interleaved and "back to stage 0" in interleaved


def many_microbatches(folder):
    """Of thousands the beginning, the middle and the end are drawn."""
    plan, text = planned(folder, "long", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--global-batch", 8192,
                         "--microbatch", 2)
    assert "What lies between goes on in the same way." in text
    (figure,) = [a for tag, a in elements_of(text) if tag == "figure"]
    assert len(figure["data-windows"].split()) == 3, plan


def nasty_names(folder):
    """Names that are markup: of the fleet and the model as they are planned, and of GPUs, hosts, classes and modules in a
    plan. The page has the elements of the page with plain names."""
    cluster = json.loads((INPUTS / "tiny.json").read_text(encoding="utf-8"))
    cluster["name"] = NASTY
    (folder / "nasty.json").write_text(json.dumps(cluster), encoding="utf-8")
    model = (INPUTS / "two_encoders.yaml").read_text(encoding="utf-8")
    model = re.sub(r"^name:.*$", lambda _: "name: " + json.dumps(NASTY), model, flags=re.MULTILINE)
    (folder / "nasty.yaml").write_text(model, encoding="utf-8")
    plan, page = planned(folder, "nasty-plan", folder / "nasty.json", folder / "nasty.yaml", "--placement", "disjoint")
    assert NASTY not in page and "&lt;/title&gt;&lt;script&gt;alert(&quot;1&quot;)" in page
    usual = run("show", folder / "modules.json", "--html", "-").stdout
    assert [tag for tag, _ in elements_of(page)] == [tag for tag, _ in elements_of(usual)]

    text = plan.read_text(encoding="utf-8")
    for number, name in enumerate(("Big", "Small", "big-1", "big-2", "small-1", "vision", "audio")):
        assert f'"{name}"' in text, name
        text = text.replace(f'"{name}"', json.dumps(f"{number}{NASTY}"))
    plan.write_text(text, encoding="utf-8")
    page = run("show", plan, "--html", "-").stdout
    found = check_plan_page(plan, page)
    assert NASTY not in page and f"6{html.escape(NASTY)[:20]}" in page
    warned = [tag for tag, a in found if a.get("class") != "warning"]
    assert warned == [tag for tag, _ in elements_of(usual)]


DEEP_CLUSTER = {
    "schema": "tangram.cluster/1", "name": "deep",
    "nodes": [{"name": "n-[001-128]", "gpus": [{"type": "T4", "count": 1}],
               "network": {"bandwidth_gbit_s": 100, "latency_us": 5}}]}
DEEP_MODEL = """schema: tangram.model/1
name: deep
architecture: {vocabulary: 32000, hidden: 4096, layers: 128, heads: 32, ffn_hidden: 16384}
training: {sequence_length: 2048, global_batch_samples: 600}
"""


def as_many_as_are_drawn(folder):
    """128 stages of one layer, 600 microbatches, and a GPU whose name is as long in a page as it can be."""
    (folder / "deep.json").write_text(json.dumps(DEEP_CLUSTER), encoding="utf-8")
    (folder / "deep.yaml").write_text(DEEP_MODEL, encoding="utf-8")
    plan, page = planned(folder, "deepest", folder / "deep.json", folder / "deep.yaml", "--forbid",
                         "tp,dp,cp,ep,mixed,replicas", "--microbatch", 1, again=False)
    assert page.count('class="box') == 128 and page.count("<title>stage 127: 1 x T4") == 1
    text = plan.read_text(encoding="utf-8").replace('"T4"', json.dumps("&" * 3000))
    plan.write_text(text, encoding="utf-8")
    check_plan_page(plan, run("show", plan, "--html", "-").stdout)


def long_names(folder):
    """Names of any length leave the page small."""
    plan = json.loads((INPUTS / "interleaved.plan.json").read_text(encoding="utf-8"))
    plan["fleet"]["name"] = "n" * 5_000_000
    path = folder / "long-name.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    page = run("show", path, "--html", "-").stdout
    check_page(page)
    assert "does not pass its check" in page  # its digest is another's


def without_a_timeline(folder):
    """Plans changed by hand: one that cannot finish, one with more passes than are simulated for a picture."""
    text = (folder / "mixed.json").read_text(encoding="utf-8")
    passes = 2 * len(json.loads(text)["stages"])  # of each microbatch: forward and backward
    for old, new, why in (('"warmup": 0}', '"warmup": 60}', "cannot finish"),
                          (r'"num_microbatches": \d+', '"num_microbatches": 1000000', f"{passes},000,000 passes")):
        changed, count = re.subn(old, new, text)
        assert count > 0, old
        path = folder / "changed.json"
        path.write_text(changed, encoding="utf-8")
        page = run("show", path, "--html", "-").stdout
        assert not [1 for tag, _ in check_page(page) if tag == "figure"] and why in page, why


def kernels(folder):
    graph, placement, page = folder / "graph.json", folder / "placement.json", folder / "placement.html"
    run("kernels", "synth", INPUTS / "moe.yaml", "--phase", "prefill,decode", "--requests", 4, "--context", 256, "--gpu",
        "L40S,A100-80GB-SXM", "-o", graph, "-q")
    run("disaggregate", "plan", "a100-l40s", graph, "--in-flight", 3, "-o", placement, "-q")
    run("disaggregate", "simulate", placement, "--html", page, "-q")
    text = page.read_text(encoding="utf-8")
    found = check_page(text)
    assert run("disaggregate", "simulate", placement, "--html", "-").stdout == text
    series = {a["class"].split()[0] for tag, a in found if tag == "rect" and a.get("class", "").startswith("s")}
    assert {f"s{i}" for i in range(8)} <= series
    assert "stream 0" in text and "A100-80GB-SXM to L40S" in text and "192 in flight" in text


def comparison(folder):
    page = folder / "comparison.html"
    run("compare", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--with", "metis,megatron", "--html", page, "-q")
    text = page.read_text(encoding="utf-8")
    found = check_page(text)
    headings = re.findall(r"<h2>(.*?)</h2>", text)
    assert headings == ["Time of an iteration", "What each technique brings", "How they were found",
                        "What their own formulas say"], headings
    assert len([1 for tag, a in found if tag == "svg" and a.get("class") == "chart"]) == 2


def main():
    with tempfile.TemporaryDirectory(prefix="tangram-html-") as name:
        folder = Path(name)
        kinds_of_plans(folder)
        many_microbatches(folder)
        nasty_names(folder)
        as_many_as_are_drawn(folder)
        long_names(folder)
        without_a_timeline(folder)
        kernels(folder)
        comparison(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
