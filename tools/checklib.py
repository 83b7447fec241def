"""What the check scripts share: the files of the repository, C++ without its comments and strings, CMake calls, findings.

A check is a module with two members: `check(tree)` answers its findings, and `PLANTED` lists violations that it must
find (check_selftest.py proves that it does). `main(check)` runs one over the repository.
"""
import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Finding:
    path: str
    line: int  # from 1; 0 where the whole file is meant
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


@dataclasses.dataclass(frozen=True)
class Planted:
    """A violation that the check must find: files of a small tree, and words of the finding it must give."""

    name: str
    files: dict
    finding: str


class Tree:
    """Files by their path from the root, read once. Self-tests make one from a dict of texts."""

    def __init__(self, files=None):
        self._texts = dict(files) if files is not None else {}
        self._root = None if files is not None else ROOT
        self.paths = sorted(self._texts if files is not None else repository_files())

    def size(self, path):
        """Bytes in the file."""
        if self._root is None:
            return len(self._texts[path].encode())
        return (self._root / path).stat().st_size

    def text(self, path):
        """The file's text, or None where it is not UTF-8 text."""
        if path not in self._texts:
            raw = (self._root / path).read_bytes()
            try:
                self._texts[path] = None if b"\0" in raw else raw.decode()
            except UnicodeDecodeError:
                self._texts[path] = None
        return self._texts[path]

    def matching(self, pattern):
        """Paths that match a regular expression as a whole."""
        whole = re.compile(pattern)
        return [path for path in self.paths if whole.fullmatch(path)]


def repository_files():
    """Tracked files and new ones that git would not ignore; every file outside build/ where there is no git."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=False) if (ROOT / ".git").exists() else None
    if listing is not None and listing.returncode == 0:
        names = [name for name in listing.stdout.decode().split("\0") if name]
        return [name for name in names if (ROOT / name).is_file()]
    names = []
    for directory, subdirectories, files in os.walk(ROOT):
        subdirectories[:] = [name for name in subdirectories if name not in (".git", ".cache", "build", "__pycache__")]
        names += [os.path.relpath(os.path.join(directory, name), ROOT) for name in files]
    return names


# Comments, raw strings, strings, and character literals (not the ' inside a number such as 1'000).
_NOT_CODE = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"""
    r'''"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+\'''', re.DOTALL)


def code_only(text):
    """C++ with comments and the insides of literals blanked; every character keeps its line and column."""
    def blank(match):
        part = match.group()
        if part[0] == "/":
            return re.sub(r"[^\n]", " ", part)
        return '"' + re.sub(r"[^\n]", " ", part[1:-1]) + '"'
    return _NOT_CODE.sub(blank, text)


def line_of(text, offset):
    """The line, from 1, on which an offset lies."""
    return text.count("\n", 0, offset) + 1


def closing(text, start):
    """The offset of the bracket that closes the one at `start` in code_only text; the text's end where none does."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opening, end = text[start], pairs[text[start]]
    depth = 0
    for match in re.compile("[" + re.escape(opening + end) + "]").finditer(text, start):
        depth += 1 if match.group() == opening else -1
        if depth == 0:
            return match.start()
    return len(text)


@dataclasses.dataclass(frozen=True)
class Function:
    """A function body in code_only text: what stands before its brace, and the offsets of both ends."""

    head: str
    start: int
    body: int
    end: int

    @property
    def name(self):
        return re.search(r"(\w+)\s*\(", self.head).group(1)


def cpp_functions(code):
    """Each function body at namespace or class level of code_only text, found by matching braces."""
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", lambda match: re.sub(r"[^\n]", " ", match.group()), code,
                  flags=re.MULTILINE)
    found, at, start = [], 0, 0  # `start`: where the declaration that `at` lies in begins
    while at < len(code):
        if code[at] in ";}":
            start = at + 1
        elif code[at] == "(":
            at = closing(code, at)
        elif code[at] == "{":
            start = re.compile(r"(?:.*\b(?:public|private|protected)\s*:(?!:))?\s*", re.DOTALL).match(code, start, at).end()
            head = code[start:at].strip()
            if is_scope(head):
                start = at + 1
            else:
                end = end_of_body(code, at)
                if re.search(r"\w\s*\(", head):
                    found.append(Function(head, start, at, end))
                at, start = end, end + 1
        at += 1
    return found


def is_scope(head):
    """Whether declarations follow the brace after `head`: a namespace, a type, extern "C"."""
    plain = re.sub(r"^(?:template\s*<[^{]*>\s*(?=class|struct|union))?(?:typedef\s+|static\s+|const\s+)*", "", head)
    if re.match(r"(?:inline\s+)?namespace\b|extern\s*\"[^\"]*\"$", plain):
        return True
    return re.match(r"(?:class|struct|union)\b", plain) is not None and \
        not re.search(r"\)\s*(?:const|noexcept|override|\s)*$", plain)


def end_of_body(code, at):
    """The brace that ends the body opened at `at`; a brace in a constructor's initializers is not its body's end."""
    while True:
        end = closing(code, at)
        following = re.compile(r"\s*(?:,\s*[\w:<>, ]+(\(|\{)|(\{))").match(code, end + 1)
        if following is None:
            return end
        at = following.end() - 1
        while code[at] == "(":  # initializers in parentheses, up to the next brace
            brace = re.compile(r"\s*(?:,\s*[\w:<>, ]+(?:\(|\{)|\{)").match(code, closing(code, at) + 1)
            if brace is None:
                return end
            at = brace.end() - 1


def cmake_calls(text):
    """(command in lower case, its arguments, line) of each call in a CMake file."""
    plain = re.sub(r"#[^\n]*", lambda match: " " * len(match.group()), text)
    calls = []
    for match in re.finditer(r"(\w+)\s*(\()", plain):
        arguments = plain[match.end():closing(plain, match.start(2))]
        calls.append((match.group(1).lower(), arguments.replace('"', " ").split(), line_of(plain, match.start())))
    return calls


def cmake_argument(arguments, keyword, keywords):
    """The values after `keyword`, up to the next of `keywords`."""
    values, inside = [], False
    for word in arguments:
        if word in keywords:
            inside = word == keyword
        elif inside:
            values.append(word)
    return values


def main(check):
    """Runs a check over the repository: its findings on standard output, status 1 where there are any."""
    tree = Tree()
    findings = check(tree)
    for finding in findings:
        print(finding)
    name = Path(sys.argv[0]).name
    print(f"{name}: {len(findings)} findings in {len(tree.paths)} files", file=sys.stderr)
    sys.exit(1 if findings else 0)
