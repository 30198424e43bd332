#!/usr/bin/env python3
"""The README is short, the manual is whole. Usage: manual_test.py TANGRAM

README.md has at most 900 words. Links of README.md and of the manual lead to files and headings that exist. Commands of
sh blocks have the options they use, files of json and yaml blocks are taken by the program. Every page is shown by
`tangram help`, within the width of the terminal, and printed for man without a complaint of groff. Figures that
README.md takes from the page about predictions are that page's.
"""

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "apps/tangram/manual").glob("*.md"))
TEXTS = [ROOT / "README.md", ROOT / "src/README.md", *PAGES]
MOST_WORDS = 900
HELP_WIDTH = 80
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def run(*words, **options):
    return subprocess.run(words, capture_output=True, text=True, check=False, **options)


def output(*words, **options):
    done = run(*words, **options)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def prose(path):
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """Those that GitHub gives the headings."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_readme():
    words = len((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert words <= MOST_WORDS, f"README.md has {words} words, more than {MOST_WORDS}: the manual has room"


def check_links():
    for path in TEXTS:
        for target in re.findall(r"\]\(([^)]+)\)", prose(path)):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            assert file.exists(), f"{path.relative_to(ROOT)}: {target} leads nowhere"
            assert ROOT in file.parents, f"{path.relative_to(ROOT)}: {target} leads out of the repository"
            assert not anchor or anchor in anchors(file), f"{path.relative_to(ROOT)}: no heading #{anchor} in {name}"


def check_pages_are_ascii():
    for path in PAGES:
        path.read_text(encoding="ascii")  # groff and old terminals know nothing else


def options_of(tangram, command):
    return set(re.findall(r"^  (?:-\w, |    )(--[\w-]+)", output(tangram, command, "--help"), re.M)) | {"-o", "-q", "-j"}


def commands_in(tangram):
    return re.findall(r"^  ([a-z]+) +\S", output(tangram, "--help").split("Commands:\n")[1].split("\n\n")[0], re.M)


def check_shell_blocks(tangram):
    known = {command: options_of(tangram, command) for command in commands_in(tangram)}
    for path in TEXTS:
        for language, block in FENCED.findall(path.read_text(encoding="utf-8")):
            if language != "sh":
                continue
            for command, words in re.findall(r"\btangram ([a-z]+)((?:[^#|\n]|\\\n)*)", block):
                assert command in known, f"{path.name}: tangram {command}"
                used = set(re.findall(r"(?<=\s)(--?[a-z][\w-]*)", re.sub(r"(['\"]).*?\1", "", words)))
                assert used <= known[command], f"{path.name}: tangram {command} has no {used - known[command]}"


def check_file_blocks(tangram):
    """Files that are shown are files that the program takes."""
    cluster = ROOT / "configs/clusters/h100-a100-v100.json"
    seen = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in PAGES:
            for language, block in FENCED.findall(path.read_text(encoding="utf-8")):
                if language not in ("json", "yaml"):
                    continue
                file = Path(folder) / f"shown.{language}"
                file.write_text(block, encoding="utf-8")
                fleet_or_runs = ["accuracy" if block.startswith("[") else "islands", file]
                words = fleet_or_runs if language == "json" else ["plan", cluster, file, "--cache", "off", "-q"]
                output(tangram, *words)
                seen += 1
    assert seen >= 2, "the pages about fleets and jobs show a file"


def on_a_terminal(width, *words):
    """What a command prints to a terminal of so many columns."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(words, stdout=side, stderr=subprocess.PIPE, env=environment) as process:
        os.close(side)
        parts = []
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not part:
                break
            parts.append(part)
        assert process.wait() == 0, process.stderr.read()
    os.close(main)
    return b"".join(parts).decode().replace("\r\n", "\n")


def code_lines(path):
    """Lines that are shown as they are, whatever the width."""
    blocks = [block for _, block in FENCED.findall(path.read_text(encoding="utf-8"))]
    return {line.strip() for block in blocks for line in block.splitlines()}


def squeezed(text):
    return re.sub(r"[\s|]", "", text)


