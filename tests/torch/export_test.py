#!/usr/bin/env python3
"""What `tangram export --to torch` wrote trains as it is: export_test.py BINARY INPUTS

All hosts' scripts on this machine at once, local.sh, an emulation, and what people get wrong.
"""

import array
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from ports import reserved_ports
from with_torch import need_torch

need_torch()

MODEL = {"schema": "tangram.model/1", "name": "tiny-llama",
         "architecture": {"vocabulary": 256, "hidden": 64, "layers": 4, "heads": 4, "ffn_hidden": 128,
                          "tied_embeddings": True},
         "training": {"sequence_length": 128, "global_batch_samples": 64, "precision": "fp32"}}

MULTIMODAL = {"schema": "tangram.model/1", "name": "tiny-llava",
              "architecture": {"vocabulary": 256, "hidden": 64, "layers": 2, "heads": 4, "ffn_hidden": 128, "encoders": [
                  {"name": "vision", "hidden": 32, "layers": 2, "heads": 4, "ffn_hidden": 64, "gated": False,
                   "norm": "layernorm", "tokens_in": 9, "tokens_out": 2, "patch_parameters": 672,
                   "connector": {"kind": "merger", "widths": [128, 64, 64], "norm": "layernorm"}}]},
              "data": {"vision": {"mean": 1.5, "max": 3, "none": 0.2}},
              "training": {"sequence_length": 32, "global_batch_samples": 2, "precision": "fp32"}}
IMAGE = 255  # a token


def write_npy(path, kind, shape, values):
    """`kind`: of array.array, which numpy writes as i4 or f4."""
    header = str({"descr": {"i": "<i4", "f": "<f4"}[kind], "fortran_order": False, "shape": shape}).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + array.array(kind, values).tobytes())


def run(*words, **options):
    environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", **options)
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment, timeout=300)


def expect(done, code, *patterns):
    said = done.stdout + done.stderr
    assert done.returncode == code, (done.args, done.returncode, said)
    for pattern in patterns:
        assert re.search(pattern, said), (done.args, pattern, said)
    return said


def losses(text):
    return re.findall(r"^step \d+  loss ([\d.]+)", text, re.M)


