#!/usr/bin/env python3
"""Whether every file reaches, through its own includes, the header that declares what it names.

    reach.py ROOT      exit 1 and one line for each name that is out of reach

scripts/build.sh compiles sixteen sources at a time, so that a header which one of them forgot may come from another: a
build of single sources, such as CMake's own, would not find it. Looked at are types and functions that one header
alone declares, in namespaces; the compiler sees more, and takes a hundred times as long.
"""
import re
import sys
from collections import defaultdict
from pathlib import Path

from layers import INCLUDE

UNSEEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
TYPE = re.compile(r"^(?:enum )?(?:class|struct) (\w+)\b(?![^\n{]*;)", re.M)
ANY_TYPE = re.compile(r"\b(?:class|struct|typename|using|enum|auto) (\w+)\b", re.M)
FUNCTION = re.compile(r"^\[\[nodiscard\]\] [\w:<>,*& ]*?\b(\w+)\(", re.M)
CALL = re.compile(r"\b(\w+)::(\w+)\(")
NAMESPACE = re.compile(r"^namespace tangram::(\w+)", re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
FOLDERS = ("include", "src", "apps", "tests")


class Files:
    def __init__(self, root):
        self.root = Path(root)
        paths = [p for folder in FOLDERS for ending in ("cpp", "hpp") for p in sorted((self.root / folder).rglob(f"*.{ending}"))]
        text = {path: path.read_text(encoding="utf-8") for path in paths}
        self.includes = {path: self.headers(path, text[path]) for path in paths}
        self.code = {path: UNSEEN.sub(" ", text[path]) for path in paths}
        self.reached = {}

    def headers(self, path, text):
        """Those of the project that it includes."""
        lines = [found for line in text.splitlines() if (found := INCLUDE.match(line))]
        named = (self.header(path, found.group(1) or found.group(2)) for found in lines)
        return [header for header in named if header]

    def header(self, path, name):
        """Of the project; none of others."""
        modules = path.relative_to(self.root).parts[2:-1]
        places = [path.parent, *(self.root / "src" / module for module in modules),
                  *(self.root / folder for folder in ("include", "tests", "apps/tangram"))]
        return next((found for place in places if (found := (place / name).resolve()).is_file()), None)

    def folder(self, path):
        """Which may name what is in those before it."""
        return FOLDERS.index(path.relative_to(self.root).parts[0])

    def within_reach(self, path):
        if path not in self.reached:
            seen, waiting = {path}, [path]
            while waiting:
                for header in self.includes.get(waiting.pop(), []):
                    if header not in seen:
                        seen.add(header)
                        waiting.append(header)
            self.reached[path] = seen
        return self.reached[path]


def declared_once(files):
    """Names of types, and of functions with their namespace, by the header that alone declares them."""
    types, functions, others = defaultdict(set), defaultdict(set), defaultdict(set)
    for path, code in files.code.items():
        if path.suffix == ".hpp":
            for name in TYPE.findall(code):
                types[name].add(path)
            for space in NAMESPACE.findall(code)[:1]:
                for name in FUNCTION.findall(code):
                    functions[space, name].add(path)
        for name in ANY_TYPE.findall(code):
            others[name].add(path)
    alone = {name: next(iter(paths)) for name, paths in types.items() if len(paths) == 1 and others[name] == paths}
    called = {name: next(iter(paths)) for name, paths in functions.items() if len(paths) == 1}
    return alone, called


def out_of_reach(root):
    files = Files(Path(root).resolve())
    types, functions = declared_once(files)
    for path, code in files.code.items():
        reached = files.within_reach(path)
        named = {name: types[name] for name in WORD.findall(code) if name in types}
        named |= {"::".join(call): functions[call] for call in CALL.findall(code) if call in functions}
        for name, header in sorted(named.items()):
            if header not in reached and files.folder(header) <= files.folder(path):
                yield f"{path.relative_to(files.root)}: {name} is declared in {header.relative_to(files.root)}, which no include reaches"


def main():
    found = list(out_of_reach(sys.argv[1]))
    print("\n".join(found) or "every file reaches what it names")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
