#!/usr/bin/env python3
"""Whether every include keeps to the layers that src/README.md lists and that the CMake files declare.

    layers.py ROOT      exit 1 and one line for each slip

What holds, for a module m of the table "| module | what it is for |" of src/README.md, and for apps below all of them:

    the table, src/CMakeLists.txt and the folders of src name the same modules, the first two in an order in which
    every module comes after those that it links
    tangram/<x>/...     is a header that exists; x is m, or stands above m and is linked by m's CMakeLists.txt, itself
                        or through PUBLIC; in m's public headers through PUBLIC alone
    "any other.hpp"     lies in the same folder of src or apps: private headers of one module are not for another, and
                        public headers include none
"""
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(tangram/[^>]+)>)')
ROW = re.compile(r"^\| `(\w+)` \|")
APPS = "apps"
SOURCES = ("*.cpp", "*.hpp")


@dataclass
class Links:
    """What a target is linked with, modules alone."""

    public: set = field(default_factory=set)
    private: set = field(default_factory=set)


def modules_of_table(text):
    return [row.group(1) for line in text.splitlines() if (row := ROW.match(line))]


def without_comments(text):
    return re.sub(r"#.*", "", text)


def add_links(words, links):
    """Reads PUBLIC and PRIVATE lists of the words of a CMake command; what is not a module does not matter."""
    kind = None
    for word in words:
        if word in ("PUBLIC", "PRIVATE", "INTERFACE", "SOURCES"):
            kind = word
        elif word.startswith("tangram_") and kind in ("PUBLIC", "PRIVATE"):
            (links.public if kind == "PUBLIC" else links.private).add(word.removeprefix("tangram_"))


def links_of(cmake):
    """Of all targets that a CMakeLists.txt declares together."""
    links = Links()
    for command in re.findall(r"\b(?:tangram_module|target_link_libraries)\s*\(([^()]*)\)", without_comments(cmake)):
        add_links(command.split()[1:], links)
    return links


class Layers:
    def __init__(self, root):
        self.root = Path(root)
        self.order = modules_of_table(self.text("src/README.md"))
        self.links = {m: links_of(self.text(f"src/{m}/CMakeLists.txt")) for m in self.order}
        self.links[APPS] = Links()
        for file in sorted(self.root.glob("apps/*/CMakeLists.txt")):
            of_app = links_of(file.read_text(encoding="utf-8"))
            self.links[APPS].public |= of_app.public
            self.links[APPS].private |= of_app.private
        for links in self.links.values():  # targets that are no modules: options, warnings, apps themselves
            links.public &= set(self.order)
            links.private &= set(self.order)
        self.slips = []

    def text(self, path):
        file = self.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def slip(self, place, what):
        self.slips.append(f"{place}: {what}")

    def is_above(self, upper, lower):
        return lower == APPS or self.order.index(upper) < self.order.index(lower)

    def reached(self, module, through_public_alone):
        """Modules whose headers it sees."""
        links = self.links[module]
        open_ones = set(links.public) if through_public_alone else links.public | links.private
        seen = set()
        while open_ones:
            one = open_ones.pop()
            if one not in seen:
                seen.add(one)
                open_ones |= self.links[one].public
        return seen

    def check_names(self):
        listed = set(self.order)
        folders = {path.parent.name for path in self.root.glob("src/*/CMakeLists.txt")}
        for module in sorted(folders - listed):
            self.slip("src/README.md", f"{module} is not in the table")
        for module in sorted(listed - folders):
            self.slip("src/README.md", f"{module} is in the table, and has no src/{module}/CMakeLists.txt")
        for path in sorted(self.root.glob("include/tangram/*")):
            if path.name not in listed:
                self.slip("src/README.md", f"include/tangram/{path.name} belongs to no module of the table")

    def check_cmake(self):
        cmake = without_comments(self.text("src/CMakeLists.txt"))
        added = re.findall(r"add_subdirectory\s*\(\s*(\w+)\s*\)", cmake)
        for module in sorted(set(self.order) ^ set(added)):
            self.slip("src/CMakeLists.txt", f"{module} is there or in the table, and not in both")
        for module in self.order:
            place = f"src/{module}/CMakeLists.txt"
            for linked in sorted(self.links[module].public | self.links[module].private):
                if not self.is_above(linked, module):
                    self.slip(place, f"{module} links {linked}, which is not above it in the table of src/README.md")
                if module in added and linked in added and added.index(linked) > added.index(module):
                    self.slip("src/CMakeLists.txt", f"{module} is added before {linked}, which it links")

    def check_shown(self, place, header, module, is_public):
        other = header.split("/")[1]
        if not (self.root / "include" / header).is_file():
            self.slip(place, f"there is no {header}")
        elif other == module:
            return
        elif other not in self.order:
            self.slip(place, f"{module} includes {header}, and the table of src/README.md lacks {other}")
        elif not self.is_above(other, module):
            self.slip(place, f"{module} includes {header}, and {other} is not above it in the table of src/README.md")
        elif other not in self.reached(module, is_public):
            how = "through PUBLIC, as its headers need it" if is_public else "directly or through PUBLIC"
            self.slip(place, f"{module} includes {header}, and its CMakeLists.txt does not link {other} {how}")

    def check_own(self, path, place, header, module, is_public):
        if is_public:
            self.slip(place, f"a public header includes {header}, which is private")
            return
        home = self.root / APPS if module == APPS else self.root / "src" / module
        found = [base / header for base in (path.parent, home) if (base / header).is_file()]
        if not found:
            self.slip(place, f"there is no {header} in {module}")
        elif not found[0].resolve().is_relative_to(home.resolve()):
            self.slip(place, f"{module} includes {header}, which is private to another module")

    def check_file(self, path, module, is_public):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            header = include.group(1) or include.group(2)
            place = f"{path.relative_to(self.root)}:{number}"
            if header.startswith("tangram/"):
                self.check_shown(place, header, module, is_public)
            else:
                self.check_own(path, place, header, module, is_public)

    def check_folder(self, folder, module, is_public=False):
        for pattern in SOURCES:
            for path in sorted((self.root / folder).rglob(pattern)):
                self.check_file(path, module, is_public)

    def check(self):
        """All slips, as lines."""
        if not self.order:
            return ["src/README.md: there is no table of modules"]
        self.check_names()
        self.check_cmake()
        for module in self.order:
            self.check_folder(f"include/tangram/{module}", module, is_public=True)
            self.check_folder(f"src/{module}", module)
        self.check_folder(APPS, APPS)
        return self.slips


def main(root):
    slips = Layers(root).check()
    for line in slips:
        print(line)
    if slips:
        print(f"{len(slips)} slips")
    return 1 if slips else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
