"""Do the tests notice a planted fault? Each mutant changes a line of the page store in a copy of the tree; its tests must fail.

    mutants.py JOBS [NAME...]   all mutants, or those whose names contain one of the words

The copy lies in build/mutants. A mutant whose text is not found exactly once, or that does not compile, is an error: the
list below follows the code. The tests of the unchanged copy must pass first.
"""
import dataclasses
import subprocess
import sys

import checklib

COPY = checklib.ROOT / "build" / "mutants"
TARGET = "pages_test"
TEST_SECONDS = 300
PAGES = "src/pages/"


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: str
    old: str
    new: str


MUTANTS = [
    Mutant("a fork is not counted as a holder", "page_store.cc",
           "    hold(group, entry(child).cells[group].runs(), Holder::kFirm);\n", ""),
    Mutant("a fork is as clean as new", "page_store.cc",
           "  entry(child).first_dirty = entry(table).first_dirty;\n", ""),
    Mutant("a closed conversation keeps its promise", "page_store.cc",
           "  promised_ -= closing.promised;\n", ""),
    Mutant("a rotate job has one cell too few", "edit.cc",
           "{run.page, run.cell}, run.count}, std::move(turns)}", "{run.page, run.cell}, run.count - 1}, std::move(turns)}"),
    Mutant("a divided key is turned from its logical position", "edit.cc",
           "turns.push_back(position - stored);", "turns.push_back(position - stored - old.shift);"),
    Mutant("a remove in the middle leaves what follows clean", "edit.cc",
           "if (!cuts_the_end) first_dirty_", "if (!removes) first_dirty_"),
    Mutant("an edit leaves blocks offered that it changed", "edit.cc",
           "std::min({table.remembered, table.length, first_changed_})", "std::min({table.remembered, table.length})"),
    Mutant("a dropped edit keeps its new cells", "edit.cc",
           "    store_->release(group, taken_[group], Holder::kFirm);\n", "    continue;\n"),
    Mutant("a shift is applied twice", "page_table.cc",
           "runs_[i].shift += delta;", "runs_[i].shift += 2 * delta;"),
    Mutant("spans of different shifts are joined", "page_table.cc",
           " && left.shift == right.shift", ""),
    Mutant("moved cells lose what lies behind them", "page_table.cc",
           "run.cell + run.count - last, 0, run.shift}", "0, 0, run.shift}"),
    Mutant("the second group is not installed at commit", "ticket.cc",
           "      for (const Run& run : new_runs(line, group)) table.cells[group].append(run);\n",
           "      for (const Run& run : new_runs(line, group)) {\n"
           "        if (group != 1) table.cells[group].append(run);\n      }\n"),
    Mutant("one cell more than accepted is kept", "ticket.cc",
           "    std::uint64_t left = keep;\n", "    std::uint64_t left = keep == 0 ? 0 : keep + 1;\n"),
    Mutant("a promise is not used up", "ticket.cc",
           "    promised_ -= ticket.paid_[line];\n", ""),
    Mutant("what is not accepted is not promised again", "ticket.cc",
           "  store_->entry(plan_[line].table).promised += unpaid;\n  store_->promised_ += unpaid;\n", ""),
    Mutant("new cells do not continue their predecessor's position", "ticket.cc",
           "before.cell + before.count - 1) + 1 : 0;", "before.cell + before.count - 1) + 2 : 0;"),
    Mutant("a plan may name a conversation twice", "ticket.cc",
           "if (plan[other].table == plan[line].table) {", "if (plan[other].table == TableId{UINT32_MAX}) {"),
    Mutant("the release of a soft holder is not counted", "group_cells.cc",
           "    if (holder == Holder::kSoft) --soft_[at(page, cell)];\n", ""),
    Mutant("evictable cells of pages that stay are no holes", "group_cells.cc",
           "    holes_ += free + page.evictable;\n    free_holes_ += free;\n", "    holes_ += free;\n    free_holes_ += free;\n"),
    Mutant("positions stay behind when cells change places", "group_cells.cc",
           "  std::swap(positions_[first], positions_[second]);\n", ""),
    Mutant("holes of pages that would go are lent", "group_cells.cc",
           "return page.held == page.evictable ? 0 :", "return page.held == 0 ? 0 :"),
    Mutant("fresh pages ignore what later groups need now", "space.cc",
           "    if (other > group) needed_now += pages_now(other, demand.cells) * layers;\n", ""),
    Mutant("fresh pages ignore what is promised", "space.cc",
           "                  pages_in_the_end(group, demand.total) + spare / layers);",
           "                  spare == UINT64_MAX ? spare : demand.cells + spec_.frames);"),
    Mutant("eviction ignores what is promised", "space.cc",
           "return now <= free_frames_.size() && frames_needed(demand.total) + beyond_need <= frames_to_be_had();",
           "return now <= free_frames_.size() && beyond_need <= frames_to_be_had();"),
    Mutant("the index is emptied before a compaction gives way", "space.cc",
           "  if (compaction_ != nullptr && !has_room_now(demand)) compaction_->destroy();\n",
           "  if (compaction_ != nullptr && index_.size() == 0 && !has_room_now(demand)) compaction_->destroy();\n"),
    Mutant("fits() counts a conversation's own promise against it", "space.cc",
           "return count <= largest_fitting(promised_but(table));", "return count <= largest_fitting(promised_);"),
    Mutant("the most recently used block is evicted first", "prefix_index.cc",
           "  if (oldest_ == kRoot) return std::nullopt;\n  return oldest_;\n",
           "  if (newest_ == kRoot) return std::nullopt;\n  return newest_;\n"),
    Mutant("a block is found without looking at its tokens", "prefix_index.cc",
           "        std::ranges::equal(block.tokens, tokens)) {", "        block.tokens.size() == tokens.size()) {"),
    Mutant("salt is ignored", "prefix_index.cc",
           "mix(salt + 0x9E3779B97F4A7C15ULL)", "mix(0x9E3779B97F4A7C15ULL)"),
    Mutant("a hit is not marked as used", "sharing.cc",
           "    index_.touch(blocks[taken - 1]);\n", ""),
    Mutant("a hit goes beyond the limit", "sharing.cc",
           "end <= std::min<std::uint64_t>(limit, tokens.size())", "end <= tokens.size()"),
    Mutant("a hit holds what is promised to others", "sharing.cc",
           "  if (promises_fit()) return true;\n", "  if (!index_.blocks().empty()) return true;\n"),
    Mutant("dirty cells are remembered", "sharing.cc",
           "std::min({table.length, table.first_dirty, std::uint64_t{tokens.size()}})",
           "std::min({table.length, std::uint64_t{tokens.size()}})"),
    Mutant("compaction does not patch the index", "page_store.h",
           "    for (const PrefixIndex::BlockId block : index_.blocks()) visit(index_.cells(block)[group]);\n",
           "    static_cast<void>(index_);\n"),
    Mutant("a copy job has one cell too few", "compaction.cc",
           "  copies_.push_back({group, from, to, count});\n",
           "  copies_.push_back({group, from, to, std::max<std::uint32_t>(1, count - 1)});\n"),
    Mutant("compaction moves what is to stay", "compaction.cc",
           "      if (shared && !may_move(task, {run.page, run.cell}, run.count)) break;\n", ""),
    Mutant("compaction spends what is promised", "compaction.cc",
           "spans_now(task.group) && store_->promises_fit()) return true;", "spans_now(task.group)) return true;"),
    Mutant("compaction empties a page for nothing", "compaction.cc",
           "    if (in_the_end < spans) return in_the_end < spans_now(task.group);\n",
           "    if (in_the_end < spans) return true;\n"),
    Mutant("a swap lets an open compaction go on", "compaction.cc",
           "    if (compaction_ != nullptr) compaction_->destroy();\n", ""),
]


