"""Tests that run and can fail: each file is in the build, nothing is switched off, each body asserts something."""
import posixpath
import re

import checklib
from checklib import Finding, Planted

TEST_FILE = r"(tests|bindings|examples)/.*_test\.cc"
FUZZ_ENTRY = re.compile(r"\bLLVMFuzzerTestOneInput\s*(\()[^;{]*\)\s*\{")
TEST_CASE = re.compile(r"^[ \t]*(?:TYPED_)?TEST(?:_F|_P)?\s*(\()\s*(\w+)\s*,\s*(\w+)\s*\)\s*(\{)", re.MULTILINE)
ASSERTION = re.compile(r"\b(?:EXPECT_\w+|ASSERT_\w+|ADD_FAILURE\w*|FAIL|RC_ASSERT\w*|RC_FAIL)\s*\(")
TAUTOLOGY = re.compile(r"\b(?:EXPECT|ASSERT)_(?:TRUE\s*\(\s*true|FALSE\s*\(\s*false|(?:EQ|GE|LE)\s*\(\s*"
                       r"([\w.]+)\s*,\s*\1)\s*\)")
# The macros that may skip a test live here, each with the sentence it says.
SKIP_HELPERS = r"tests/support/\w+\.h"


def named_by_cmake(tree, path):
    """Whether the nearest CMakeLists.txt above names the file by its path from there."""
    directory = posixpath.dirname(path)
    while directory:
        listing = posixpath.join(directory, "CMakeLists.txt")
        if listing in tree.paths:
            name = posixpath.relpath(path, directory)
            return any(name in arguments for _, arguments, _ in checklib.cmake_calls(tree.text(listing)))
        directory = posixpath.dirname(directory)
    return False


def check_files(tree):
    findings = [Finding(path, 0, "is in no CMakeLists.txt, so it never runs")
                for path in tree.matching(TEST_FILE) if not named_by_cmake(tree, path)]
    top = "tests/CMakeLists.txt"
    calls = checklib.cmake_calls(tree.text(top)) if top in tree.paths else []
    words = {word for _, arguments, _ in calls for word in arguments}
    for path in tree.matching(r"tests/[^/]+/CMakeLists\.txt"):
        if path.split("/")[1] not in words:
            findings.append(Finding(path, 0, f"is not reached from {top}"))
    return findings


def check_fuzzers(tree):
    """Each fuzz entry point is the SOURCE of a kvasir_fuzzer that has a corpus."""
    findings, sources = [], set()
    for path in tree.matching(r"tests/.*CMakeLists\.txt"):
        for command, arguments, line in checklib.cmake_calls(tree.text(path)):
            if command != "kvasir_fuzzer" or not arguments:
                continue
            source = checklib.cmake_argument(arguments, "SOURCE", {"SOURCE", "ROOMS"})
            sources.update(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)) for name in source)
            corpus = f"tests/fuzz/corpus/{arguments[0]}/"
            if not any(name.startswith(corpus) for name in tree.paths):
                findings.append(Finding(path, line, f"the fuzzer {arguments[0]} has no corpus in {corpus}"))
    for path in tree.matching(r"tests/.*\.cc"):
        if FUZZ_ENTRY.search(checklib.code_only(tree.text(path) or "")) and path not in sources:
            findings.append(Finding(path, 0, "is the SOURCE of no kvasir_fuzzer, so it never runs"))
    return findings


def switched_off(path, code):
    """(offset, what) of everything in a file that keeps a test from running."""
    patterns = [(r"\bDISABLED_\w+", "a disabled test"), (r"^[ \t]*#[ \t]*if[ \t]+(?:0|false)\b", "code switched off")]
    if not re.fullmatch(SKIP_HELPERS, path):
        patterns.append((r"\bGTEST_SKIP\b", "a skip outside the helpers in tests/support"))
    return [(match.start(), what) for pattern, what in patterns
            for match in re.finditer(pattern, code, re.MULTILINE)]


def words_of(name):
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[0-9]+", name)