def check_help(tangram):
    listed = output(tangram, "help")
    topics = re.findall(r"^  ([a-z-]+) ", listed.split("\n\n")[0], re.M)
    assert set(topics) == {path.stem for path in PAGES}, topics
    commands = commands_in(tangram)
    assert set(re.findall(r"^  ([a-z]+) ", listed.split("\n\n")[1], re.M)) == set(commands)
    assert not set(topics) & set(commands), "tangram help NAME means one thing"
    for command in commands:
        assert output(tangram, "help", command) == output(tangram, command, "--help"), command
        for line in output(tangram, command, "--help").splitlines():
            assert len(line) <= HELP_WIDTH, f"{command}: {line}"
        for topic in re.findall(r"tangram help ([a-z-]+)", output(tangram, command, "--help")):
            assert topic in topics or command == "help", f"{command} --help: no page {topic}"
    for line in (listed + output(tangram, "--help")).splitlines():
        assert len(line) <= HELP_WIDTH, line


def check_pages(tangram):
    for path in PAGES:
        page = output(tangram, "help", path.stem)
        assert "\x1b" not in page, "styles are for terminals"
        assert page.startswith(path.read_text(encoding="utf-8").splitlines()[0][2:] + "\n"), page
        for width in (72, 120):
            shown = on_a_terminal(width, tangram, "help", path.stem)
            assert "\x1b[1m" in shown, "headings stand out"
            plain = re.sub(r"\x1b\[\d*m", "", shown)
            for line in plain.splitlines():
                assert len(line) <= width or line.strip() in code_lines(path), f"{path.stem}: {line}"
            for _, block in FENCED.findall(path.read_text(encoding="utf-8")):
                assert squeezed(block) in squeezed(plain), f"{path.stem}: a block is lost"


def check_tables(tangram):
    """No cell is lost, however narrow the terminal."""
    for path in PAGES:
        plain = squeezed(re.sub(r"\x1b\[\d*m", "", on_a_terminal(60, tangram, "help", path.stem)))
        for row in re.findall(r"^\|(.*)\|$", prose(path), re.M):
            for cell in row.split("|"):
                for word in re.sub(r"[`*]|\]\(.*?\)|^[-:]+$", "", cell.strip()).split():
                    assert word in plain, f"{path.stem}: {word} of {row}"


def check_man(tangram):
    overview = output(tangram, "manual")
    for path in PAGES:
        page = output(tangram, "manual", path.stem)
        name = path.stem.replace("-", "\\-")
        assert page.startswith(f".TH TANGRAM\\-{name.upper()} 7 "), page[:60]
        assert f".BR tangram\\-{name} (7)" in overview, path.stem
        if shutil.which("groff"):
            done = run("groff", "-man", "-ww", "-Tutf8", "-z", input=page)
            assert done.returncode == 0 and not done.stderr, (path.stem, done.stderr)
        if shutil.which("groff"):
            text = re.sub(r"\x1b\[[\d;]*m", "", output("groff", "-man", "-Tutf8", input=page))
            for _, block in FENCED.findall(path.read_text(encoding="utf-8")):
                for line in block.splitlines():
                    assert squeezed(line) in squeezed(text).replace("\u2010", "-"), (path.stem, line)


def check_errors(tangram):
    for command in ("help", "manual"):
        done = run(tangram, command, "runtime")
        assert done.returncode == 64 and 'did you mean "runtimes"?' in done.stderr, done.stderr
        assert run(tangram, command, "frobnicate").returncode == 64


def check_figures():
    """Median and largest error of README.md, from the summary that the page about predictions shows."""
    summary = (ROOT / "apps/tangram/manual/predictions.md").read_text(encoding="utf-8")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    rows, median = re.search(r"^grade +all +(\d+) +([\d.]+)%", summary, re.M).groups()
    best, best_median, largest = re.search(
        r"^grade +A and A- +(\d+) +([\d.]+)%(?: +[\d.]+%){2} +([\d.]+)%", summary, re.M).groups()
    for figure in (f"On {rows} published", f"{median} %", f"the {best} best", f"{best_median} %",
                   f"is {float(largest):.0f} %"):
        assert figure in readme, f"README.md does not say {figure}"


def main(tangram):
    tangram = str(Path(tangram).resolve())
    check_readme()
    check_links()
    check_figures()
    check_pages_are_ascii()
    check_help(tangram)
    check_shell_blocks(tangram)
    check_file_blocks(tangram)
    check_pages(tangram)
    check_tables(tangram)
    check_man(tangram)
    check_errors(tangram)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
