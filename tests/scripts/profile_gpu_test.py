#!/usr/bin/env python3
"""scripts/profile_gpu.py reads models as tangram does and counts kept bytes as derived here; tangram plans with what it
measures.

    profile_gpu_test.py models TANGRAM CONFIGS SCRIPT      needs no PyTorch
    profile_gpu_test.py measure TANGRAM CONFIGS SCRIPT     exit 77 where no Python here has PyTorch

scripts/test installs Debian's python3-torch where there is room for the 640 MB that it takes with what it needs;
`scripts/setup torch` does so by hand.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from ports import reserved_ports
from torch_python import python_with_torch

TANGRAM, CONFIGS, SCRIPT = sys.argv[2], Path(sys.argv[3]), sys.argv[4]

TOKENS, HIDDEN = 16, 64
FLEET = {
    "schema": "tangram.cluster/1",
    "name": "processors",
    "gpus": {"Processor": {
        "vendor": "any", "architecture": "cpu", "memory_gib": 8, "memory_bandwidth_gb_s": 100,
        "peak_tflops": {"fp32": 1}, "pcie": {"bandwidth_gb_s": 16, "latency_us": 5}, "price_per_hour_usd": 1}},
    "nodes": [{"name": "host-[1-2]", "gpus": [{"type": "Processor", "count": 2}],
               "network": {"bandwidth_gbit_s": 100, "latency_us": 5}}],
}
GPT = {"vocabulary": 500, "hidden": HIDDEN, "layers": 4, "heads": 4, "ffn_hidden": 256, "gated": False,
       "norm": "layernorm", "qkv_bias": True, "output_bias": True, "ffn_bias": True, "learned_positions": 1024}
LLAMA = {"vocabulary": 500, "hidden": HIDDEN, "layers": 4, "heads": 4, "kv_heads": 2, "ffn_hidden": 128}
MIXTURE = {"vocabulary": 500, "hidden": HIDDEN, "layers": 4, "heads": 4, "qk_norm": True, "ffn_hidden": 128,
           "moe": {"experts": 4, "experts_per_token": 2, "expert_hidden": 64, "shared_hidden": 32, "shared_gate": True,
                   "first_dense_layers": 1}}


def require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(what)


def call(command: list[str], folder: Path, expected: int = 0) -> subprocess.CompletedProcess:
    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110)
    require(done.returncode == expected, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def write(folder: Path, name: str, value: dict) -> str:
    (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return name


def model(folder: Path, name: str, architecture: dict) -> str:
    training = {"sequence_length": TOKENS, "global_batch_samples": 8, "precision": "fp32", "flash_attention": False}
    return write(folder, name, {"schema": "tangram.model/1", "name": name.split(".")[0], "architecture": architecture,
                                "training": training})


def types_read_by_tangram(folder: Path, path: str) -> list[dict]:
    call([TANGRAM, "plan", str(CONFIGS / "clusters/h200-h100-efa.json"), path, "--seq-len", "1024",
          "--global-batch", "64", "--max-pipelines", "1", "--forbid", "cp,mixed", "-q", "-o", "plan.json"], folder)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    types = plan["model"]["architecture"]["types"]
    return [{key: value for key, value in kind.items() if key not in ("name", "tokens")} for kind in types]


def types_listed(folder: Path, path: str) -> list[dict]:
    listed = call([sys.executable, SCRIPT, path, "--dry-run", "--seq", "1024"], folder).stdout
    return [json.loads(line) for line in listed.splitlines() if line.startswith("  {")]


def check_models(folder: Path) -> None:
    """Every model that the script reads by itself has the blocks that tangram finds in it, key by key."""
    names = ["gpt2", "gpt-neox-20b", "llama-3-8b", "mistral-7b", "mixtral-8x7b", "opt-350m", "opt-6.7b", "qwen2.5-7b",
             "qwen3-8b", "qwen3-30b-a3b"]
    paths = [str(CONFIGS / f"models/hf/{name}.json") for name in names]
    paths += [model(folder, "mixture.json", MIXTURE), model(folder, "gpt.json", GPT)]
    paths.append(model(folder, "windows.json", {**LLAMA, "sliding_window": 2048, "full_attention_every": 2}))
    for path in paths:
        expected = types_read_by_tangram(folder, path)
        by_text = lambda types: sorted(json.dumps(kind) for kind in types)  # also the order of keys
        require(by_text(types_listed(folder, path)) == by_text(expected), f"{path}: {expected}")
        require(types_listed(folder, "plan.json") == expected, f"{path}: its plan is read differently")


def check_errors(folder: Path) -> None:
    write(folder, "gemma.json", {"model_type": "gemma"})
    write(folder, "lama.json", {"model_type": "lama"})
    write(folder, "short.json", {"model_type": "gpt2", "n_embd": 64})
    write(folder, "odd.json", {"model_type": "gpt2", "n_embd": 64, "n_head": 5, "vocab_size": 10, "n_positions": 10})
    (folder / "broken.json").write_text('{ "model_type": \n', encoding="utf-8")
    model(folder, "latent.json", {**LLAMA, "mla": {"kv_lora_rank": 16}})
    model(folder, "hybrid.json", {**LLAMA, "mamba2": {"heads": 8, "head_dim": 16, "groups": 1, "state": 16}})
    write(folder, "untrained.json", {"schema": "tangram.model/1", "architecture": GPT,
                                     "training": {"sequence_length": "2k"}})
    write(folder, "typed.json", {"schema": "tangram.model/1", "architecture": {**GPT, "types": 1}})
    cases = (
        ("none.json", 4, "none.json: No such file or directory"),
        ("broken.json", 4, "broken.json:2:1: Expecting value"),
        ("gemma.json", 4, 'gemma.json: unknown model type "gemma"\n  hint: read here are gpt2'),
        ("lama.json", 4, 'lama.json: unknown model type "lama"\n  hint: did you mean "llama"?'),
        ("short.json", 4, 'short.json: missing key "n_head"'),
        ("odd.json", 4, 'odd.json: 64 is not a multiple of "n_head" (5)'),
        ("latent.json", 4, 'latent.json: "architecture": latent attention ("mla") cannot be measured by this script'),
        ("hybrid.json", 4, 'hybrid.json: "architecture": Mamba-2 ("mamba2") cannot be measured by this script'),
        ("untrained.json", 4, '"training": "sequence_length" must be an integer of at least 1, not "2k"'),
        ("typed.json", 4, 'typed.json: "architecture": "types" must be an array'),
        ("--hidden=64", 64, "no model file, and --heads, --ffn missing"),
        ("--tp=0", 64, 'argument --tp: "0" is no positive integer'),
        ("--date=1.2.2026", 64, 'argument --date: "1.2.2026" is not a date: write YYYY-MM-DD'),
    )
    for argument, status, message in cases:
        failed = call([sys.executable, SCRIPT, argument, "--dry-run"], folder, status)
        said = "error: " in failed.stderr and message in failed.stderr
        require(said and not failed.stdout, f"{argument}: {failed.stderr}")
    help_text = call([sys.executable, SCRIPT, "--help"], folder).stdout
    require(help_text.startswith("examples:\n"), help_text)
    left_out = call([sys.executable, SCRIPT, str(CONFIGS / "models/hf/gpt2.json"), "--dry-run", "--tp", "8"], folder)
    require("12 heads do not divide by tp 8" in left_out.stderr, left_out.stderr)


def check_names() -> None:
    """The script is copied to machines without Tangram, so it has names of its own."""
    source = (CONFIGS / "../src/cluster/gpu_names.cpp").read_text(encoding="utf-8").split("kDriverNames = {")[1]
    driver_names = re.findall(r'ShortName\{"([^"]+)", "[^"]+", "([^"]+)"\}', source.split("};")[0])
    require(len(driver_names) > 30, "no names of drivers in gpu_names.cpp")
    script = Path(SCRIPT).read_text(encoding="utf-8")
    # PyTorch leaves out the "OAM" of AMD's driver.
    missing = [name for name, usual in driver_names if f'"{name.removesuffix(" OAM")}": "{usual}"' not in script]
    require(not missing, f"DRIVER_NAMES of profile_gpu.py lacks {missing}, which gpu_names.cpp has")


def measure(folder: Path, python: str, path: str, *options: str) -> dict:
    call([python, SCRIPT, path, "--device", "cpu", "--gpu", "Processor", "--samples", "1,2", "--repetitions", "3",
          "--warmup", "1", "--date", "2026-01-31", "-o", "profile.json", *options], folder)
    return json.loads((folder / "profile.json").read_text(encoding="utf-8"))


def kept(profile: dict, kind: int = 0) -> dict[tuple[int, bool, int], int]:
    """Of the profile's `kind`th block, by tp, sequence parallelism and samples."""
    blocks = [unit for unit in profile["units"] if unit["kind"] == "block"]
    return {(row["tp"], row.get("sequence_parallel", False), row["samples"]): row["activation_bytes"]
            for row in blocks[kind]["rows"]}