def asserting_helpers(sources, known=frozenset()):
    """`known` and the names of functions and macros in these texts that assert something, themselves or by another."""
    bodies = []
    for code in sources:
        bodies += [(each.name, code[each.body:each.end]) for each in checklib.cpp_functions(code)]
        bodies += re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(((?:\\\n|[^\n])*)", code, re.MULTILINE)
    names = set(known) | {name for name, body in bodies if ASSERTION.search(body)}
    while True:
        more = {name for name, body in bodies if name not in names and calls_one_of(names, body)}
        if not more:
            return names
        names |= more


def calls_one_of(names, body):
    return any(name in names for name in re.findall(r"\b(\w+)\s*(?:<[^;(){}]*>)?\s*\(", body))


def check_bodies(tree):
    findings = []
    shared = [checklib.code_only(tree.text(path) or "") for path in tree.matching(r"tests/.*\.(cc|h)")
              if not re.fullmatch(TEST_FILE, path)]
    shared_helpers = asserting_helpers(shared)
    for path in tree.matching(r"(src|include|tests|bench|bindings|examples)/.*\.(cc|h)"):
        code = checklib.code_only(tree.text(path) or "")
        findings += [Finding(path, checklib.line_of(code, at), what) for at, what in switched_off(path, code)]
        for match in TAUTOLOGY.finditer(code):
            findings.append(Finding(path, checklib.line_of(code, match.start()), "an assertion that cannot fail"))
        helpers = None
        for match in TEST_CASE.finditer(code):
            line, name = checklib.line_of(code, match.start()), f"{match.group(2)}.{match.group(3)}"
            body = code[match.end():checklib.closing(code, match.start(4))]
            if helpers is None:
                helpers = asserting_helpers([code], shared_helpers)
            if not ASSERTION.search(body) and not calls_one_of(helpers, body):
                findings.append(Finding(path, line, f"{name} asserts nothing"))
            if len(words_of(match.group(3))) < 2:
                findings.append(Finding(path, line, f"{name}: the name is no sentence"))
    return findings


def check(tree):
    return check_files(tree) + check_fuzzers(tree) + check_bodies(tree)


def _case(body, name="Reader, RefusesAnEmptyFile"):
    """A tree with one test of this body."""
    return {"tests/CMakeLists.txt": "add_subdirectory(a)\n",
            "tests/a/CMakeLists.txt": "kvasir_test(a SOURCES a_test.cc)\n",
            "tests/a/a_test.cc": f"TEST({name}) {{\n{body}\n}}\n"}


CLEAN = {
    **_case("  EXPECT_EQ(read(), 3);"),
    "tests/a/b_test.cc": "#define TWICE(x) \\\n  look(x)\nvoid look(int x) {\n  same<int>(x);\n}\n"
                         "TEST(Reader, AsksAHelper) {\n  look(1);\n}\nTEST(Reader, AsksAMacro) {\n  TWICE(1);\n}\n",
    "tests/a/CMakeLists.txt": "kvasir_test(a SOURCES a_test.cc b_test.cc)\n",
    "tests/support/same.h": "template <class T>\nvoid same(T x) {\n  ASSERT_EQ(x, 1);\n}\n",
    "tests/a/a_fuzz.cc": 'extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {\n  return 0;\n}\n',
    "tests/fuzz/replay.cc": 'extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);\n',
    "tests/fuzz/CMakeLists.txt": "kvasir_fuzzer(a SOURCE ../a/a_fuzz.cc ROOMS base)\n",
    "tests/fuzz/corpus/a/empty": "",
    "tests/CMakeLists.txt": "foreach(room a\n  fuzz)\nendforeach()\n",
    "tests/support/paths.h": "#define NEEDS_REFERENCE() GTEST_SKIP() << 1\n",
    "src/a/a.cc": "// EXPECT_TRUE(true) and DISABLED_ are only words here.\n",
}

PLANTED = [
    Planted("a test outside the build", {"tests/a/b_test.cc": "", "tests/a/CMakeLists.txt": ""}, "never runs"),
    Planted("a test that CMake only comments on",
            {"tests/a/b_test.cc": "", "tests/a/CMakeLists.txt": "# b_test.cc\n"}, "never runs"),
    Planted("a folder of tests that is not reached",
            {"tests/CMakeLists.txt": "# a\nadd_subdirectory(b)\n", "tests/ab/CMakeLists.txt": ""}, "not reached"),
    Planted("a fuzz target outside the build",
            {"tests/fuzz/a.cc": "int LLVMFuzzerTestOneInput(const uint8_t* d, size_t n) { return 0; }\n"},
            "no kvasir_fuzzer"),
    Planted("a fuzz target without a corpus",
            {"tests/fuzz/CMakeLists.txt": "kvasir_fuzzer(a SOURCE a.cc)\n"}, "has no corpus"),
    Planted("a disabled test", _case("  EXPECT_EQ(1, f());", "A, DISABLED_RefusesIt"), "a disabled test"),
    Planted("a skip", _case("  GTEST_SKIP();\n  EXPECT_EQ(1, f());"), "a skip outside"),
    Planted("code switched off", _case("#if 0\n  EXPECT_EQ(1, f());\n#endif"), "code switched off"),
    Planted("a test without an assertion", _case("  run();"), "asserts nothing"),
    Planted("a helper that asserts nothing",
            {"tests/a/a_test.cc": "void check_it(int x) {\n  f(x);\n}\nTEST(A, AsksIt) {\n  check_it(1);\n}\n"},
            "asserts nothing"),
    Planted("an assertion in a comment", _case("  run();  // EXPECT_EQ(1, f());"), "asserts nothing"),
    Planted("an assertion in a string", _case('  run("EXPECT_EQ(1, 2)");'), "asserts nothing"),
    Planted("a constant assertion", _case("  EXPECT_TRUE(true);"), "cannot fail"),
    Planted("a thing equal to itself", _case("  EXPECT_EQ(count, count);"), "cannot fail"),
    Planted("a name that is no sentence", _case("  EXPECT_EQ(1, f());", "Reader, Works"), "no sentence"),
]

if __name__ == "__main__":
    checklib.main(check)
