#!/usr/bin/env python3
"""scripts/record_kernels.py writes traces and launches that tangram reads, and says what it lacks.

    record_kernels_test.py plans TANGRAM SOURCE SCRIPT      needs no PyTorch
    record_kernels_test.py records TANGRAM SOURCE SCRIPT    exit 77 where no Python here has PyTorch

No machine of these tests has a GPU: steps run on the processor, and kernels of Triton are stood in for by a module that
has the parts of Triton's CompiledKernel that the script uses, with the PTX of tests/data/dispatch.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
from torch_python import python_with_torch

TANGRAM, SOURCE, SCRIPT = sys.argv[2], Path(sys.argv[3]), sys.argv[4]
CONFIG = str(SOURCE / "configs/models/hf/llama-3-8b.json")
MODEL_PTX = SOURCE / "tests/data/dispatch/model.ptx"

TRITON = '''
class CompiledKernel:
    def __init__(self, ptx, metadata, signature):
        self.asm, self.metadata, self._run, self.ran = {"ptx": ptx}, metadata, None, 0
        self.src = type("Source", (), {"signature": signature})

    def _init_handles(self):
        if self._run is None:
            self._run = self.launch

    def launch(self, *arguments):
        self.ran += 1

    @property
    def run(self):
        if self._run is None:
            self._init_handles()
        return self._run
'''

# Three launches of a step: its kernels are "embed" and "add" of model.ptx, and a second "add" from another module.
STEP = '''
import types
from pathlib import Path

import torch
from triton.compiler import CompiledKernel

text = Path("model.ptx").read_text()


def kernel(name, ptx, signature):
    metadata = types.SimpleNamespace(name=name, num_warps=4, num_ctas=1, shared=0, global_scratch_size=0)
    return CompiledKernel(ptx, metadata, signature)


pointers = {"x": "*fp32", "y": "*fp32"}
embed = kernel("embed", text,
               {"table": "*fp32", "tokens": "*i32", "hidden": "*fp32", "width": "i32", "BLOCK": "constexpr"})
add = kernel("add", text, {**pointers, "width": "i32", "BLOCK": "constexpr"})
other = kernel("add", text.replace(".target sm_80", ".target sm_80 // another"), {**pointers, "width": "i32"})
table, hidden = torch.zeros(24, 16), torch.zeros(4, 16)
tokens, out = torch.tensor([3, 17, 8, 21], dtype=torch.int32), torch.zeros(8, 16)
tensors = {"table": table, "tokens": tokens}


def launch(kernel, *arguments):
    kernel.run(4, 1, 1, 0, None, None, None, None, None, *arguments)


def step():
    launch(embed, table, tokens, hidden, 16, 1024)
    launch(add, hidden, out[4:], 16, 1024)
    launch(other, hidden, out[4:], 16)
    return hidden @ table.T
'''


def require(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(what)


def call(command: list[str], folder: Path, expected: int = 0) -> subprocess.CompletedProcess:
    environment = {**os.environ, "NO_COLOR": "1", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=110)
    require(done.returncode == expected, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def check_plans(folder: Path) -> None:
    said = call([sys.executable, SCRIPT, CONFIG, "--dry-run", "--requests", "32", "--layers", "2", "--ptx"], folder)
    require("decode of" in said.stdout and "(llama, 2 layers, bf16), 32 requests of 1024 tokens" in said.stdout and
            "kineto.json, execution.json, step.ptx, launches.jsonl, entries.json" in said.stdout, said.stdout)
    (folder / "step.py").write_text("def step():\n    pass\n", encoding="utf-8")
    said = call([sys.executable, SCRIPT, "--script", "step.py", "--dry-run"], folder)
    require(said.stdout.startswith("step() of step.py\n"), said.stdout)
    help_text = call([sys.executable, SCRIPT, "--help"], folder).stdout
    require(help_text.startswith("examples:\n"), help_text)


def check_errors(folder: Path) -> None:
    (folder / "broken.json").write_text('{ "model_type": \n', encoding="utf-8")
    (folder / "plain.json").write_text('{"schema": "tangram.model/1"}', encoding="utf-8")
    (folder / "layerless.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    cases = (
        (["none.json"], 4, "none.json: No such file or directory"),
        (["broken.json"], 4, "broken.json:2:1: Expecting value"),
        (["plain.json"], 4, 'plain.json is no model of Hugging Face\n  hint: its config.json has a "model_type"'),
        (["layerless.json", "--layers", "2"], 4, "layerless.json does not say how many layers it has"),
        ([CONFIG, "--layers", "33"], 64, "--layers 33: "),
        (["--script", "none.py"], 4, "none.py: no such file"),
        ([], 64, "give a model, or a script of your own with --script"),
        ([CONFIG, "--script", "step.py"], 64, "give a model, or a script of your own with --script"),
        ([CONFIG, "--requests", "0"], 64, 'argument --requests: "0" is no positive integer'),
    )
    for arguments, status, message in cases:
        failed = call([sys.executable, SCRIPT, *arguments, "--dry-run"], folder, status)
        said = "error: " in failed.stderr and message in failed.stderr
        require(said and not failed.stdout, f"{arguments}: {failed.stderr}")
    failed = call([sys.executable, SCRIPT, CONFIG], folder, 64)
    require("-o FOLDER is missing" in failed.stderr, failed.stderr)


def make_step(folder: Path) -> None:
    (folder / "triton").mkdir()
    (folder / "triton/__init__.py").write_text("", encoding="utf-8")
    (folder / "triton/compiler.py").write_text(TRITON, encoding="utf-8")
    (folder / "step.py").write_text(STEP, encoding="utf-8")
    (folder / "model.ptx").write_text(MODEL_PTX.read_text(encoding="utf-8"), encoding="utf-8")


def check_traces(folder: Path, python: str) -> None:
    said = call([python, SCRIPT, "--script", "step.py", "--device", "cpu", "-o", "cpu"], folder)
    require("no kernels: nothing ran on a GPU" in said.stderr and not said.stdout, said.stderr)
    trace = json.loads((folder / "cpu/kineto.json").read_text(encoding="utf-8"))
    has_kineto = isinstance(trace, dict)  # Debian's PyTorch has not, and lists operators alone
    events = trace["traceEvents"] if has_kineto else trace
    nodes = json.loads((folder / "cpu/execution.json").read_text(encoding="utf-8"))["nodes"]
    require(any(event.get("name") == "aten::matmul" for event in events), "kineto.json lacks the step's product")
    require(sum(node["name"] == "aten::matmul" for node in nodes) == 1, "execution.json has other steps")
    if has_kineto:
        said = call([TANGRAM, "kernels", "import", "cpu/kineto.json", "--gpu", "L40S"], folder, 4)
        require("the trace has no kernels of a GPU" in said.stderr, said.stderr)


def check_launches(folder: Path, python: str) -> None:
    """Kernels of one name have names of their own; constants are left out, offsets and integers are there."""
    said = call([python, SCRIPT, "--script", "step.py", "--device", "cpu", "--ptx", "-o", "ptx"], folder)
    require("3 launches of 2 Triton kernels" in said.stderr, said.stderr)
    lines = [json.loads(line) for line in (folder / "ptx/launches.jsonl").read_text(encoding="utf-8").splitlines()]
    embed, add, other = lines
    require(embed["arguments"] == [{"buffer": "table", "bytes": 1536},
                                   {"buffer": "tokens", "bytes": 16, "integers": [3, 17, 8, 21]},
                                   {"buffer": "buffer2", "bytes": 256}, {"value": 16}], str(embed))
    half = {"buffer": "buffer3", "bytes": 512, "offset": 256}
    expected = [{"buffer": "buffer2", "bytes": 256}, half, {"value": 16}]
    require(add["arguments"] == other["arguments"] == expected, str(add))
    require(add["grid"] == [4, 1, 1] and add["block"] == [128, 1, 1], str(add))
    require(add["entry"] != other["entry"] and add["entry"].startswith("add_"), f"{add}, {other}")
    entries = json.loads((folder / "ptx/entries.json").read_text(encoding="utf-8"))
    require(entries[other["entry"]] == {"kernel": "add", "shared_bytes": 0, "warps": 4}, str(entries))
    command = said.stdout.replace("tangram", TANGRAM, 1).replace("GPU,GPU", "L40S,A100-80GB-SXM").split()
    call(command, folder)
    graph = json.loads((folder / "kernels.json").read_text(encoding="utf-8"))
    written = [{buffer["buffer"] for buffer in kernel["writes"]} for kernel in graph["kernels"]]
    require(written == [{"buffer2"}, {"buffer2"}, {"buffer2"}], str(graph["kernels"]))


def check_missing(folder: Path, python: str) -> None:
    command = [python, SCRIPT, "--device", "cpu", "-o", "missing"]
    (folder / "empty.py").write_text("", encoding="utf-8")
    (folder / "quiet.py").write_text("def step():\n    pass\n", encoding="utf-8")
    cases = ((["--script", "empty.py"], 4, "empty.py defines no step()"),
             (["--script", "quiet.py", "--ptx"], 1, "the step launched no kernel of Triton"))
    for arguments, status, message in cases:
        failed = call([*command, *arguments], folder, status)
        require(message in failed.stderr, failed.stderr)
    if subprocess.run([python, "-c", "import transformers"], capture_output=True).returncode != 0:
        failed = call([*command, CONFIG, "--layers", "1"], folder, 1)
        require("transformers cannot be imported" in failed.stderr and "--script" in failed.stderr, failed.stderr)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tangram-record-") as scratch:
        folder = Path(scratch)
        if sys.argv[1] == "plans":
            check_plans(folder)
            check_errors(folder)
            return
        python = python_with_torch()
        make_step(folder)
        check_traces(folder, python)
        check_launches(folder, python)
        check_missing(folder, python)


main()
