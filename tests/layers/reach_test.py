#!/usr/bin/env python3
"""The checker of what files name, on a small tree."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from reach import out_of_reach  # noqa: E402

THING = "#pragma once\nnamespace tangram::ground {\nstruct Thing {\n  int size;\n};\n[[nodiscard]] int made(Thing of);\n}\n"
TREE = {
    "include/tangram/ground/thing.hpp": THING,
    "include/tangram/ground/all.hpp": '#pragma once\n#include "tangram/ground/thing.hpp"\n',
    "src/top/parts.cpp": "int parts(Part of);\n",
    "src/top/own.hpp": '#pragma once\n#include "tangram/ground/all.hpp"\n',
}


def found(path, text):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**TREE, path: text}.items():
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        return list(out_of_reach(folder))


class ReachTest(unittest.TestCase):
    def test_through_other_headers(self):
        self.assertEqual(found("src/top/top.cpp", '#include "own.hpp"\nint f(tangram::ground::Thing of);\n'), [])

    def test_a_type_that_no_include_declares(self):
        told = found("src/top/top.cpp", "#include <vector>\nint f(tangram::ground::Thing of);\n")
        self.assertEqual(told, ["src/top/top.cpp: Thing is declared in include/tangram/ground/thing.hpp, which no include reaches"])

    def test_a_function_that_no_include_declares(self):
        told = found("src/top/top.cpp", "int size = ground::made({});\n")
        self.assertEqual(len(told), 1, told)
        self.assertIn("ground::made is declared in", told[0])

    def test_comments_and_texts_name_nothing(self):
        self.assertEqual(found("src/top/top.cpp", '// a Thing\nconst char* text = "Thing";\n'), [])

    def test_names_of_its_own(self):
        self.assertEqual(found("src/top/top.cpp", "template <typename Thing>\nint f(Thing of);\n"), [])
        self.assertEqual(found("src/top/top.cpp", "struct Thing {};\n"), [])

    def test_what_a_test_declares_is_not_what_sources_mean(self):
        self.assertEqual(found("tests/unit/part.hpp", "struct Part {\n  int one;\n};\n"), [])


if __name__ == "__main__":
    unittest.main()