def check_kept_bytes(gpt: dict) -> None:
    """16 tokens of width 64 in fp32 are a row of 4096 bytes. A GPT block keeps, unfused:
         input, output of the first norm, input of the second, its output       4 rows
         q, k and v (3 rows / tp), softmax of 4 heads (4 x 16 x 16 x 4 / tp), input of the projection (1 row / tp)
         feed-forward before and after GELU: 256 columns each, 2 x 4 rows / tp
         mean and deviation of each norm in fp32: 2 x 2 x 16 x 4
    and with sequence parallelism the first and the last line divided by tp."""
    row = TOKENS * HIDDEN * 4
    sharded = 3 * row + 4 * TOKENS * TOKENS * 4 + row + 8 * row
    residual, statistics = 4 * row, 2 * 2 * TOKENS * 4
    expected = {}
    for samples in (1, 2):
        expected[1, False, samples] = samples * (residual + sharded + statistics)
        expected[2, False, samples] = samples * (residual + sharded // 2 + statistics)
        expected[2, True, samples] = samples * (residual + sharded + statistics) // 2
    require(kept(gpt) == expected, f"kept bytes {kept(gpt)}, derived {expected}")


def believable(folder: Path, profile: dict) -> None:
    """Times of a processor that other tests use as well may be anything; tangram wants such as can be true of FLEET."""
    for unit in profile["units"]:
        for row in unit["rows"]:
            require(row["forward_ms"] > 0 and row["backward_ms"] > 0, str(row))
            row.update({"forward_ms": 0.4 + 0.1 * row["samples"], "backward_ms": 0.8 + 0.2 * row["samples"]})
    for curve in profile.get("collectives", []):
        for point in curve["points"]:
            require(point["time_us"] > 0, str(point))
            point["time_us"] = 50 + point["bytes"] / 1000  # 1 GB/s
    write(folder, "believable.json", profile)


def check_plans(folder: Path, path: str, profile: dict) -> None:
    """tangram accepts the profile and prices the plan by it."""
    require(profile["schema"] == "tangram.profile/1" and profile["date"] == "2026-01-31", str(profile))
    believable(folder, profile)
    call([TANGRAM, "plan", "fleet.json", path, "--profile", "believable.json", "--microbatch", "2", "--max-pipelines",
          "1", "--forbid", "cp,dp,mixed", "-q", "-o", "plan.json"], folder)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    provenance = [part["predicted"]["provenance"] for stage in plan["stages"] for part in stage["parts"]]
    require(set(provenance) == {"measured"}, f"{path}: {provenance}")
    call([TANGRAM, "check", "plan.json"], folder)


def check_measuring(folder: Path, python: str) -> None:
    write(folder, "fleet.json", FLEET)
    options = ("--tp", "1,2", "--sequence-parallel", "both")
    path = model(folder, "gpt.json", GPT)
    profile = measure(folder, python, path, *options)
    check_kept_bytes(profile)
    check_plans(folder, path, profile)
    path = model(folder, "llama.json", LLAMA)
    profile = measure(folder, python, path, *options)
    rows = [row for unit in profile["units"] for row in unit["rows"]]
    kinds = [unit["kind"] for unit in profile["units"]]
    require(kinds == ["block", "embedding", "head"] and len(rows) == 18, str(profile))
    check_plans(folder, path, profile)
    path = model(folder, "mixture.json", MIXTURE)
    profile = measure(folder, python, path, "--tp", "1,2", "--ep", "1,2", "--sequence-parallel", "both")
    experts = [row for unit in profile["units"] if "moe" in unit.get("block", {}) for row in unit["rows"]]
    degrees = {(row["tp"], row.get("ep", 1), row.get("etp", 1), row.get("sequence_parallel", False)) for row in experts}
    require(degrees == {(1, 1, 1, False), (1, 2, 1, False), (2, 1, 1, True), (2, 2, 1, True), (2, 1, 2, True),
                        (2, 2, 2, True)}, str(experts))
    check_plans(folder, path, profile)


def check_fused(folder: Path, python: str) -> None:
    """PyTorch has fused attention from 2.0 on; older ones say so."""
    modern = call([python, "-c", "import torch; print(torch.__version__ >= '2')"], folder).stdout.strip() == "True"
    command = [python, SCRIPT, "llama.json", "--device", "cpu", "--gpu", "Processor", "--samples", "1", "--no-edges",
               "--repetitions", "1", "--warmup", "1", "--attention", "fused"]
    if not modern:
        failed = call(command, folder, 1)
        require("fused attention needs PyTorch 2.0" in failed.stderr, failed.stderr)
        return
    (unit,) = json.loads(call(command, folder).stdout)["units"]
    require(unit["flash_attention"] and unit["rows"][0]["activation_bytes"] > 0, str(unit))


def check_collectives(folder: Path, python: str) -> None:
    """Two processes, started as torchrun does; the first alone writes."""
    command = [python, SCRIPT, "gpt.json", "--device", "cpu", "--gpu", "Processor", "--samples", "1,2", "--tp", "1,2",
               "--sequence-parallel", "both", "--repetitions", "2", "--warmup", "1", "--date", "2026-01-31"]
    ranks = []
    with reserved_ports(1) as (port,):
        for rank in range(2):
            environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2",
                           "LOCAL_WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}
            ranks.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True))
        outputs = [rank.communicate(timeout=110) for rank in ranks]
    require(all(rank.returncode == 0 for rank in ranks) and not outputs[1][0], str(outputs))
    profile = json.loads(outputs[0][0])
    (curve,) = profile["collectives"]
    sizes = [point["bytes"] for point in curve["points"]]
    require((curve["operation"], curve["ranks_per_node"], curve["nodes"]) == ("all_reduce", 2, 1), str(curve))
    require(sizes == sorted(set(sizes)), str(curve))
    check_plans(folder, "gpt.json", profile)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tangram-profile-") as scratch:
        folder = Path(scratch)
        if sys.argv[1] == "models":
            check_models(folder)
            check_errors(folder)
            check_names()
            return
        python = python_with_torch()
        check_measuring(folder, python)
        check_fused(folder, python)
        check_collectives(folder, python)


main()
