#!/usr/bin/env python3
"""`tangram disaggregate compare --to vllm`: what its scripts start, with programs in the place of vLLM that write down how
they were called.

    serve_test.py TANGRAM INPUTS
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TANGRAM, INPUTS = sys.argv[1], Path(sys.argv[2])
TYPES = ("A100-80GB-SXM", "L40S")
STAND_IN = """#!/bin/sh
echo "$(basename "$0") ${CUDA_VISIBLE_DEVICES:--} ${VLLM_NIXL_SIDE_CHANNEL_HOST:--} ${VLLM_NIXL_SIDE_CHANNEL_PORT:--} $*" >>"$LOG"
sleep 1
"""


def call(*words, expected=0, **environment):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "NO_COLOR": "1", **environment})
    assert done.returncode == expected, (words, done.returncode, done.stdout, done.stderr)
    return done


def fleet_in(folder):
    def host(name, *gpus):
        return {"name": name, "gpus": [{"type": t, "count": n} for t, n in gpus],
                "network": {"bandwidth_gbit_s": 200, "kind": "infiniband"}}

    path = folder / "fleet.json"
    path.write_text(json.dumps({"schema": "tangram.cluster/1", "name": "three",
                                "nodes": [host("one", (TYPES[0], 2)), host("two", (TYPES[1], 1), (TYPES[0], 1))]}))
    return path


def calls_of(folder, script, *arguments, **environment):
    """What the programs that a script started were told, sorted."""
    stand_ins, log = folder / "bin", folder / "log"
    stand_ins.mkdir(exist_ok=True)
    for name in ("vllm", "python3"):
        (stand_ins / name).write_text(STAND_IN)
        (stand_ins / name).chmod(0o755)
    log.write_text("")
    call(script, *arguments, PATH=f"{stand_ins}:{os.environ['PATH']}", LOG=str(log), **environment)
    return sorted(log.read_text().splitlines())


def check_replicas(folder, compare):
    document = json.loads(call(*compare, "--to", "vllm", "--arm", "replicas", "-o", folder / "replicas", "--json").stdout)
    arm = next(arm for arm in document["arms"] if arm["arm"] == "replicas")
    files = sorted(str(path.relative_to(folder / "replicas")) for path in (folder / "replicas").rglob("*.*"))
    assert files == ["nodes/one.sh", "nodes/two.sh", "router.conf"], files
    one = calls_of(folder, folder / "replicas/nodes/one.sh", "a-model", "--dtype", "bfloat16")
    two = calls_of(folder, folder / "replicas/nodes/two.sh", "a-model")
    assert [line.split()[1] for line in one] == ["0", "1"] and [line.split()[1] for line in two] == ["0", "1"], (one, two)
    seats = 0
    for port, line in zip(("8100", "8101"), one):
        found = re.fullmatch(rf"vllm \d - - serve a-model --port {port} --max-num-seqs (\d+) --dtype bfloat16", line)
        assert found, line
        seats += int(found[1])
    seats += sum(int(re.search(r"--max-num-seqs (\d+)$", line)[1]) for line in two)
    assert seats == arm["requests_in_memory"], (seats, arm)
    router = (folder / "replicas/router.conf").read_text()
    weights = {(host, int(port)): int(weight)
               for host, port, weight in re.findall(r"server (\w+):(\d+) weight=(\d+);", router)}
    assert set(weights) == {("one", 8100), ("one", 8101), ("two", 8100), ("two", 8101)}, router
    of_l40s = weights["two", 8100] / sum(weights.values())
    assert abs(of_l40s - min(arm["shares"], key=lambda share: abs(share - of_l40s))) < 2e-3, (weights, arm)
    call("shellcheck", folder / "replicas/nodes/one.sh")


def check_phases(folder, compare):
    call(*compare, "--to", "vllm", "--arm", "prefill/decode", "-o", folder / "phases")
    started = [calls_of(folder, folder / f"phases/nodes/{host}.sh", "m") for host in ("one", "two")]
    ends = {}
    for host, lines in zip(("one", "two"), started):
        for line in lines:
            words = line.split()
            assert words[2] == host and words[3] == str(5600 + int(words[1])), line
            assert '--kv-transfer-config {"kv_connector":"NixlConnector","kv_role":"kv_both"}' in line, line
            ends[host, words[words.index("--port") + 1]] = words
    assert len(ends) == 4, started
    proxy, = calls_of(folder, folder / "phases/proxy.sh", VLLM="/vllm")
    found = re.search(r"--prefiller-hosts (.+) --prefiller-ports (.+) --decoder-hosts (.+) --decoder-ports (.+)$", proxy)
    prefill, decode = (set(zip(found[i].split(), found[i + 1].split())) for i in (1, 3))
    assert prefill and decode and not prefill & decode and prefill | decode == set(ends), proxy
    call("shellcheck", folder / "phases/proxy.sh", folder / "phases/nodes/two.sh")


def check_refusals(folder, compare):
    for arguments, code, said in (
            (["--arm", "kernels"], 3, 'no serving engine runs the arm "kernels"'),
            (["--arm", "replica"], 64, 'did you mean "replicas"'),
            (["--to", "sglang"], 64, "formats: vllm")):
        words = arguments if "--to" in arguments else ["--to", "vllm", *arguments]
        done = call(*compare, *words, "-o", folder / "none", expected=code)
        assert said in done.stderr and not (folder / "none").exists(), done.stderr
    assert "needs -o FOLDER" in call(*compare, "--to", "vllm", expected=64).stderr
    assert "--arm is for --to" in call(*compare, "--arm", "replicas", expected=64).stderr


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        graph = folder / "graph.json"
        call(TANGRAM, "kernels", "synth", INPUTS / "moe.yaml", "--phase", "prefill,decode", "--requests", "4", "--context",
             "256", "--gpu", ",".join(TYPES), "-o", graph)
        compare = (TANGRAM, "disaggregate", "compare", fleet_in(folder), graph)
        check_replicas(folder, compare)
        check_phases(folder, compare)
        check_refusals(folder, compare)


if __name__ == "__main__":
    main()
