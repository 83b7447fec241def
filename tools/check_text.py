"""What every file must be: free of machine paths, package hosts, unfinished marks; small; tidy at the end of its lines."""
import ast
import re

import checklib
from checklib import Finding, Planted

MAX_LINES = 700
MAX_PUBLIC_HEADER_LINES = 300
SHORT_STRING = 15  # characters that std::string keeps without memory
MAX_FUNCTION_LINES = 70
MAX_FILE_BYTES = 4 << 20
MAX_COLUMNS = 110  # of C++; clang-format mends what is longer

SOURCE = r"(dev|\.ci/run|.*\.(cc|h|inc|py|sh|cmake|js|cs)|(.*/)?CMakeLists\.txt)"
# Recorded bytes: they are what they are.
RECORDED = r"tests/(data|fuzz/corpus)/.*"

PATTERNS = [
    # A home or work directory of some machine. Both may be named where they are meant, as in ~/name.
    (re.compile(r"(?<![\w.~$}*-])/(?:work|home|root|Users)/"), "a path of one machine"),
    (re.compile(r"\b(?:deb|ftp|apt|archive|mirrors?|snapshot|security|registry|packages|pypi|proxy|artifacts?)"
                r"\.(?:[a-z0-9-]+\.)*(?:org|com|net|io|edu|dev)\b", re.IGNORECASE), "the name of a package host"),
    (re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b"), "unfinished work"),
]
TIDY = [
    (re.compile(r"[ \t]+$"), "blanks at the end of the line"),
    (re.compile(r"\r$"), "a carriage return"),
    (re.compile(r"\t"), "a tab"),
]


def check_lines(path, text):
    patterns = PATTERNS if re.fullmatch(RECORDED, path) else PATTERNS + TIDY
    findings = [Finding(path, number, f"{what}: {line.strip()[:80]}")
                for number, line in enumerate(text.split("\n"), 1)
                for pattern, what in patterns if pattern.search(line)]
    if path.endswith((".cc", ".h", ".inc")):
        findings += [Finding(path, number, f"{len(line)} columns, more than {MAX_COLUMNS}")
                     for number, line in enumerate(text.split("\n"), 1) if len(line) > MAX_COLUMNS and 'R"' not in line]
    if text and not text.endswith("\n") and patterns is not PATTERNS:
        findings.append(Finding(path, text.count("\n") + 1, "no newline at the end of the file"))
    return findings


def check_size(tree, path, text):
    findings = []
    if tree.size(path) > MAX_FILE_BYTES:
        findings.append(Finding(path, 0, f"{tree.size(path)} bytes, more than {MAX_FILE_BYTES}"))
    limit = MAX_PUBLIC_HEADER_LINES if path.startswith("include/") else MAX_LINES
    lines = text.count("\n") if text is not None and re.fullmatch(SOURCE, path) else 0
    if lines > limit:
        findings.append(Finding(path, 0, f"{lines} lines, more than {limit}: split it by subject"))
    return findings


def check_refusals(path, text):
    """A sentence that needs memory itself cannot say that there is none."""
    if not re.fullmatch(r"src/.*\.(h|cc)", path):
        return []
    return [Finding(path, checklib.line_of(text, match.start()), f"needs memory to say that there is none: {said}")
            for match in re.finditer(r"catch \(const std::bad_alloc&\) \{([^}]*)", text)
            for said in re.findall(r'"([^"]*)"', match.group(1)) if len(said) > SHORT_STRING]


def check_functions(path, text):
    if path.endswith((".cc", ".h", ".inc")):
        code = checklib.code_only(text)
        functions = [(" ".join(each.head.split())[-60:], checklib.line_of(code, each.start),
                      checklib.line_of(code, each.end)) for each in checklib.cpp_functions(code)]
    elif path.endswith(".py"):
        functions = [(node.name, node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
                     if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    else:
        functions = []
    return [Finding(path, first, f"a function of {last - first + 1} lines, more than {MAX_FUNCTION_LINES}: {name}")
            for name, first, last in functions if last - first + 1 > MAX_FUNCTION_LINES]


def check(tree):
    findings = []
    for path in tree.paths:
        text = tree.text(path)
        findings += check_size(tree, path, text)
        if text is not None:
            findings += check_lines(path, text) + check_functions(path, text) + check_refusals(path, text)
    return findings


def _lines(count):
    return "  f();\n" * count


CLEAN = {
    "src/a/a.cc": "namespace a {\n\n// What is left TO" "DOs.\nvoid f() {\n" + _lines(68) + "}\n\n"
                  + "class A {\n public:\n  A() : b_{1}, c_(2) {\n" + _lines(10) + "  }\n};\n"
                  + "constexpr int kTable[] = {\n" + "  1,\n" * 100 + "};\n}  // namespace a\n",
    "include/kvasir/a.h": "int f();\n" * 300,
    "tests/data/recorded.txt": "blanks \tand tabs are data here \r\n",
    "docs/a.md": "a/work/b, ~/home/x and https://example.org/ are fine.\n",
}

PLANTED = [
    Planted("a machine path", {"a.md": "see " + "/ho" + "me/somebody/x\n"}, "a path of one machine"),
    Planted("a package host", {"dev": "fetch http://" + "mirror." + "example.org/debian\n"}, "a package host"),
    Planted("unfinished work", {"src/a/a.cc": "// TO" + "DO: more\n"}, "unfinished work"),
    Planted("a file that is too long", {"src/a/a.cc": "int x;\n" * 701}, "701 lines, more than 700"),
    Planted("a public header that is too long", {"include/kvasir/a.h": "int x;\n" * 301}, "301 lines, more than 300"),
    Planted("large data", {"tests/data/a.bin": "x" * (MAX_FILE_BYTES + 1)}, "bytes, more than"),
    Planted("a long function", {"src/a/a.cc": "namespace a {\nint f(int x) noexcept {\n" + _lines(69) + "}\n}\n"},
            "a function of 71 lines"),
    Planted("a long member function",
            {"src/a/a.h": "template <class T>\nclass A {\n public:\n  int f() const {\n" + _lines(69) + "  }\n};\n"},
            "a function of 71 lines"),
    Planted("a long constructor",
            {"src/a/a.cc": "A::A(int b) : b_{b}, c_(1), d_{} {\n" + _lines(69) + "}\n"}, "a function of 71 lines"),
    Planted("a long test", {"tests/a/a_test.cc": "TEST(A, DoesB) {\n" + _lines(69) + "}\n"}, "a function of 71 lines"),
    Planted("a long Python function", {"tools/a.py": "def f():\n" + "    g()\n" * 70}, "a function of 71 lines"),
    Planted("a long comment", {"src/a/a.h": "// " + "words " * 18 + "end" + "\n"}, "columns, more than"),
    Planted("an error that needs the memory it lacks",
            {"src/a/a.cc": "void f() {\n  try {\n  } catch (const std::bad_alloc&) {\n    g(\"no memory for all of it\");\n  }\n}\n"},
            "needs memory to say"),
    Planted("a tab", {"dev": "\techo\n"}, "a tab"),
    Planted("trailing blanks", {"src/a/a.cc": "int x; \n"}, "blanks at the end"),
    Planted("a carriage return", {"src/a/a.cc": "int x;\r\n"}, "a carriage return"),
    Planted("a last line without an end", {"src/a/a.cc": "int x;"}, "no newline"),
]

if __name__ == "__main__":
    checklib.main(check)
