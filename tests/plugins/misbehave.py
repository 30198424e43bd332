#!/usr/bin/env python3
"""A parallelizer that does one thing wrong, or nothing: misbehave.py MODE. Speaks the protocol by itself, so that what the
SDK takes care of can go wrong here."""
import json
import os
import signal
import subprocess
import sys
import time

mode = sys.argv[1]
channel = os.fdopen(os.dup(3), "r", encoding="utf-8")


def say(text):
    os.write(3, text.encode())


def answer(message, **stage):
    # Data parallelism over the whole shape, a good answer wherever dp divides the microbatch.
    shape = shapes[message["shape"]]
    plan = {"blocks": message["slice"]["blocks"], "degrees": {"dp": shape["nodes"] * shape["per_node"]}}
    plan.update(stage)
    return json.dumps({"type": "result", "id": message["id"], "plans": [{"stages": [plan]}]}) + "\n"


if mode == "dies-at-hello":
    print("this is not going to work", flush=True)
    sys.exit(3)
if mode == "prints-without-end":
    while True:
        os.write(1, b"y\n" * 4096)
if os.environ.get("ANSWERED_BY"):  # one line for each answer: who gave it
    answered_by = open(os.environ["ANSWERED_BY"], "a", encoding="utf-8", buffering=1)
say(json.dumps({"type": "hello", "protocol": 1, "name": mode, "version": "1"}) + "\n")
shapes = {}
for line in channel:
    message = json.loads(line)
    if message["type"] == "load":
        if "shape" in message:
            shapes[message["digest"]] = message["shape"]
        continue
    if message["type"] == "bye":
        break
    if mode == "segfault":
        print("about to crash", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    elif mode == "hangs-with-a-child":
        subprocess.Popen(["sleep", "300"])
        subprocess.Popen(["sleep", "300"], start_new_session=True)  # a daemon leaves the process group
        time.sleep(300)
    elif mode == "garbage":
        say("<html>no</html>\n")
    elif mode == "half-a-line":
        say(answer(message)[:20])
        sys.exit(0)
    elif mode == "memory":
        hoard = []
        while True:
            hoard.append(bytearray(64 << 20))
    elif mode == "wrong-id":
        message["id"] += 1000
        say(answer(message))
    elif mode == "negative-time":
        say(answer(message, forward_ns=-5, backward_ns=10))
    elif mode == "nan":
        say(answer(message, forward_ns=float("nan"), backward_ns=1))
    elif mode == "too-late":
        time.sleep(1.5)
        say(answer(message))
    elif mode == "wrong-layers":
        say(answer(message, blocks=[{"type": run["type"], "count": run["count"] + 1} for run in
                                    message["slice"]["blocks"]]))
    elif mode == "prints":
        print(answer(message))  # to stdout, where nobody reads answers
    elif mode == "slow":
        time.sleep(0.05)
        answered_by.write(f"{os.getpid()}\n")
        say(answer(message))
    else:  # "good"
        say(answer(message))
