"""Documents that agree with the tree: links lead somewhere, numbered invariants are those of the source files, C++ code that
is shown is part of an example that runs or of an architecture, and the architectures listed are those that are registered."""
import posixpath
import re

import checklib
from checklib import Finding, Planted

INVARIANTS = "docs/invariants.md"
NUMBER = r"[A-Z]{1,2}[1-9][0-9]?"
REGISTRY = "src/model/arch/registry.cc"
FAMILIES = "docs/models.md"


def check_links(tree):
    """Relative links of every document name a file or folder of the tree."""
    folders = {posixpath.dirname(path) for path in tree.paths}
    folders |= {parent for folder in folders for parent in parents_of(folder)}
    findings = []
    for path in tree.matching(r".*\.md"):
        text = re.sub(r"^```.*?^```", lambda match: re.sub(r"[^\n]", "", match.group()), tree.text(path),
                      flags=re.DOTALL | re.MULTILINE)
        for match in re.finditer(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)", text):
            if re.match(r"[a-z]+:", match.group(1)):
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match.group(1)))
            if target not in tree.paths and target not in folders:
                findings.append(Finding(path, checklib.line_of(text, match.start()), f"links to '{match.group(1)}'"))
    return findings


def parents_of(folder):
    while folder:
        folder = posixpath.dirname(folder)
        yield folder


def stated_in(text):
    """{number: sentence} under the heading "Invariants" of a file's opening comment."""
    comment = []
    for line in text.split("\n"):
        if not line.startswith("//"):
            break
        comment.append(line[2:])
    opening = "\n".join(comment)
    heading = re.search(r"^ Invariants\b[^\n]*\n", opening, re.MULTILINE)
    if heading is None:
        return {}
    section = opening[heading.end():].split("\n\n")[0]
    items = re.split(rf"(?:^|\s)({NUMBER})  ", section)[1:]
    return {number: " ".join(words.split()) for number, words in zip(items[::2], items[1::2])}


def check_invariants(tree):
    """The rows | NUMBER | sentence | of the document are exactly what the source files state."""
    stated = {}
    findings = []
    for path in tree.matching(r"(src|include)/.*\.(h|cc)"):
        for number, words in stated_in(tree.text(path) or "").items():
            if number in stated:
                findings.append(Finding(path, 0, f"states {number}, and so does {stated[number][0]}"))
            stated[number] = (path, words)
    rows = re.findall(rf"^\| ({NUMBER}) \| (.*?) \|$", tree.text(INVARIANTS), re.MULTILINE) \
        if INVARIANTS in tree.paths else []
    written = dict(rows)
    for number, (path, words) in sorted(stated.items()):
        if written.get(number) != words:
            findings.append(Finding(INVARIANTS, 0, f"wants the row of {path}:\n| {number} | {words} |"))
    findings += [Finding(INVARIANTS, 0, f"{number} is stated by no source file")
                 for number in sorted(set(written) - set(stated))]
    return findings


def cited_in(tree, pattern):
    """The numbers that files name below their opening comments, where invariants are stated."""
    texts = ((tree.text(path) or "").split("#pragma once", 1)[-1] for path in tree.matching(pattern))
    return set(re.findall(rf"\b{NUMBER}\b", "\n".join(texts)))


def check_cited(tree):
    """Every invariant is cited by a test, and in the source where it is checked or kept."""
    stated = {number: path for path in tree.matching(r"(src|include)/.*\.(h|cc)")
              for number in stated_in(tree.text(path) or "")}
    return [Finding(path, 0, f"{what} cites {number}")
            for what, pattern in (("no test", r"tests/.*\.(h|cc)"), ("no code", r"src/.*\.(h|cc)"))
            for cited in [cited_in(tree, pattern)]
            for number, path in sorted(stated.items()) if number not in cited]


def stripped(code):
    return "\n".join(line.strip() for line in code.strip().split("\n"))


