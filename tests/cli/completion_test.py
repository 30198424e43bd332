#!/usr/bin/env python3
"""Completions and the manual say what the help says: every command, every option. Usage: completion_test.py TANGRAM"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def output(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def section(text, title):
    return re.search(rf"^{title}:\n((?:  .*\n)+)", text, re.M).group(1)


def commands_of(tangram):
    return [line.split()[0] for line in section(output(tangram, "--help"), "Commands").splitlines() if line[2] != " "]


def options_of(tangram, command):
    return set(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", output(tangram, command, "--help"), re.M))


def bash_offers(script, *words):
    """What bash completes the last word to."""
    listed = " ".join(f"'{word}'" for word in words)
    text = output("bash", "-c", f"source '{script}'; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _tangram; "
                                "printf '%s\\n' \"${COMPREPLY[@]}\"", cwd="/")
    return set(text.split())


def check_bash(tangram, folder):
    script = folder / "tangram.bash"
    script.write_text(output(tangram, "completion", "bash"), encoding="utf-8")
    commands = commands_of(tangram)
    assert bash_offers(script, "tangram", "") == {*commands, "--help", "--version"}
    for command in commands:
        assert bash_offers(script, "tangram", command, "--") == options_of(tangram, command), command
    assert bash_offers(script, "tangram", "plan", "--target", "m") == {"megatron", "mimo"}
    assert bash_offers(script, "tangram", "plan", "a", "b", "--forb") == {"--forbid"}
    assert bash_offers(script, "tangram", "cluster", "from-s") == {"from-slurm"}
    assert "etc" in bash_offers(script, "tangram", "plan", "et"), "arguments are files"


def check_texts(tangram):
    zsh, fish, manual = (output(tangram, *words) for words in (("completion", "zsh"), ("completion", "fish"), ("manual",)))
    for command in commands_of(tangram):
        options = options_of(tangram, command)
        in_zsh = re.search(rf"^    {command}\)\n(.*?)^      ;;", zsh, re.M | re.S).group(1)
        assert set(re.findall(r"^        '(--[\w-]+)\[", in_zsh, re.M)) == options, command
        in_fish = re.findall(rf"__fish_seen_subcommand_from {command}' -l ([\w-]+)", fish)
        assert {"--" + name for name in in_fish} == options, command
        in_manual = re.search(rf'^\.SS "tangram {command}\b(.*?)(?=^\.S[SH])', manual, re.M | re.S).group(1)
        flags = re.findall(r"^(?:\\fB\\-\w\\fR, )?\\fB\\-\\-([\w\\-]+?)\\fR", in_manual, re.M)
        assert {"--" + name.replace("\\-", "-") for name in flags} == options, command


def check_tools(tangram, folder):
    """With the programs themselves, where they are installed."""
    for shell, words in (("zsh", ["-n"]), ("fish", ["-n"]), ("bash", ["-n"])):
        script = folder / f"tangram.{shell}"
        script.write_text(output(tangram, "completion", shell), encoding="utf-8")
        if shutil.which(shell):
            output(shell, *words, str(script))
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z"], input=output(tangram, "manual"), text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr


def main(tangram):
    with tempfile.TemporaryDirectory() as folder:
        check_bash(tangram, Path(folder))
        check_texts(tangram)
        check_tools(tangram, Path(folder))
    done = subprocess.run([tangram, "completion", "fihs"], capture_output=True, text=True, check=False)
    assert done.returncode == 64 and 'did you mean "fish"?' in done.stderr, done.stderr
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
