#!/usr/bin/env python3
"""Thirteen parallelizers that misbehave, through the real binary: none changes the plan that the enumerator makes alone, none
leaves a process or a folder behind, and each is named in the plan with its reason. And: answers use all workers, the number of
workers changes nothing, killing the planner takes its workers with it, and what they print is kept. The same through an engine,
where agents may be killed as well.

    misbehaviour_test.py BINARY [ENGINE]     local (default), stand-in, mpi or slurm (engines.py)
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

import engines

BINARY = os.path.abspath(sys.argv[1])
HERE = Path(__file__).resolve().parent
PLUGIN = str(HERE / "misbehave.py")
INPUTS = HERE.parent / "cli" / "inputs"
ENGINE = sys.argv[2] if len(sys.argv) > 2 else "local"
MARK = f"TANGRAM_TEST_MARK={uuid.uuid4()}"  # in the environment of planner, engine, workers and all that they start
WORKERS = 16
FEW = ["--microbatch", "8"]  # hundreds of questions, not thousands
placed = []                  # the options of the engine

# mode: exit code, kind of reason, its code, part of its text
MISBEHAVIOUR = {
    "segfault": (5, "failed", "crashed", "signal 11"),
    "hangs-with-a-child": (6, "failed", "timed-out", "no answer within 0.5 s"),
    "garbage": (5, "failed", "protocol", "not JSON: <html>no</html>"),
    "half-a-line": (5, "failed", "crashed", "in the middle of a line"),
    "memory": (5, "failed", "crashed", "exit 1"),
    "wrong-id": (5, "failed", "protocol", "which it was not asked"),
    "negative-time": (0, "rejected", "negative", "forward_ns is -5"),
    "nan": (5, "failed", "protocol", "not JSON"),
    "too-late": (6, "failed", "timed-out", "no answer within 0.5 s"),
    "wrong-layers": (0, "rejected", "wrong-blocks", "asked was"),
    "prints": (6, "failed", "timed-out", "no answer within 0.5 s"),
    "dies-at-hello": (5, "failed", "unavailable", "exit 3"),
    "prints-without-end": (5, "failed", "unavailable", "printed 4 MiB and said no hello"),
}


def marked_processes():
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid() and MARK.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass
    return found


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def write_manifest(folder, mode, timeout_s=0.5, **variables):
    name, value = MARK.split("=")
    environment = {name: value, **variables}
    (folder / f"{mode}.json").write_text(json.dumps({
        "schema": "tangram.parallelizer/1", "command": [sys.executable, PLUGIN, mode], "query_timeout_s": timeout_s,
        "start_timeout_s": 10, "environment": environment,
        **({"memory_limit_gib": 0.25} if mode == "memory" else {})}))


def command(folder, parallelizers, output, *options):
    return [BINARY, "plan", str(INPUTS / "tiny.json"), str(INPUTS / "mini.yaml"), "--parallelizer", parallelizers,
            "--parallelizer-path", str(folder), "-o", str(output), *placed, *options]


def plan(folder, parallelizers, *options):
    output = folder / "plan.out"
    output.unlink(missing_ok=True)
    done = subprocess.run(command(folder, parallelizers, output, *options), capture_output=True, text=True)
    return done, json.loads(output.read_text()) if output.exists() else None, output.read_bytes() if output.exists() else b""


def body(document):
    return {key: value for key, value in document.items() if key != "provenance"}


def check_misbehaviour(folder):
    alone, reference, _ = plan(folder, "enumerator")
    assert alone.returncode == 0, alone.stderr
    for mode, (code, kind, reason, text) in MISBEHAVIOUR.items():
        write_manifest(folder, mode, timeout_s=20 if mode == "memory" else 0.5)
        done, document, _ = plan(folder, f"enumerator,{mode}")
        assert done.returncode == code, (mode, done.returncode, done.stderr)
        assert document is not None and body(document) == body(reference), f"{mode} changed the plan"
        assert document["plan_id"] == reference["plan_id"]
        (outsider,) = document["provenance"]["outside_parallelizers"]
        assert outsider["name"] == mode and outsider["plans"] == 0, outsider
        reasons = {entry["code"]: entry["example"] for entry in outsider[kind]}
        assert text in reasons.get(reason, ""), (mode, outsider)
        if kind == "failed":
            assert f"parallelizer {mode} failed" in done.stderr, done.stderr
            assert not document["provenance"]["optimal"], f"{mode}: optimal, although queries stayed open"
        assert wait_until(lambda: not marked_processes()), (mode, marked_processes())
        print(f"ok: {mode}: exit {code}, {reason}: {reasons[reason]}")
    shown = plan(folder, "enumerator,segfault")[0].stderr
    assert "about to crash" in shown, shown  # what it printed


def check_alone(folder):
    done, document, _ = plan(folder, "segfault")
    assert done.returncode == 5 and document is None, done
    done, document, _ = plan(folder, "too-late")
    assert done.returncode == 6 and document is None, done
    print("ok: without anybody else there is no plan: exit 5, and 6 where time alone was short")


def workers(count):
    return ["-j" if ENGINE == "local" else "--worker-cores", str(count)]


def check_workers(folder):
    answered_by = folder / "answered_by"
    write_manifest(folder, "slow", timeout_s=60, ANSWERED_BY=str(answered_by))
    done, document, _ = plan(folder, "slow", *FEW, *workers(WORKERS))
    assert done.returncode == 0, done.stderr
    (outsider,) = document["provenance"]["outside_parallelizers"]
    answers = Counter(answered_by.read_text().split())
    assert outsider["queries"] >= 300 and sum(answers.values()) == outsider["queries"], (outsider, answers)
    fair = sum(answers.values()) / WORKERS
    # The first worker says hello before the others are started.
    assert len(answers) == WORKERS and min(answers.values()) > fair / 2, answers
    print(f"ok: {outsider['queries']} queries of 50 ms: {len(answers)} workers answered "
          f"{min(answers.values())} to {max(answers.values())} each")
    write_manifest(folder, "good")
    texts = {plan(folder, "enumerator,good", *FEW, *workers(count))[2] for count in (1, 2, 7)}
    assert len(texts) == 1, "the plan depends on the number of workers"
    print("ok: one, two and seven workers make the same file")


def check_kill(folder):
    write_manifest(folder, "hangs-with-a-child", timeout_s=300)
    for number in (signal.SIGKILL, signal.SIGTERM):
        planner = subprocess.Popen(command(folder, "enumerator,hangs-with-a-child", folder / "never"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sleeping = lambda: sum(line.startswith("sleep") for line in marked_processes()) >= 2
        assert wait_until(sleeping), marked_processes()
        planner.send_signal(number)
        planner.wait()
        assert wait_until(lambda: not marked_processes()), (number, marked_processes())
        if ENGINE == "slurm":
            assert wait_until(lambda: not jobs()), jobs()
        print(f"ok: {number.name} of the planner takes workers, their children and their daemons with it")


def check_time_limit(folder):
    write_manifest(folder, "hangs-with-a-child", timeout_s=300)
    begin = time.monotonic()
    done, document, _ = plan(folder, "enumerator,hangs-with-a-child", "--time-limit", "3")
    seconds = time.monotonic() - begin
    assert done.returncode == 6 and document is None and "no plan found within 3 s" in done.stderr, done
    assert seconds < 30, seconds  # not the plugin's 300
    assert wait_until(lambda: not marked_processes()), marked_processes()
    print("ok: the time limit stops workers that do not answer")


def check_folders(temporary):
    left = lambda: list(temporary.glob("tangram-worker-*"))
    assert wait_until(lambda: not left()), left()
    print("ok: no worker's folder is left")


def jobs():
    return subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout


def check_logs(folder):
    logs = folder / "made" / "logs"
    plan(folder, "enumerator,segfault", "--plugin-log-dir", str(logs), *workers(2))
    kept = sorted(logs.iterdir())
    # Three questions may fail, each is asked twice, and a third worker may have been started meanwhile.
    assert len(kept) >= 6 and kept[0].name == "segfault-1.log", kept
    assert sum(log.read_text() == "about to crash\n" for log in kept) >= 6, [log.read_text() for log in kept]
    (folder / "file").write_text("")
    done, _, _ = plan(folder, "enumerator,segfault", "--plugin-log-dir", str(folder / "file" / "logs"))
    assert done.returncode == 4 and "--plugin-log-dir" in done.stderr, done.stderr
    print(f"ok: what {len(kept)} workers printed is in {kept[0].name} and so on")


def agents():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and is_agent(entry)]


def is_agent(entry):
    try:
        words = (entry / "cmdline").read_bytes().split(b"\0")
        marked = MARK.encode() in (entry / "environ").read_bytes().split(b"\0")
        return marked and words[:2] == [BINARY.encode(), b"worker"]
    except OSError:
        return False


def check_lost_agent(folder):
    """A node that fails costs time, no answer: its question goes to another worker."""
    answered_by = folder / "lost"
    write_manifest(folder, "slow", timeout_s=60, ANSWERED_BY=str(answered_by))
    _, _, reference = plan(folder, "slow", *FEW, *workers(4))
    answered_by.unlink()
    output = folder / "lost.out"
    planner = subprocess.Popen(command(folder, "slow", output, *FEW, *workers(4)), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: answered_by.exists() and len(answered_by.read_text().split()) > 20)
    os.kill(max(agents()), signal.SIGKILL)
    _, errors = planner.communicate(timeout=120)
    assert planner.returncode == 0 and output.read_bytes() == reference, (planner.returncode, errors)
    assert wait_until(lambda: not marked_processes()), marked_processes()
    print("ok: SIGKILL of an agent in the middle: the same plan")


def check_engine_trouble(folder):
    """An engine that is not there, and one that ends before a worker has called."""
    write_manifest(folder, "good")
    for launcher, code, text in (
            ("no-such-engine", 5, "no-such-engine is not on the PATH\n  hint: install Slurm's client commands"),
            (str(folder / "nothing"), 5, "is no program\n  hint: install Slurm's client commands"),
            ("false", 5, "false started no worker: exit 1")):
        done, document, _ = plan(folder, "good", "--worker-launcher", launcher)
        assert done.returncode == code and text in done.stderr and document is None, (launcher, done)
    done, document, _ = plan(folder, "enumerator,good", "--worker-launcher", "false")
    assert done.returncode == 5 and document is not None, done.stderr  # the enumerator's plan is written
    nobody = {name: value for name, value in os.environ.items() if name != "TANGRAM_WORKER_SECRET"}
    done = subprocess.run([BINARY, "worker", "127.0.0.1:1"], capture_output=True, text=True, check=False, env=nobody)
    assert done.returncode == 5 and "nobody to work for" in done.stderr, done
    done = subprocess.run([BINARY, "worker", "127.0.0.1:1"], capture_output=True, text=True, check=False,
                          env={**nobody, "TANGRAM_WORKER_SECRET": f"{'0' * 32}:{'1' * 32}"})
    assert done.returncode == 5 and "does not reach the planner at 127.0.0.1:1" in done.stderr, done
    print("ok: engines that are missing or fail, and agents without a planner, say so")


def main():
    try:
        with tempfile.TemporaryDirectory() as name, engines.ENGINES[ENGINE](WORKERS) as options:
            os.environ.update([MARK.split("=")])  # the engine's own daemons are not marked
            os.environ["TMPDIR"] = str(Path(name) / "temporary")
            Path(os.environ["TMPDIR"]).mkdir()
            placed.extend([*options, *workers(3)] if ENGINE != "local" else [])
            folder = Path(name)
            check_misbehaviour(folder)
            check_alone(folder)
            check_workers(folder)
            check_time_limit(folder)
            check_logs(folder)
            if ENGINE != "local":
                check_lost_agent(folder)
            if ENGINE == "stand-in":
                check_engine_trouble(folder)
            check_kill(folder)
            if ENGINE != "slurm":  # slurmd kills whatever a job has left at once, guards included
                check_folders(Path(os.environ["TMPDIR"]))
    except engines.Missing as why:
        engines.skip(why)


if __name__ == "__main__":
    main()
