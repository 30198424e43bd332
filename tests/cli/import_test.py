#!/usr/bin/env python3
"""Plans that are exported, imported and exported again: the same files, and nothing wrong with the imported plan.

    import_test.py BINARY CONFIGS
"""
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def round_trip(binary, scratch, form, cluster, model, *options):
    """What the second export says otherwise, by file."""
    scratch.mkdir()
    # Jobs of several model chunks a stage are not imported.
    target = ("--target", form, "--schedule", "1f1b") if form in ("megatron", "mimo", "flagscale") else ()
    run(binary, "plan", cluster, model, *target, *options, "-q", "-o", scratch / "plan.json")
    run(binary, "export", scratch / "plan.json", "--to", form, "-o", scratch / "first")
    inputs = ("--cluster", cluster, "--model", model)
    run(binary, "import", scratch / "first", "--from", form, *inputs, "-o", scratch / "back.json")
    run(binary, "check", scratch / "back.json", "--cluster", cluster, "--model", model)
    run(binary, "simulate", scratch / "back.json")
    run(binary, "export", scratch / "back.json", "--to", form, "-o", scratch / "second")
    first, second = files_of(scratch / "first"), files_of(scratch / "second")
    return [name for name in first.keys() | second.keys() if first.get(name) != second.get(name)]


def main(binary, configs):
    inputs = Path(__file__).parent / "inputs"
    tiny = (inputs / "tiny.json", inputs / "mini.yaml")
    mixed = (configs / "clusters" / "h100-a100-v100.json", configs / "models" / "llama-2-7b.yaml")
    llama = inputs / "llama.yaml"
    desks = configs / "clusters" / "rtx-mixed-hosts.json"
    alike = (inputs / "alike.json", inputs / "mini.yaml")
    plans = [
        ("megatron", *tiny),
        ("megatron", *tiny, "--forbid", "zero1,dp"),
        ("megatron", *mixed),
        ("megatron", *mixed, "--allow", "tp,sp,pp,zero1,recompute_full,replicas"),
        ("megatron", *mixed, "--options", "any"),
        ("megatron", inputs / "tiny.json", inputs / "moe.yaml", "--options", "any,expert_dispatch"),
        ("megatron", alike[0], inputs / "grouped.yaml", "--allow", "dp,zero1"),
        ("mimo", alike[0], inputs / "two_encoders.yaml"),
        ("flagscale", *tiny),
        ("flagscale", *tiny, "--forbid", "dp"),
        ("flagscale", *mixed),
        ("sailor", *tiny, "--allow", "tp,pp"),
        ("sailor", *mixed, "--allow", "dp,pp"),
        ("flashflex", tiny[0], llama, "--allow", "tp,pp,replicas"),
        ("flashflex", desks, llama, "--allow", "tp,pp"),
        ("galvatron", *alike, "--target", "megatron", "--forbid", "zero1,interleaving"),
        ("galvatron", *alike, "--target", "megatron", "--allow", "tp,dp,pp,zero3,replicas", "--global-batch", "32"),
    ]
    with tempfile.TemporaryDirectory() as name:
        for number, plan in enumerate(plans):
            differing = round_trip(binary, Path(name) / str(number), *plan)
            assert not differing, (plan, differing)
    print(f"{len(plans)} round trips")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