def run(command, seconds=None):
    """(status, output); a status of None where it took too long."""
    try:
        done = subprocess.run(command, cwd=COPY, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


def refresh_copy():
    """The working tree's files, written only where they differ, so that little is compiled anew."""
    names = set(checklib.repository_files())
    for path in sorted(COPY.rglob("*")):
        name = path.relative_to(COPY).as_posix()
        if path.is_file() and not name.startswith("build/") and name not in names:
            path.unlink()
    for name in names:
        target, content = COPY / name, (checklib.ROOT / name).read_bytes()
        if target.is_file() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def build(jobs):
    return run(["ninja", "-C", "build/release", "-j", jobs, TARGET])


def test():
    return run([f"build/release/bin/{TARGET}", "--gtest_fail_fast", "--gtest_brief=1"], TEST_SECONDS)


def stop(sentence, output=""):
    print(output[-4000:], file=sys.stderr)
    sys.exit(f"mutants: {sentence}")


def try_mutant(mutant, jobs):
    """How the tests noticed it, or None where they did not."""
    path = COPY / PAGES / mutant.path
    original = path.read_text()
    if original.count(mutant.old) != 1:
        stop(f"'{mutant.name}' finds its text {original.count(mutant.old)} times in {mutant.path}: the list is out of date")
    path.write_text(original.replace(mutant.old, mutant.new))
    try:
        status, output = build(jobs)
        if status != 0:
            stop(f"'{mutant.name}' does not compile", output)
        status, output = test()
    finally:
        path.write_text(original)
    if status is None:
        return "endless"
    if status < 0:
        return f"signal {-status}"
    failed = [line.split("]")[1].split()[0] for line in output.splitlines() if line.startswith("[  FAILED  ]")]
    return None if status == 0 else (failed[0].rstrip(",") if failed else f"status {status}")


def main():
    jobs, words = sys.argv[1], sys.argv[2:]
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    if not chosen:
        stop(f"no mutant is named like {', '.join(words)}")
    COPY.mkdir(parents=True, exist_ok=True)
    refresh_copy()
    status, output = run(["cmake", "--preset", "release", "--log-level=WARNING"])
    if status == 0:
        status, output = build(jobs)
    if status != 0:
        stop("the unchanged copy does not build", output)
    status, output = test()
    if status != 0:
        stop("the tests fail without a mutant", output)
    survivors = []
    for mutant in chosen:
        noticed = try_mutant(mutant, jobs)
        print(f"{'caught' if noticed else 'MISSED'}: {mutant.name}" + (f" ({noticed})" if noticed else ""), flush=True)
        if noticed is None:
            survivors.append(mutant)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants caught")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
