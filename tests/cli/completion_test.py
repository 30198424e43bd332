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
    # bash divides words at "=" unless COMP_WORDBREAKS says otherwise.
    assert bash_offers(script, "tangram", "plan", "--objective", "=", "c") == {"cost"}
    assert bash_offers(script, "tangram", "plan", "--objective", "=") == {"throughput", "cost", "gpus"}
    assert bash_offers(script, "tangram", "plan", "--objective=c") == {"--objective=cost"}
    assert bash_offers(script, "tangram", "plan", "--forbid", "ep,zero3,mix") == {"ep,zero3,mixed", "ep,zero3,mixed_stages"}
    assert {"ep", "zero3", "pp"} <= bash_offers(script, "tangram", "plan", "--forbid", "")
    assert bash_offers(script, "tangram", "plan", "--forbid=tp,pi") == {"--forbid=tp,pipeline"}
    assert bash_offers(script, "tangram", "export", "p.json", "--to", "s") == {"sailor", "slurm"}
    assert bash_offers(script, "tangram", "import", "--from", "me") == {"megatron", "metis"}
    assert bash_offers(script, "tangram", "profile", "import", "--from", "nc") == {"nccl-tests"}
    assert bash_offers(script, "tangram", "compare", "a", "b", "--with", "metis,s") == {"metis,sailor"}
    assert "missing-all-reduce" in bash_offers(script, "tangram", "verify", "p.json", "--inject", "missing-all-")
    assert bash_offers(script, "tangram", "cluster", "from-s") == {"from-slurm"}
    assert bash_offers(script, "tangram", "help", "run") == {"runtimes"}
    assert {"plan", "plans", "fleet"} <= bash_offers(script, "tangram", "help", "")
    assert bash_offers(script, "tangram", "manual", "fl") == {"fleet", "fleet-in-ci"}
    assert "etc" in bash_offers(script, "tangram", "plan", "et"), "arguments are files"


def named_in_help(tangram, command, option):
    """The words that help names as values of an option."""
    text = output(tangram, command, "--help")
    about = re.search(rf"^ +--{option} [A-Z]+ +((?:.*\n)(?: {{20,}}.*\n)*)", text, re.M).group(1)
    return set(re.findall(r"[a-z][\w-]+", about))


def check_values(tangram, folder):
    """What is offered as a value is taken by the program's own help."""
    script = folder / "tangram.bash"
    for command, option in (("export", "to"), ("import", "from"), ("profile", "from"), ("verify", "inject"),
                            ("export", "program"), ("compare", "mode")):
        offered = bash_offers(script, "tangram", command, f"--{option}", "")
        assert offered and offered <= named_in_help(tangram, command, option), (command, option, offered)


def check_texts(tangram):
    zsh, fish, manual = (output(tangram, *words) for words in (("completion", "zsh"), ("completion", "fish"), ("manual",)))
    for command in commands_of(tangram):
        options = options_of(tangram, command)
        if command in ("help", "manual"):
            assert "two-desktops" in re.search(rf"^    {command}\)\n(?:.*\n)*?.*'2:action:\((.*)\)'", zsh, re.M).group(1)
            assert "two-desktops" in re.search(rf"__fish_seen_subcommand_from {command}' -a '(.*)'", fish).group(1)
        in_zsh = re.search(rf"^    {command}\)\n(.*?)^      ;;", zsh, re.M | re.S).group(1)
        assert set(re.findall(r"^        '(--[\w-]+)=?\[", in_zsh, re.M)) == options, command
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
        check_values(tangram, Path(folder))
        check_texts(tangram)
        check_tools(tangram, Path(folder))
    done = subprocess.run([tangram, "completion", "fihs"], capture_output=True, text=True, check=False)
    assert done.returncode == 64 and 'did you mean "fish"?' in done.stderr, done.stderr
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