def start_hosts(folder, *options):
    """Every host's script, all of them here; what they print."""
    with reserved_ports(1) as (port,):
        environment = dict(os.environ, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        hosts = [subprocess.Popen([script, *options], env=environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE) for script in sorted(folder.glob("nodes/*.sh"))]
        said = [host.communicate(timeout=300) for host in hosts]
    assert len(hosts) > 1 and all(host.returncode == 0 for host in hosts), said
    return "".join(out for out, _ in said)


def hugging_face(binary, scratch, folder, first_loss):
    """A checkpoint becomes a Hugging Face folder, from which a run begins with what was learned."""
    config = scratch / "config.json"
    config.write_text(json.dumps(
        {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 256, "hidden_size": 64,
         "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
         "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
         "max_position_embeddings": 32}))
    out = scratch / "hugging-face"
    words = (sys.executable, "-m", "tangram_torch.to_hugging_face", folder / "plan.json", scratch / "saved", config, out,
             "--dtype", "fp32")
    expect(run(*words, PYTHONPATH=str(folder)), 0, "step-00000003")
    expect(run(*words, PYTHONPATH=str(folder)), 64, "give an empty folder")
    learned = losses(expect(run(folder / "local.sh", "--weights", out, "--steps", "1"), 0))
    assert float(learned[0]) < first_loss, (learned, first_loss)


def planned(binary, inputs, scratch, name, model, *options):
    """The folder of a plan."""
    written, plan, folder = scratch / f"{name}.yaml", scratch / f"{name}.json", scratch / name
    written.write_text(json.dumps(model))
    expect(run(binary, "plan", Path(inputs) / "tiny.json", written, "-q", "-o", plan, *options), 0,
           "as `export --to torch`\\s+runs it")
    expect(run(binary, "export", plan, "--to", "torch", "-o", folder), 0, "run nodes/HOST.sh on every host")
    return folder


def multimodal(binary, inputs, scratch):
    """Encoders on GPUs of their own and in turn with the language model learn the same; a frozen start goes on trained."""
    disjoint = planned(binary, inputs, scratch, "disjoint", MULTIMODAL, "--placement", "disjoint")
    frozen = planned(binary, inputs, scratch, "frozen", MULTIMODAL, "--placement", "disjoint", "--freeze", "vision,language")
    colocated = planned(binary, inputs, scratch, "colocated", MULTIMODAL, "--placement", "colocated")
    apart, together = (losses(expect(run(folder / "local.sh", "--steps", "2"), 0)) for folder in (disjoint, colocated))
    assert len(apart) == 2 and apart == together, (apart, together)
    expect(run(frozen / "local.sh", "--steps", "1", "--save", scratch / "connector"), 0)
    goes_on = expect(run(colocated / "local.sh", "--steps", "2", "--load", scratch / "connector"), 0, "1 iterations done")
    assert len(losses(goes_on)) == 1, goes_on

    tokens = [k % 250 for k in range(161)]
    tokens[8:10] = tokens[70:72] = [IMAGE, IMAGE]
    write_npy(scratch / "tokens.npy", "i", (161,), tokens)
    write_npy(scratch / "images.npy", "f", (2, 9, 12), [0.5] * 216)
    files = ("--data", scratch / "tokens.npy", "--items", f"vision={scratch / 'images.npy'}:{IMAGE}")
    expect(run(disjoint / "local.sh", "--steps", "1", *files), 0, "step 1  loss")
    expect(run(colocated / "local.sh", "--emulate", "--steps", "1"), 0, r"iteration 1: [\d.]+ s emulated")
    expect(run(disjoint / "local.sh", "--weights", scratch), 64, "--weights is for text models")

    resampler = json.loads(json.dumps(MULTIMODAL))
    resampler["architecture"]["encoders"][0]["connector"] = {"kind": "resampler", "widths": [32, 64, 64], "queries": 2}
    (scratch / "resampler.yaml").write_text(json.dumps(resampler))
    plan = scratch / "resampler.json"
    expect(run(binary, "plan", Path(inputs) / "tiny.json", scratch / "resampler.yaml", "-q", "-o", plan), 0)
    expect(run(binary, "export", plan, "--to", "torch", "-o", scratch / "none"), 3, "the connector of vision is a resampler")


def main(binary, inputs):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        folder = planned(binary, inputs, scratch, "run", MODEL)
        model, plan = scratch / "run.yaml", scratch / "run.json"
        record = json.loads(plan.read_text())
        ranks = len(record["ranks"])

        by_hosts = start_hosts(folder, "--steps", "3", "--trace", str(scratch / "trace"))
        local = expect(run(folder / "local.sh", "--steps", "3", "--save", scratch / "saved"), 0, f"on {ranks} ranks")
        assert len(losses(local)) == 3 and losses(local) == losses(by_hosts), (local, by_hosts)
        assert float(losses(local)[-1]) < float(losses(local)[0]), local
        for rank in range(ranks):
            trace = json.loads((scratch / "trace" / f"rank-{rank:05}.json").read_text())
            assert {event["cat"] for event in trace["traceEvents"] if event["ph"] == "X"} == {
                "forward", "backward", "sync", "optimizer"}

        hugging_face(binary, scratch, folder, float(losses(local)[0]))
        again = expect(run(folder / "local.sh", "--steps", "4", "--save", scratch / "saved"), 0, "3 iterations done")
        assert len(losses(again)) == 1, again
        expect(run(folder / "local.sh", "--emulate", "--steps", "1"), 0, r"iteration 1: [\d.]+ s emulated")

        expect(run(folder / "local.sh", "--load", scratch / "nothing"), 64, "nothing has no complete checkpoint")
        expect(run(folder / "local.sh", "--emulate", "--slower", "H100=2"), 64, "the plan has no such GPU")
        expect(run(folder / "local.sh", "--precision", "fp16", "--steps", "1"), 64, "fp16 needs a GPU")
        expect(run(folder / "local.sh", "--step-count", "1"), 2, "unrecognized arguments")
        expect(run(sys.executable, "-m", "tangram_torch", plan, PYTHONPATH=str(folder)), 64, "RANK is not set")
        expect(run(sys.executable, "-m", "tangram_torch", plan, PYTHONPATH=str(folder), RANK="0", WORLD_SIZE="1",
                   LOCAL_RANK="0", LOCAL_WORLD_SIZE="1"), 64, f"the plan has {ranks} ranks, and 1 processes were started")
        expect(run(sys.executable, "-m", "tangram_torch.launch", model, PYTHONPATH=str(folder)), 64,
               "is not a launch plan")
        multimodal(binary, inputs, scratch)
    print("ok")


main(*sys.argv[1:3])