def check_shown_code(tree):
    """Each block of C++ in a document is, but for its indentation, a run of lines of a file in examples/ or of an
    architecture."""
    files = tree.matching(r"(examples|src/model/arch)/.*\.(cc|h)")
    examples = [stripped(tree.text(path) or "") + "\n" for path in files]
    findings = []
    for path in tree.matching(r".*\.md"):
        text = tree.text(path) or ""
        for match in re.finditer(r"^ *```cpp\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE):
            shown = stripped(match.group(1)) + "\n"
            if not any("\n" + shown in "\n" + example for example in examples):
                findings.append(Finding(path, checklib.line_of(text, match.start()), "shows code that no example has"))
    return findings


def check_families(tree):
    """The first column of the table of families names the architectures of the registry, and README.md counts them."""
    if not {REGISTRY, FAMILIES, "README.md"} <= set(tree.paths):
        return []
    registered = re.findall(r'\bArchitecture\{"([^"]+)"', tree.text(REGISTRY))
    section = re.search(r"^## Families\n(.*?)(?=^## |\Z)", tree.text(FAMILIES), re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| ([^|]+) \|", section.group(1) if section else "", re.MULTILINE)
    listed = [name for row in rows if row != "architecture" for name in row.split(", ")]
    findings = [Finding(FAMILIES, 0, f"has no row of the architecture '{name}'")
                for name in sorted(set(registered) - set(listed))]
    findings += [Finding(FAMILIES, 0, f"has a row of '{name}', which {REGISTRY} does not have")
                 for name in sorted(set(listed) - set(registered))]
    counted = re.search(r"^\| architectures \| (\d+),", tree.text("README.md"), re.MULTILINE)
    if counted is None or int(counted.group(1)) != len(registered):
        findings.append(Finding("README.md", 0, f"wants '| architectures | {len(registered)},'"))
    return findings


def check(tree):
    return check_links(tree) + check_invariants(tree) + check_cited(tree) + check_shown_code(tree) + check_families(tree)


_SOURCE = "// Cells.\n//\n// Invariants (docs/invariants.md)\n//   C1  A cell is\n//       held.\n//   C2  So. C3  Too.\n#pragma once\n"
_ROWS = "| C1 | A cell is held. |\n| C2 | So. |\n| C3 | Too. |\n"
_REGISTRY = 'constexpr std::array kAll = {\n    Architecture{"a", build_a},\n    Architecture{"b-1", build_b, kAny},\n};\n'
_REGISTERED = {
    "README.md": "| architectures | 2, all |\n",
    "docs/models.md": "## Families\n\n| architecture | of |\n|---|---|\n| a, b-1 | A |\n\n## Adding\n\n| c | d |\n",
    "src/model/arch/registry.cc": _REGISTRY,
}

CLEAN = {
    "docs/b.md": "[a](a.md), [b](../docs/), [c](https://example.org/x), [d](a.md#part)\n```\n[e](nowhere)\n```\n",
    "docs/a.md": "[up](../README.md)\n",
    "docs/invariants.md": _ROWS,
    **_REGISTERED,
    "docs/list.md": "1. Thus:\n\n   ```cpp\n   b();\n   ```\n",
    "docs/tour.md": "```cpp\nif (x)\n  go();\n```\n```\nany text\n```\n",
    "examples/a.cc": "int main() {\n  if (x)\n    go();\n}\n",
    "src/model/arch/b.cc": "void build() {\n  b();\n}\n",
    "src/pages/a.h": _SOURCE,
    "src/pages/a.cc": "// C1, C2 and C3\n",
    "tests/pages/a_test.cc": "// C1, C2\n// C3\n",
}

PLANTED = [
    Planted("a link that leads nowhere", {"docs/a.md": "see [b](b.md)\n"}, "docs/a.md:1: links to 'b.md'"),
    Planted("an invariant that is not listed", {"src/a/a.h": _SOURCE}, "| C1 | A cell is held. |"),
    Planted("an invariant with other words",
            {"src/a/a.h": _SOURCE, "docs/invariants.md": _ROWS.replace("held", "free")}, "wants the row of src/a/a.h"),
    Planted("an invariant that nothing states", {"docs/invariants.md": "| C9 | Old. |\n"}, "C9 is stated by no"),
    Planted("an invariant that no test cites", {"src/a/a.h": _SOURCE, "tests/a/a_test.cc": "// C1, C3\n"}, "no test cites C2"),
    Planted("an invariant that no code keeps", {"src/a/a.h": _SOURCE, "src/a/a.cc": "// C1, C3\n"}, "no code cites C2"),
    Planted("code that no example has", {"docs/tour.md": "Thus:\n```cpp\nif (x)\n  stay();\n```\n"},
            "docs/tour.md:2: shows code"),
    Planted("a part of a line", {"docs/tour.md": "```cpp\nmain() {\n```\n"}, "docs/tour.md:1: shows code"),
    Planted("code in a list that no file has", {"docs/tour.md": "1. Thus:\n\n   ```cpp\n   c();\n   ```\n"},
            "docs/tour.md:3: shows code"),
    Planted("an architecture without a row",
            _REGISTERED | {"src/model/arch/registry.cc": _REGISTRY + 'Architecture{"c", build_c}'},
            "docs/models.md: has no row of the architecture 'c'"),
    Planted("a row without an architecture", _REGISTERED | {"src/model/arch/registry.cc": _REGISTRY.replace("b-1", "b")},
            "docs/models.md: has a row of 'b-1'"),
    Planted("a wrong count of architectures", _REGISTERED | {"README.md": "| architectures | 3, all |\n"},
            "README.md: wants '| architectures | 2,'"),
    Planted("a number with two meanings", {"src/a/a.h": _SOURCE, "src/b/b.h": _SOURCE}, "and so does"),
]

if __name__ == "__main__":
    checklib.main(check)
