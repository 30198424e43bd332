#!/usr/bin/env python3
"""The jobs in configs/ci, step by step, with a fleet, git, gh and curl that only take notes.

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
    print("skipped: no PyYAML; sudo apt-get install python3-yaml")
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
        # Whether a change waits for review stands in the file "waiting": its number, or nothing.
        self.waiting = folder / "waiting"
        self.wait_for_review("")
        note = f'echo "$(basename "$0")" "$@" >> {shlex.quote(str(self.notes))}'
        waiting = shlex.quote(str(self.waiting))
        tool(tools, "git", f'{note}\nif [ "$1" = ls-remote ]; then [ -s {waiting} ] || exit 2; fi')
        tool(tools, "gh", f'{note}\nif [ "$2" = list ]; then cat {waiting}; fi')
        listed = 'case "$*" in *state=opened*) if [ -s "$w" ]; then echo "[{\\"iid\\": $(cat "$w")}]"; else echo "[]"; fi ;; esac'
        tool(tools, "curl", f"{note}\nw={waiting}\n{listed}")
        self.environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(folder), "RUNNER_TEMP": str(folder),
                            "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_ACTOR": "someone",
                            "GITHUB_REF_NAME": "main", "LC_ALL": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def fleet(self, command, report):
        tool(self.folder / "bin", command, f"cat {shlex.quote(report)}")

    def wait_for_review(self, number):
        self.waiting.write_text(number, encoding="utf-8")

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
    output = Path(runner.environment["GITHUB_OUTPUT"])

    def day(expected):
        """The steps of a day, as their conditions want them."""
        output.write_text("", encoding="utf-8")
        for step in job["jobs"]["replan"]["steps"]:
            if "run" not in step:
                continue
            condition = step.get("if", "")
            if condition and f"'{output.read_text(encoding='utf-8').strip().removeprefix('changed=')}'" not in condition:
                continue
            runner.run(step["run"], variables)
        assert output.read_text(encoding="utf-8").strip() == f"changed={expected}"
        return runner.noted()

    log = "git commit -m Log what replanning decided -- plans/decisions.log"
    first = day("true")
    assert [line for line in first if line == log] and first.index("git push origin HEAD:main") == first.index(log) + 1, first
    assert first[-2].startswith("gh pr list") and first[-1].startswith("gh pr create --head replan"), first
    assert "git push --force origin replan" in first
    # Nothing changes, but a change waits: the decision is logged, and the change of no use withdrawn.
    runner.wait_for_review("7")
    second = day("false")
    assert log in second and second[-1] == "git push origin --delete replan", second
    runner.wait_for_review("")
    third = day("false")
    assert log in third and third[-1].startswith("git ls-remote"), third
    # Another change while one waits: that one is brought up to date.
    Path(runner.folder, "plans", "job.json").unlink()
    runner.wait_for_review("7")
    fourth = day("true")
    assert fourth[-1].startswith("gh pr edit replan --body-file"), fourth
    assert not [line for line in fourth if "pr create" in line], fourth
    assert Path(runner.folder, ".cache", "tangram", "answers.sqlite").exists()
    assert "${{ github.token }}" in str(steps["Open a change, or bring the one that waits up to date"]["env"])


def gitlab(runner, job):
    runner.fleet("kubectl", runner.kubernetes)
    names = ("GITLAB_USER_NAME", "GITLAB_USER_EMAIL", "REPLAN_TOKEN", "CI_SERVER_HOST", "CI_PROJECT_PATH", "CI_API_V4_URL",
             "CI_PROJECT_ID")
    # The model takes a tenth of a second: what another search finds for it is more than the job's 2 %, and no change of the fleet.
    variables = job["replan"]["variables"] | {name: "x" for name in names} | {"CI_DEFAULT_BRANCH": "main", "MIN_GAIN": "15%"}
    script = "\n".join(job["replan"]["script"])
    after = "\n".join(job["replan"]["after_script"])

    def day():
        runner.run(script, variables)
        return runner.noted()

    log = "git commit -m Log what replanning decided -- plans/decisions.log"
    first = day()
    assert first[first.index(log) + 1].endswith("HEAD:main"), first
    assert "-X POST" in first[-1] and "description@change.md" in first[-1], first
    assert len(Path(runner.folder, "change.md").read_text(encoding="utf-8").splitlines()) > 3, "lines stay lines"
    assert not [line for line in first if "merge_request.description" in line], first
    runner.run(after, variables)
    assert Path(runner.folder, job["replan"]["cache"]["paths"][0]).is_dir()
    runner.wait_for_review("7")
    second = day()
    assert log in second and second[-1].endswith("--delete replan"), second
    runner.wait_for_review("")
    third = day()
    assert log in third and "ls-remote" in third[-1], "nothing happened, nothing is opened"
    Path(runner.folder, "plans", "job.json").unlink()
    runner.wait_for_review("7")
    fourth = day()
    assert "-X PUT" in fourth[-1] and "/7 " in fourth[-1] and not [line for line in fourth if "-X POST" in line], fourth


def main(tangram, scripts, configs, inputs, slurm, kubernetes):
    for name, play in (("github", github), ("gitlab", gitlab)):
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(Path(folder), tangram, scripts, inputs)
            runner.slurm, runner.kubernetes = slurm, kubernetes
            play(runner, yaml.safe_load(Path(configs, "ci", name, "replan.yml").read_text(encoding="utf-8")))
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
