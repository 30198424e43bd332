#!/usr/bin/env python3
"""The checker of layers, on a small tree with slips planted one at a time."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from layers import Layers  # noqa: E402

README = """# Map

| module | what it is for |
|---|---|
| `ground` | what all stand on |
| `tool` | a help of its own |
| `middle` | uses both |
| `top` | uses what stands in the middle |
"""

TREE = {
    "src/README.md": README,
    "src/CMakeLists.txt": "add_subdirectory(ground)\nadd_subdirectory(tool)\nadd_subdirectory(middle)\n"
    "add_subdirectory(top)\n",
    "src/ground/CMakeLists.txt": "tangram_module(ground\n  SOURCES ground.cpp\n  PUBLIC tl::expected)\n",
    "src/ground/ground.cpp": '#include "tangram/ground/ground.hpp"\n',
    "include/tangram/ground/ground.hpp": "#pragma once\n#include <vector>\n",
    "src/tool/CMakeLists.txt": "tangram_module(tool SOURCES tool.cpp PUBLIC tangram_ground)\n",
    "src/tool/tool.cpp": '#include "tangram/tool/tool.hpp"\n#include "own.hpp"\n',
    "src/tool/own.hpp": "#pragma once\n",
    "include/tangram/tool/tool.hpp": '#pragma once\n#include "tangram/ground/ground.hpp"\n',
    "src/middle/CMakeLists.txt": "tangram_module(middle QUICK\n  SOURCES part/middle.cpp\n"
    "  PUBLIC tangram_ground  # base of all\n  PRIVATE tangram_tool fmt::fmt)\n",
    "src/middle/part/middle.cpp": '#include "tangram/middle/middle.hpp"\n#include "../own.hpp"\n'
    '#include "tangram/tool/tool.hpp"\n',
    "src/middle/own.hpp": "#pragma once\n",
    "include/tangram/middle/middle.hpp": '#pragma once\n#include "tangram/ground/ground.hpp"\n',
    "src/top/CMakeLists.txt": "tangram_module(top SOURCES top.cpp PUBLIC tangram_middle)\n",
    "src/top/top.cpp": '#include "tangram/middle/middle.hpp"\n#include "tangram/ground/ground.hpp"\n',
    "include/tangram/top/top.hpp": "#pragma once\n",
    "apps/program/CMakeLists.txt": "add_executable(program main.cpp)\n"
    "target_link_libraries(program PRIVATE tangram_top tangram_warnings)\n",
    "apps/program/main.cpp": '#include "tangram/top/top.hpp"\n#include "options.hpp"\n',
    "apps/program/options.hpp": "#pragma once\n",
}


def slips(changes):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**TREE, **changes}.items():
            file = Path(folder) / path
            if text is None:
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return Layers(folder).check()


class LayersTest(unittest.TestCase):
    def one_slip(self, changes, place, *parts):
        found = slips(changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(place + ": "), found)
        for part in parts:
            self.assertIn(part, found[0])

    def added(self, path, line):
        return {path: TREE[path] + line + "\n"}

    def test_a_house_in_order(self):
        self.assertEqual(slips({}), [])

    def test_a_module_that_stands_below(self):
        self.one_slip(
            self.added("src/tool/tool.cpp", '#include "tangram/middle/middle.hpp"'),
            "src/tool/tool.cpp:3",
            "middle is not above it in the table",
        )

    def test_a_module_above_that_is_not_linked(self):
        self.one_slip(
            self.added("src/top/top.cpp", '#include "tangram/tool/tool.hpp"'),
            "src/top/top.cpp:3",
            "does not link tool",
        )

    def test_angle_brackets_are_no_way_round(self):
        self.one_slip(self.added("src/top/top.cpp", "#include <tangram/tool/tool.hpp>"), "src/top/top.cpp:3", "tool")

    def test_a_public_header_that_needs_a_private_link(self):
        self.one_slip(
            self.added("include/tangram/middle/middle.hpp", '#include "tangram/tool/tool.hpp"'),
            "include/tangram/middle/middle.hpp:3",
            "through PUBLIC, as its headers need it",
        )

    def test_a_private_header_of_another_module(self):
        self.one_slip(
            self.added("src/top/top.cpp", '#include "../middle/own.hpp"'),
            "src/top/top.cpp:3",
            "private to another module",
        )

    def test_a_private_header_in_a_public_one(self):
        self.one_slip(
            self.added("include/tangram/tool/tool.hpp", '#include "own.hpp"'),
            "include/tangram/tool/tool.hpp:3",
            "which is private",
        )

    def test_headers_that_are_not_there(self):
        self.one_slip(
            self.added("src/top/top.cpp", '#include "tangram/middle/gone.hpp"'), "src/top/top.cpp:3", "there is no"
        )
        self.one_slip(self.added("src/top/top.cpp", '#include "gone.hpp"'), "src/top/top.cpp:3", "there is no")

    def test_links_against_the_table(self):
        cmake = "tangram_module(tool SOURCES tool.cpp PUBLIC tangram_ground PRIVATE tangram_top)\n"
        found = slips({"src/tool/CMakeLists.txt": cmake})
        self.assertTrue(any("tool links top, which is not above it" in line for line in found), found)
        self.assertTrue(any("tool is added before top" in line for line in found), found)

    def test_a_link_that_is_commented_out(self):
        cmake = "tangram_module(top SOURCES top.cpp\n  # PUBLIC tangram_middle\n  PUBLIC tangram_ground)\n"
        self.one_slip({"src/top/CMakeLists.txt": cmake}, "src/top/top.cpp:1", "does not link middle")

    def test_a_module_that_the_table_lacks(self):
        readme = README.replace("| `tool` | a help of its own |\n", "")
        found = slips({"src/README.md": readme})
        self.assertTrue(any("tool is not in the table" in line for line in found), found)

    def test_a_row_without_a_module(self):
        found = slips({"src/README.md": README + "| `roof` | keeps the rain out |\n"})
        self.assertTrue(any("roof is in the table, and has no src/roof" in line for line in found), found)

    def test_apps_link_what_they_include(self):
        self.one_slip(
            self.added("apps/program/main.cpp", '#include "tangram/tool/tool.hpp"'),
            "apps/program/main.cpp:3",
            "does not link tool",
        )

    def test_no_table_is_no_pass(self):
        self.assertEqual(slips({"src/README.md": "# Map\n"}), ["src/README.md: there is no table of modules"])


if __name__ == "__main__":
    unittest.main()
