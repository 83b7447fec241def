"""The one-way order of the rooms (docs/rooms.md): no include climbs, and each room's link line says what it includes."""
import re

import checklib
from checklib import Finding, Planted

# Lowest row first. A room includes only from lower rows, never from its own.
ROWS = [
    ["base"],
    ["quant", "parallel", "pages"],
    ["gguf", "simd"],
    ["kv", "text"],
    ["chat", "sample", "archive", "tiers", "model"],
    ["engine"],
    ["api"],
    ["server", "cli", "bindings", "bench", "examples"],
]
ROW_OF = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
OUTSIDE_SRC = {"bindings", "bench", "examples"}

# These speak to Kvasir as a stranger would.
PUBLIC_API_ONLY = {"server", "bindings", "examples"}

# A public header that every room may include says so in its opening comment; the others belong to the api.
VALUE_HEADER = "A value header."

# The standard's locks, and the header that wraps them for clang's thread-safety analysis.
LOCKS = {"mutex", "shared_mutex", "condition_variable"}
LOCKS_OF_OURS = "src/base/mutex.h"

ROOM_KEYWORDS = {"SOURCES", "ROOMS", "LINK"}


def room_of(path):
    """The room a file belongs to; "include" for public headers; None for tests, tools and the rest."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] in OUTSIDE_SRC and len(parts) > 1:
        return parts[0]
    return "include" if path.startswith("include/kvasir/") else None


def includes(text):
    """(included name, line) of each #include."""
    found = re.finditer(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', text, re.MULTILINE)
    return [(match.group(1), checklib.line_of(text, match.start())) for match in found]


def is_value_header(tree, name):
    text = tree.text("include/" + name) if "include/" + name in tree.paths else None
    return text is not None and VALUE_HEADER in text.split("#pragma once")[0]


def refusal(tree, path, room, name):
    """Why `path` of `room` must not include `name`, or None."""
    if name in LOCKS and path != LOCKS_OF_OURS:
        return f"'<{name}>' has locks that lint cannot follow; '{LOCKS_OF_OURS}' has some that it can"
    if ".." in name.split("/"):
        return f"'{name}' walks up; name it from src/ or include/"
    target = name.split("/")[0]
    if target == "kvasir":
        if room == "include" or is_value_header(tree, name) or ROW_OF[room] >= ROW_OF["api"]:
            return None
        return f"{room} includes the public header '{name}', which is no value header"
    if target not in ROW_OF or target == room:
        return None
    if room == "include":
        return f"a public header includes '{name}' of the room {target}"
    if room in PUBLIC_API_ONLY:
        return f"{room} includes '{name}', but may use the public API only"
    if ROW_OF[target] >= ROW_OF[room]:
        return f"{room} includes '{name}': {target} is not in a lower row"
    return None


def target_of(tree, name):
    """The room that a file named in an include belongs to; a public header that is no value header is the API's."""
    first = name.split("/")[0]
    return "api" if first == "kvasir" and not is_value_header(tree, name) else first


def check_includes(tree):
    findings, used = [], {}
    for path in tree.matching(r".*\.(cc|h|inc)"):
        room = room_of(path)
        if room is None:
            continue
        if room != "include" and room not in ROW_OF:
            findings.append(Finding(path, 0, f"the room '{room}' has no row in tools/check_rooms.py"))
            continue
        for name, line in includes(tree.text(path) or ""):
            reason = refusal(tree, path, room, name)
            if reason:
                findings.append(Finding(path, line, reason))
            target = target_of(tree, name)
            if target in ROW_OF and target != room and room != "include":
                used.setdefault(room, {}).setdefault(target, f"{path}:{line}")
    return findings, used


def link_line(arguments_of_calls, room):
    """(rooms linked, sources named) by a room's CMakeLists, and the names of kvasir_room calls."""
    linked, sources, declared = set(), set(), []
    for command, arguments, _ in arguments_of_calls:
        sources.update(word for word in arguments if word.endswith(".cc"))
        if command == "kvasir_room" and arguments:
            declared.append(arguments[0])
            linked.update(checklib.cmake_argument(arguments, "ROOMS", ROOM_KEYWORDS))
        if command in ("kvasir_room", "target_link_libraries"):
            linked.update(word.removeprefix("kvasir_") for word in arguments if word.startswith("kvasir_"))
    return {name for name in linked if name in ROW_OF and name != room}, sources, declared


def check_link_lines(tree, used):
    findings = []
    for path in tree.matching(r"src/[^/]+/CMakeLists\.txt"):
        room = path.split("/")[1]
        if room not in ROW_OF:
            continue
        linked, sources, declared = link_line(checklib.cmake_calls(tree.text(path)), room)
        findings += [Finding(path, 0, f"declares the room '{name}'") for name in declared if name != room]
        findings += [Finding(path, 0, f"links {name}, which is not in a row lower than {room}")
                     for name in sorted(linked) if ROW_OF[name] >= ROW_OF[room]]
        includes_of_room = used.get(room, {})
        findings += [Finding(path, 0, f"does not link {name}, which {includes_of_room[name]} includes")
                     for name in sorted(set(includes_of_room) - linked)]
        findings += [Finding(path, 0, f"links {name}, which no file of {room} includes: include what is used, or unlink it")
                     for name in sorted(linked - set(includes_of_room))]
        prefix = f"src/{room}/"
        for source in tree.matching(re.escape(prefix) + r".*\.cc"):
            if source.removeprefix(prefix) not in sources:
                findings.append(Finding(source, 0, f"is not among the sources in {path}"))
    for room in sorted({path.split("/")[1] for path in tree.matching(r"src/[^/]+/.*\.cc")}):
        if f"src/{room}/CMakeLists.txt" not in tree.paths:
            findings.append(Finding(f"src/{room}", 0, "has sources but no CMakeLists.txt"))
    return findings


def check(tree):
    findings, used = check_includes(tree)
    return findings + check_link_lines(tree, used)


_VALUE = {"include/kvasir/result.h": "// Answers. A value header.\n#pragma once\n"}

CLEAN = {
    **_VALUE,
    "include/kvasir/executor.h": '#pragma once\n#include "kvasir/result.h"\n',
    "src/base/file.h": '#include "kvasir/result.h"\n#include <vector>\n',
    "src/base/file.cc": '#include "base/file.h"\n',
    "src/base/CMakeLists.txt": "kvasir_room(base SOURCES file.cc)\n",
    "src/gguf/reader.cc": '#include "gguf/reader.h"\n#include "base/file.h"\n#include <hwy/highway.h>\n',
    "src/gguf/reader.h": "",
    "src/gguf/CMakeLists.txt": "kvasir_room(gguf\n  SOURCES reader.cc\n  ROOMS base # quant\n  LINK hwy)\n",
    "src/api/executor.cc": '#include "kvasir/executor.h"\n',
    "src/api/CMakeLists.txt": "kvasir_room(api SOURCES executor.cc)\n",
    "tests/base/file_test.cc": '#include "gguf/reader.h"\n',
}

PLANTED = [
    Planted("an include that climbs", {"src/base/a.h": '#include "gguf/reader.h"\n'}, "not in a lower row"),
    Planted("a lock of the standard", {"src/base/a.h": '#include <mutex>\n'}, "lint cannot follow"),
    Planted("an include of the same row", {"src/quant/a.h": '#  include <pages/table.h>\n'}, "not in a lower row"),
    Planted("an include that walks up", {"src/base/a.h": '#include "../gguf/reader.h"\n'}, "walks up"),
    Planted("a room without a row", {"src/attic/a.cc": ""}, "has no row"),
    Planted("a server that looks inside", {"src/server/a.h": '#include "base/file.h"\n'}, "public API only"),
    Planted("a public header that looks inside",
            {"include/kvasir/a.h": '#include "base/file.h"\n'}, "a public header includes"),
    Planted("a low room that includes the API",
            {"include/kvasir/a.h": "#pragma once\n// A value header.\n", "src/kv/a.h": '#include "kvasir/a.h"\n'},
            "no value header"),
    Planted("a link line that climbs",
            {"src/base/CMakeLists.txt": "kvasir_room(base ROOMS gguf)\n"}, "not in a row lower"),
    Planted("a link past the link line",
            {"src/base/CMakeLists.txt": "kvasir_room(base LINK kvasir_gguf)\n"}, "not in a row lower"),
    Planted("a link that is missing",
            {"src/kv/a.cc": '#include "base/file.h"\n', "src/kv/CMakeLists.txt": "kvasir_room(kv SOURCES a.cc)\n"},
            "does not link base"),
    Planted("the API used without a link",
            {"src/cli/a.cc": '#include "kvasir/executor.h"\n', "src/cli/CMakeLists.txt": "kvasir_room(cli SOURCES a.cc)\n"},
            "does not link api"),
    Planted("a link that nothing needs",
            {"src/kv/a.cc": "", "src/kv/CMakeLists.txt": "kvasir_room(kv SOURCES a.cc ROOMS base)\n"},
            "which no file of kv includes"),
    Planted("a room declared under another's name",
            {"src/kv/CMakeLists.txt": "kvasir_room(text)\n"}, "declares the room 'text'"),
    Planted("a source that is not built",
            {"src/kv/a.cc": "", "src/kv/CMakeLists.txt": "kvasir_room(kv SOURCES # a.cc\n)\n"}, "is not among"),
    Planted("a room that is not built", {"src/kv/a.cc": ""}, "no CMakeLists.txt"),
]

if __name__ == "__main__":
    checklib.main(check)
