"""Fleets and models on which Tangram is compared with other planners: tests/bench/compare/cases.json."""
import fnmatch

from all_pairs import ROOT

SUITE = ROOT / "tests" / "bench" / "compare"
CASES = SUITE / "cases.json"


def place(name):
    """A file of the library, or one beside the suite."""
    return str(ROOT / name if name.startswith("configs/") else SUITE / name)


def cases_named(cases, patterns):
    return [case for case in cases if any(fnmatch.fnmatch(case["name"], pattern) for pattern in patterns)]
