#!/usr/bin/env python3
"""What `cmake --install` puts somewhere works there, without the checkout: the program from another folder, shipped
fleets and models by name, plugins, the manual, completions, and a program that is built against the package.

    install_test.py CMAKE BUILD COMPILER
"""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CMAKE, BUILD, COMPILER = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3]
CONSUMER = Path(__file__).resolve().parent / "consumer"


def output(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


class Installed:
    """The program, found on the PATH by somebody who stands elsewhere."""

    def __init__(self, prefix, elsewhere):
        self.prefix, self.elsewhere = prefix, elsewhere
        self.environment = {"PATH": f"{prefix / 'bin'}:{os.environ['PATH']}", "HOME": str(elsewhere), "LC_ALL": "C.UTF-8",
                            "TANGRAM_CACHE": "off"}

    def tangram(self, *words):
        return output("tangram", *words, cwd=self.elsewhere, env=self.environment)

    def share(self, *parts):
        return self.prefix.joinpath("share", *parts)


def check_program(installed):
    plan = json.loads(installed.tangram("plan", "rtx-mixed-hosts", "gpt-6.7b", "--json", "-q"))
    assert plan["schema"] == "tangram.launch_plan/1", plan["schema"]
    by_file = installed.tangram("plan", installed.share("tangram/clusters/rtx-mixed-hosts.json"),
                                installed.share("tangram/models/gpt-6.7b.yaml"), "--json", "-q")
    assert json.loads(by_file) == plan, "a name means the shipped file"
    shipped = json.loads(installed.tangram("init", "--list", "--json"))
    names = {path.stem for path in installed.share("tangram", "models").glob("*.yaml")}
    assert {model["name"] for model in shipped["models"]} == names


def check_first_files(installed):
    installed.tangram("init", "job", "--nodes", "2x4xRTX-4090", "--network", "1x100Gbit,ethernet", "--model", "gpt-6.7b")
    text = installed.tangram("plan", "job/cluster.json", "job/model.yaml", "-q")
    assert "8 GPUs" in text, text


def check_plugins(installed):
    listed = installed.tangram("parallelizers", "list")
    assert "galvatron" in listed and "aceso" in listed, listed
    for manifest in installed.share("tangram", "parallelizers").glob("*.yaml"):
        paths = [word for word in manifest.read_text().replace("]", " ").replace(",", " ").split() if "plugin_sdk" in word]
        assert paths and all((manifest.parent / path.lstrip("[")).is_file() for path in paths), (manifest, paths)
    installed.tangram("parallelizers", "test", installed.share("tangram", "plugin_sdk", "example.py"))


def check_module(installed):
    """The module finds the program that it was installed with, wherever it is imported from."""
    environment = {**installed.environment, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": str(installed.prefix / "lib" / "python3" / "dist-packages")}
    script = ("import json, tangram; assert tangram.program() == " + repr(str(installed.prefix / "bin" / "tangram")) +
              "; print(json.dumps(tangram.plan('rtx-mixed-hosts', 'gpt-6.7b')))")
    planned = json.loads(output(sys.executable, "-c", script, cwd=installed.elsewhere, env=environment))
    assert planned == json.loads(installed.tangram("plan", "rtx-mixed-hosts", "gpt-6.7b", "--json", "-q"))


def text_of(page):
    return gzip.decompress(page.read_bytes()).decode() if page.suffix == ".gz" else page.read_text()


def check_documents(installed):
    [page] = installed.share("man", "man1").iterdir()
    assert text_of(page) == installed.tangram("manual"), page
    topics = re.findall(r"^  ([a-z-]+) ", installed.tangram("help").split("\n\n")[0], re.M)
    pages = {page.name.split(".")[0]: page for page in installed.share("man", "man7").iterdir()}
    assert set(pages) == {f"tangram-{topic}" for topic in topics}, pages
    for topic in topics:
        assert text_of(pages[f"tangram-{topic}"]) == installed.tangram("manual", topic), topic
    completions = {"bash": installed.share("bash-completion", "completions", "tangram"),
                   "zsh": installed.share("zsh", "site-functions", "_tangram"),
                   "fish": installed.share("fish", "vendor_completions.d", "tangram.fish")}
    for shell, path in completions.items():
        assert path.read_text() == installed.tangram("completion", shell), path
    for schema in installed.share("tangram", "schemas").glob("*.schema.json"):
        assert schema.read_text() == installed.tangram("schema", schema.name.split(".")[0])
    for name in ("replan.py", "sweep.py", "profile_gpu.py", "measure_operators.py",
                 "record_kernels.py"):
        assert os.access(installed.share("tangram", "scripts", name), os.X_OK), name


def check_package(installed, folder):
    output(CMAKE, "-S", CONSUMER, "-B", folder, f"-DCMAKE_PREFIX_PATH={installed.prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}",
           "-DCMAKE_BUILD_TYPE=Release", *(f"-DCMAKE_CXX_FLAGS={flags}" for flags in sys.argv[4:]))
    output(CMAKE, "--build", folder)
    said = output(folder / "consumer", installed.share("tangram", "clusters", "rtx-mixed-hosts.json"),
                  installed.share("tangram", "models", "gpt-6.7b.yaml"))
    assert said.startswith("8 GPUs, ") and not said.startswith("8 GPUs, 0 plans"), said


def main():
    with tempfile.TemporaryDirectory(prefix="tangram-install-") as name:
        folder = Path(name).resolve()
        (folder / "elsewhere").mkdir()
        output(CMAKE, "--install", BUILD, "--prefix", folder / "prefix")
        installed = Installed(folder / "prefix", folder / "elsewhere")
        check_program(installed)
        check_first_files(installed)
        check_plugins(installed)
        check_module(installed)
        check_documents(installed)
        check_package(installed, folder / "consumer")
    print("ok")


if __name__ == "__main__":
    main()
