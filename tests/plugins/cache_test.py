#!/usr/bin/env python3
"""The cache of plugins' answers, through the real binary: the plan is the same with a cold cache, a warm one and the cache alone,
byte for byte; two planners share a cache; killing one loses nothing; what fails is not kept; a file that is no cache hurts
nobody; `cache` shows, verifies and clears.

    cache_test.py BINARY
"""
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARY = os.path.abspath(sys.argv[1])
ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "scripts" / "plugin_sdk" / "example.py"
MISBEHAVE = ROOT / "tests" / "plugins" / "misbehave.py"
INPUTS = ROOT / "tests" / "cli" / "inputs"
FEW, MANY = ["--microbatch", "8"], []  # hundreds of questions, or thousands


class Place:
    """A folder with a cache, and commands that use it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.file = folder / "cache" / "answers.sqlite"

    def command(self, *arguments):
        return [BINARY, *map(str, arguments), "--cache", str(self.file)]

    def run(self, *arguments, exits=0):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, check=False)
        assert done.returncode == exits, (arguments, done.returncode, done.stdout[-500:], done.stderr)
        return done

    def plan_words(self, plugin, *options, questions=FEW):
        return ["plan", INPUTS / "tiny.json", INPUTS / "mini.yaml", "--parallelizer", plugin, "--parallelizer-path",
                self.folder, "--json", *questions, *options]

    def plan(self, plugin, *options, questions=FEW, exits=0):
        """With the answers that are kept: a search that is kept would ask for none."""
        if self.file.exists():
            with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(self.file)) as database, database:
                database.execute("DELETE FROM search")
        return self.run(*self.plan_words(plugin, *options, questions=questions), exits=exits)

    def shown(self):
        return json.loads(self.run("cache", "show", "--json").stdout)

    def manifest(self, name, *words, **members):
        (self.folder / f"{name}.json").write_text(json.dumps(
            {"schema": "tangram.parallelizer/1", "command": [sys.executable, *map(str, words)], **members}))


def check_same_plan(place):
    uncached = subprocess.run([BINARY, *map(str, place.plan_words(EXAMPLE)), "--cache", "off"], capture_output=True,
                              text=True, check=True).stdout
    cold = place.plan(EXAMPLE).stdout
    (plugin,) = place.shown()["plugins"]
    asked = plugin["hits"] + plugin["misses"]  # a search may come back to a question
    assert plugin["answers"] == plugin["misses"] > 10 * plugin["hits"], plugin
    warm = place.plan(EXAMPLE).stdout
    (again,) = place.shown()["plugins"]
    assert again["hits"] == plugin["hits"] + asked and again["misses"] == plugin["misses"], again
    offline = place.plan(EXAMPLE, "--offline").stdout
    assert uncached == cold == warm == offline, "the plan depends on the cache"
    jobs = place.plan(EXAMPLE, "--offline", "-j", "1").stdout
    assert jobs == cold
    print(f"ok: no cache, cold, warm, --offline: the same {len(cold)} bytes; {plugin['answers']} answers")


def check_offline_misses(place):
    place.plan(EXAMPLE)
    missed = place.plan(EXAMPLE, "--offline", "--seq-len", "256", exits=5)
    assert "the cache has no answer to it" in missed.stderr and "plan once without --offline" in missed.stderr, missed
    never = place.plan(MISBEHAVE, "--offline", exits=5)
    assert "was never asked" in never.stderr and "plan once without --offline" in never.stderr, never.stderr
    with_others = place.plan(f"enumerator,{MISBEHAVE}", "--offline", exits=5)
    reasons = json.loads(with_others.stdout)["provenance"]["outside_parallelizers"][0]["failed"]
    assert [reason["code"] for reason in reasons] == ["not-cached"], reasons
    print("ok: what the cache lacks is exit 5, with what to do")


def check_identity(place):
    """Another program or another file it depends on is another plugin; a file that moved is not."""
    (place.folder / "part.py").write_text("ONE = 1\n")
    place.manifest("mine", EXAMPLE, files=["part.py"])
    place.plan("mine")
    place.plan("mine", "--offline")
    (place.folder / "part.py").write_text("ONE = 2\n")
    place.plan("mine", "--offline", exits=5)
    verified = place.run("cache", "verify", "mine", "--parallelizer-path", place.folder)
    assert "changed" in verified.stdout, verified.stdout
    (place.folder / "part.py").write_text("ONE = 1\n")
    place.plan("mine", "--offline")
    print("ok: a changed file is another plugin")


def check_failures_are_not_kept(place):
    for mode, code in (("too-late", 6), ("hangs-with-a-child", 6), ("garbage", 5), ("segfault", 5)):
        place.manifest(mode, MISBEHAVE, mode, query_timeout_s=0.3)
        first = place.plan(f"enumerator,{mode}", exits=code)
        second = place.plan(f"enumerator,{mode}", exits=code)
        assert first.stdout == second.stdout, mode
    assert place.shown()["answers"] == 0, place.shown()
    print("ok: timeouts, crashes and nonsense are never kept, and planning again asks again")


def check_kill(place):
    place.manifest("slow", MISBEHAVE, "slow", query_timeout_s=60, environment={"ANSWERED_BY": os.devnull})
    words = place.command(*place.plan_words("slow", "-j", "4"))
    planner = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seen = 0
    while seen < 20 and planner.poll() is None:
        time.sleep(0.1)
        seen = place.shown()["answers"] if place.file.exists() else 0
    assert planner.poll() is None, planner.stderr.read()
    planner.send_signal(signal.SIGKILL)
    planner.wait()
    kept = place.shown()["answers"]
    assert kept >= seen >= 20, (kept, seen)
    with sqlite3.connect(place.file) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    place.plan("slow", "-j", "32")
    (plugin,) = place.shown()["plugins"]
    assert plugin["hits"] >= kept, (plugin, kept)
    print(f"ok: SIGKILL in the middle: {kept} answers were there, the next run used all of them")


def check_two_at_once(place):
    starts = [place.plan_words(EXAMPLE, *options) for options in ([], [], ["--seq-len", "256"])]
    for _ in range(2):  # cold, then warm
        running = [subprocess.Popen(place.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for words in starts]
        ended = [(planner.communicate(), planner.returncode) for planner in running]
        assert all(code == 0 and "cache" not in err for (_, err), code in ended), [err for (_, err), _ in ended]
        assert ended[0][0][0] == ended[1][0][0]
    with sqlite3.connect(place.file) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        keys, rows = database.execute("SELECT count(DISTINCT key), count(*) FROM answer").fetchone()
    assert keys == rows == place.shown()["answers"]
    for words in starts:
        place.run(*words, "--offline")
    print(f"ok: three planners at once on one cache, cold and warm: {rows} answers")


def check_damage(place):
    place.file.parent.mkdir()
    reference = subprocess.run([BINARY, *map(str, place.plan_words(EXAMPLE)), "--cache", "off"], capture_output=True,
                               text=True, check=True).stdout
    place.file.write_bytes(b"this is a letter, and no database at all\n" * 100)
    letter = place.file.read_bytes()
    done = place.plan(EXAMPLE)
    assert done.stdout == reference and "works without the cache" in done.stderr, done.stderr
    assert "this is no cache" in done.stderr and "--cache off" in done.stderr, done.stderr
    assert "this is no cache" in place.run("cache", "show", exits=4).stderr
    assert "this is no cache" in place.plan(EXAMPLE, "--offline", exits=4).stderr
    assert place.file.read_bytes() == letter
    place.file.unlink()
    with sqlite3.connect(place.file) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    foreign = place.file.read_bytes()
    done = place.plan(EXAMPLE)
    assert done.stdout == reference and "database of another program" in done.stderr, done.stderr
    assert place.file.read_bytes() == foreign, "it wrote to a database of another program"
    place.file.unlink()

    place.plan(EXAMPLE)
    with sqlite3.connect(place.file) as database:  # a body that is not what was kept is asked for again
        database.execute("UPDATE answer SET body = replace(body, 'result', 'resort')")
    database.close()
    assert place.plan(EXAMPLE).stdout == reference
    assert place.plan(EXAMPLE, "--offline").stdout == reference
    with sqlite3.connect(place.file) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    done = place.plan(EXAMPLE)
    assert done.stdout == reference and "format is number 99" in done.stderr, done.stderr
    with sqlite3.connect(place.file) as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    content = bytearray(place.file.read_bytes())
    content[8192:-4096] = b"\xff" * (len(content) - 8192 - 4096)
    place.file.write_bytes(content)
    done = place.plan(EXAMPLE)
    assert done.stdout == reference and "is damaged" in done.stderr, done.stderr
    print("ok: letters, foreign databases, later formats and damage: said, and planned without")


def check_eviction(place):
    place.plan(EXAMPLE, questions=MANY)
    first = place.shown()
    most = (first["bytes"] >> 20) + 12  # room for the second, which is larger, not for both
    options = ["--seq-len", "256", "--cache-limit", str(most)]
    place.plan(EXAMPLE, *options, questions=MANY)
    last = place.shown()
    assert last["bytes"] <= most << 20 and place.file.stat().st_size <= most << 20, last
    (plugin,) = last["plugins"]
    assert 0 < last["answers"] < plugin["misses"], (first["answers"], last)
    place.plan(EXAMPLE, *options, "--offline", questions=MANY)  # the newest is there
    place.plan(EXAMPLE, "--offline", questions=MANY, exits=5)  # the oldest is not
    print(f"ok: at most {most} MiB: {last['bytes']} bytes, {last['answers']} of {plugin['misses']} answers")


def check_searches(place):
    """A whole search is kept with the plugin that it asked, and goes with it; looks at the two runtimes ask none."""
    place.manifest("mine", EXAMPLE, files=[str(EXAMPLE)])
    words = place.plan_words("mine", "--pipelines", "equal")  # a look for others is made anew
    cold = place.run(*words)
    answered = place.shown()["plugins"][0]
    warm = place.run(*words, "-v")
    assert warm.stdout == cold.stdout and "3 searches looked up, 0 made" in warm.stderr, warm.stderr
    shown = place.shown()
    assert shown["searches"]["kept"] == 3 and shown["searches"]["hits"] == 3, shown
    assert shown["plugins"][0]["hits"] == answered["hits"], "a search that is kept asks the plugin nothing"
    assert "1 search forgotten" in place.run("cache", "clear", "mine").stdout.replace("answers and ", "")
    place.run(*words)
    place.manifest("mine", EXAMPLE, files=[str(EXAMPLE)], environment={"ANOTHER": "1"})
    other = place.run(*words, "-v")
    assert "2 searches looked up, 1 made" in other.stderr, other.stderr
    place.manifest("late", MISBEHAVE, "too-late", query_timeout_s=0.3)
    for _ in range(2):
        late = place.run(*place.plan_words("enumerator,late"), "-v", exits=6)
        assert "2 searches looked up, 1 made, 0 of these kept" in late.stderr, late.stderr
    refused = place.run(*place.plan_words("enumerator,late"), "--ahead", exits=6)
    assert refused.stdout and "did not search ahead: searches in which a parallelizer failed" in refused.stderr, refused.stderr
    print("ok: searches are kept with the plugins they asked")


def check_commands(place):
    assert place.run("cache", "path").stdout == f"{place.file}\n"
    empty = place.run("cache", "show")
    assert "0 answers" in empty.stdout and not place.file.exists(), empty.stdout
    program = place.folder / "mine.py"
    shutil.copy(EXAMPLE, program)
    shutil.copy(EXAMPLE.with_name("tangram_plugin.py"), place.folder)
    place.plan(program)
    shown = place.run("cache", "show").stdout
    assert str(program) in shown and "hits" in shown, shown
    verified = json.loads(place.run("cache", "verify", "--sample", "7", "--json").stdout)
    assert verified["plugins"][0]["same"] == 7 and verified["plugins"][0]["different"] == [], verified
    # What an unlisted helper module does is not in the digest: verify is what finds it.
    sdk = place.folder / "tangram_plugin.py"
    sdk.write_text(sdk.read_text() + "\n_plan = Query.plan\nQuery.plan = lambda self, **k: _plan(self, **{**k, 'recompute': 'full'})\n")
    verified = json.loads(place.run("cache", "verify", "--sample", "all", "--json", exits=5).stdout)
    assert verified["plugins"][0]["different"], verified
    missing = place.run("cache", "clear", "nobody", exits=64)
    assert "has no answers of a plugin" in missing.stderr, missing.stderr
    assert "forgotten" in place.run("cache", "clear", program).stdout
    assert place.shown()["answers"] == 0
    assert "no action" in place.run("cache", "sow", exits=64).stderr
    print("ok: cache show, path, verify and clear")


def main():
    checks = [check_same_plan, check_offline_misses, check_identity, check_failures_are_not_kept, check_kill,
              check_two_at_once, check_damage, check_eviction, check_searches, check_commands]
    os.environ.pop("TANGRAM_CACHE", None)
    with tempfile.TemporaryDirectory() as name:
        for check in checks:
            check(Place(Path(name) / check.__name__))


if __name__ == "__main__":
    main()
