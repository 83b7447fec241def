"""clang-tidy over the compile database, on several processors; a file that passed is not looked at again until something
it depends on changes.   run_tidy.py BUILD_DIRECTORY JOBS

A file's key covers its own text, every project file it includes however deeply, every .clang-tidy in the directories of
these and above, its compile command and clang-tidy's version. Keys of files that passed are empty files in
BUILD_DIRECTORY/tidy-passed.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from checklib import ROOT

TIDY = "clang-tidy-19"
INCLUDE_ROOTS = ("include", "src", "tests", ".")


def included(path, seen):
    """Adds to `seen` the project files that `path` includes, and what they include."""
    for name in re.findall(rb'^[ \t]*#[ \t]*(?:include|define[ \t]+HWY_TARGET_INCLUDE)[ \t]*[<"]([^>"\n]+)[>"]',
                           path.read_bytes(), re.MULTILINE):
        for directory in (path.parent, *(ROOT / base for base in INCLUDE_ROOTS)):
            found = (directory / os.fsdecode(name)).resolve()
            if found.is_file() and found.is_relative_to(ROOT):
                if found not in seen:
                    seen.add(found)
                    included(found, seen)
                break


def configurations(files):
    """Every .clang-tidy that bears on one of `files`: a header is judged by its own directory's."""
    directories = {directory for path in files for directory in path.parents if directory.is_relative_to(ROOT)}
    return {directory / ".clang-tidy" for directory in directories if (directory / ".clang-tidy").is_file()}


def key_of(entry, version):
    source = Path(entry["file"]).resolve()
    files = {source}
    included(source, files)
    digest = hashlib.sha256(version)
    digest.update(entry["command"].encode())
    for path in sorted(files | configurations(files)):
        digest.update(os.fsencode(path.relative_to(ROOT)) + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def tidy(build, source):
    """(status, what it says) of clang-tidy on one file."""
    done = subprocess.run([TIDY, "-p", str(build), "--quiet", "--warnings-as-errors=*", source],
                          capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if not re.match(r"\d+ warnings? (generated|treated)", line)]
    return done.returncode, (done.stdout + "\n".join(lines)).strip()


def main():
    build, jobs = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    passed = build / "tidy-passed"
    passed.mkdir(exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    keys = {entry["file"]: key_of(entry, version) for entry in json.loads((build / "compile_commands.json").read_text())
            if Path(entry["file"]).resolve().is_relative_to(ROOT)}
    waiting = sorted(file for file, key in keys.items() if not (passed / key).exists())
    print(f"clang-tidy: {len(keys) - len(waiting)} files unchanged, {len(waiting)} to look at", file=sys.stderr)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(tidy, build, file): file for file in waiting}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            file, (status, said) = running[future], future.result()
            print(f"[{done}/{len(waiting)}] {os.path.relpath(file, ROOT)}", file=sys.stderr)
            if status == 0:
                (passed / keys[file]).touch()
            else:
                failed += 1
                print(said, flush=True)
    for stale in passed.iterdir():
        if stale.name not in keys.values():
            stale.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
