#!/usr/bin/env python3
"""The jobs in configs/ci, step by step, with a fleet, git and gh that only take notes.

    ci_files_test.py TANGRAM SCRIPTS CONFIGS INPUTS SLURM KUBERNETES       the last two: reports
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import yaml
except ImportError:
    print("skipped: no PyYAML")
    sys.exit(77)


def tool(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


class Runner:
    """A folder with the repository's files, and a PATH of tools that answer or take notes."""

    def __init__(self, folder, tangram, scripts, inputs):
        self.folder, self.notes = folder, folder / "notes"
        tools = folder / "bin"
        tools.mkdir()
        (folder / "model.yaml").write_text(Path(inputs, "mini.yaml").read_text(encoding="utf-8"), encoding="utf-8")
        (tools / "tangram").symlink_to(tangram)
        tool(tools, "replan.py", f'exec {shlex.quote(sys.executable)} {shlex.quote(scripts)}/replan.py "$@"')
        for name in ("git", "gh"):
            tool(tools, name, f'echo {name} "$1" >> {shlex.quote(str(self.notes))}')
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(folder), "RUNNER_TEMP": str(folder),
                            "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_ACTOR": "someone", "LC_ALL": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def fleet(self, command, report):
        tool(self.folder / "bin", command, f"cat {shlex.quote(report)}")

    def run(self, script, variables):
        environment = self.environment | {name: str(value) for name, value in variables.items()}
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=self.folder, env=environment,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def noted(self):
        text = self.notes.read_text(encoding="utf-8").split("\n")[:-1] if self.notes.exists() else []
        self.notes.unlink(missing_ok=True)
        return text


def github(runner, job):
    runner.fleet("scontrol", runner.slurm)
    steps = {step.get("name"): step for step in job["jobs"]["replan"]["steps"]}
    variables = job["jobs"]["replan"]["env"]
    for expected in ("changed=true", "changed=false"):
        Path(runner.environment["GITHUB_OUTPUT"]).write_text("", encoding="utf-8")
        runner.run(steps["Ask the fleet"]["run"], variables)
        runner.run(steps["Plan against the plan that runs"]["run"], variables)
        assert Path(runner.environment["GITHUB_OUTPUT"]).read_text(encoding="utf-8").strip() == expected
        if expected == "changed=true":
            runner.run(steps["Open a change"]["run"], variables)
            assert runner.noted()[-3:] == ["git commit", "git push", "gh pr"]
        runner.run(steps["Search for what the fleet may be tomorrow"]["run"], variables)
        assert Path(runner.folder, ".cache", "tangram", "answers.sqlite").exists()
    assert "${{ github.token }}" in str(steps["Open a change"]["env"])


def gitlab(runner, job):
    runner.fleet("kubectl", runner.kubernetes)
    variables = job["replan"]["variables"] | {name: "x" for name in ("GITLAB_USER_NAME", "GITLAB_USER_EMAIL",
                                                                     "REPLAN_TOKEN", "CI_SERVER_HOST", "CI_PROJECT_PATH")}
    script = "\n".join(job["replan"]["script"])
    after = "\n".join(job["replan"]["after_script"])
    runner.run(script, variables)
    assert runner.noted()[-2:] == ["git commit", "git push"]
    runner.run(after, variables)
    assert Path(runner.folder, job["replan"]["cache"]["paths"][0]).is_dir()
    runner.run(script, variables)
    assert runner.noted() == [], "nothing happened, nothing is opened"


def main(tangram, scripts, configs, inputs, slurm, kubernetes):
    for name, play in (("github", github), ("gitlab", gitlab)):
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(Path(folder), tangram, scripts, inputs)
            runner.slurm, runner.kubernetes = slurm, kubernetes
            play(runner, yaml.safe_load(Path(configs, "ci", name, "replan.yml").read_text(encoding="utf-8")))
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
