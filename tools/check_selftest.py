"""Proves the checks: each finds every violation planted for it, and finds nothing in a tree that is right."""
import sys

import check_docs
import check_rooms
import check_tests
import check_text
from checklib import Tree

CHECKS = [check_docs, check_rooms, check_tests, check_text]


def faults_of(module):
    """What a check does wrong on its own planted trees, as sentences."""
    faults = [f"{module.__name__}: the clean tree gives '{finding}'" for finding in module.check(Tree(module.CLEAN))]
    for planted in module.PLANTED:
        found = [str(finding) for finding in module.check(Tree(planted.files))]
        if not any(planted.finding in text for text in found):
            faults.append(f"{module.__name__}: {planted.name}: wanted '{planted.finding}', found {found or 'nothing'}")
    return faults


def main():
    faults = [fault for module in CHECKS for fault in faults_of(module)]
    for fault in faults:
        print(fault)
    count = sum(len(module.PLANTED) for module in CHECKS)
    print(f"check_selftest.py: {len(faults)} faults over {count} planted violations", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
