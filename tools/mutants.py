"""Do the tests notice a planted fault? Each mutant changes a line of the cache's rooms in a copy of the tree; the tests of that room
must fail.

    mutants.py JOBS [WORD...]   all mutants, or those whose names or paths contain one of the words
    mutants.py --check          builds nothing: is every mutant's text still there, once?

The copy lies in build/mutants, and only the test programs of the rooms at hand are built and run there. A mutant whose text is not
found exactly once, or that does not compile, is an error like one that survives: the list below follows the code. The tests of the
unchanged copy must pass first.
"""
import dataclasses
import subprocess
import sys

import checklib

COPY = checklib.ROOT / "build" / "mutants"
TEST_SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    path: str  # below src
    old: str
    new: str

    @property
    def tests(self):
        """The program of its room; who runs cells and passes is judged by the engine's."""
        room = self.path.split("/")[0]
        return "engine_test" if room == "model" else f"{room}_test"


MUTANTS = [
    Mutant("a fork is not counted as a holder", "pages/page_store.cc",
           "    hold(group, copy.cells[group].runs(), Holder::kFirm);\n", ""),
    Mutant("a fork is as clean as new", "pages/page_store.cc",
           "  copy.first_dirty = parent.first_dirty;\n", ""),
    Mutant("a beginning that is given back takes the source along", "pages/sharing.cc",
           "    if (kind(group) == GroupKind::kCross) continue;  // is no beginning: it was there before\n", ""),
    Mutant("a closed conversation keeps its promise", "pages/page_store.cc",
           "  promised_ -= closing.promised;\n", ""),
    Mutant("a rotate job has one cell too few", "pages/edit.cc",
           "{run.page, run.cell}, run.count}, std::move(turns)}", "{run.page, run.cell}, run.count - 1}, std::move(turns)}"),
    Mutant("a divided key is turned from its logical position", "pages/edit.cc",
           "turns.push_back(position - stored);", "turns.push_back(position - stored - old.shift);"),
    Mutant("a remove in the middle leaves what follows clean", "pages/edit.cc",
           "  if (!cuts_the_end) {\n    outline.first_dirty", "  if (!cuts_the_end && !removes) {\n    outline.first_dirty"),
    Mutant("an edit leaves tokens offered that it took back", "pages/edit.cc",
           "  table.remembered = std::min({table.remembered, table.length, outline_.first_changed});\n", ""),
    Mutant("a dropped edit keeps its new cells", "pages/edit.cc",
           "    store_->release(group, taken_[group], Holder::kFirm);\n", "    continue;\n"),
    Mutant("a shift by nothing is a change", "pages/edit.cc",
           "if (operation.kind == Kind::kShift) return operation.amount == 0;", "if (operation.kind == Kind::kShift) return false;"),
    Mutant("a move there and back is a change", "pages/edit.cc",
           "return kept_all && positions == before ? unchanged : outline;",
           "return kept_all && positions.empty() ? unchanged : outline;"),
    Mutant("a shift is applied twice", "pages/page_table.cc",
           "runs_[i].shift += delta;", "runs_[i].shift += 2 * delta;"),
    Mutant("spans of different shifts are joined", "pages/page_table.cc",
           " && left.shift == right.shift", ""),
    Mutant("moved cells lose what lies behind them", "pages/moves.h",
           "        visit(at, at, end - at.cell);\n", "        if (copy == copies_.begin()) visit(at, at, end - at.cell);\n"),
    Mutant("cells in the middle of a copy go to where it begins", "pages/moves.h",
           "CellAt{copy->to.page, copy->to.cell + into}", "CellAt{copy->to.page, copy->to.cell + into * 0}"),
    Mutant("a patch is not joined with the span behind it", "pages/page_table.cc",
           "  if (patch.last < runs_.size()) ++patch.last;\n", ""),
    Mutant("a patch that grows loses its end", "pages/page_table.cc",
           "same), patch.runs.end());\n", "same), patch.runs.end() - 1);\n"),
    Mutant("the index of holders does not follow what moves", "pages/compaction.cc",
           "    index.move(moves);\n", "    static_cast<void>(moves);\n"),
    Mutant("what a ticket commits is not in the index of holders", "pages/ticket.cc",
           "  ++store_->handovers_;\n", ""),
    Mutant("a part of a piece keeps the ordinal of the whole", "pages/holder_index.cc",
           "whole.ordinal + (before.cell - whole.cell)}", "whole.ordinal}"),
    Mutant("the second group is not installed at commit", "pages/ticket.cc",
           "  for (const Run& run : runs) cells.append(run);\n  runs.clear();\n",
           "  for (const Run& run : runs) {\n    if (group != 1) cells.append(run);\n  }\n  runs.clear();\n"),
    Mutant("one cell more than accepted is kept", "pages/ticket.cc",
           "store_->entry(memory_->plan[line].table).length + keep;",
           "store_->entry(memory_->plan[line].table).length + (keep == 0 ? 0 : keep + 1);"),
    Mutant("a promise is not used up", "pages/reserve.cc",
           "    promised_ -= table.line.paid;\n", ""),
    Mutant("what is not accepted is not promised again", "pages/ticket.cc",
           "  table.promised += unpaid;\n  store_->promised_ += unpaid;\n", ""),
    Mutant("new cells do not continue their predecessor's position", "pages/reserve.cc",
           "before.cell + before.count - 1) + 1 : 0;", "before.cell + before.count - 1) + 2 : 0;"),
    Mutant("whoever takes a hole stops the conversation before it", "pages/reserve.cc",
           "{first + std::min(hole.cells.count / 2, hole.cells.count - count), count}", "{first, count}"),
    Mutant("a plan may name a conversation twice", "pages/reserve.cc",
           "if (plan[other].table == plan[line].table) {", "if (plan[other].table == TableId{UINT32_MAX}) {"),
    Mutant("the release of a soft holder is not counted", "pages/group_cells.cc",
           "    if (holder == Holder::kSoft) --soft_[at(page, cell)];\n",
           "    if (holder == Holder::kSoft && cell > page_cells_) --soft_[at(page, cell)];\n"),
    Mutant("evictable cells of pages that stay are no holes", "pages/group_cells.cc",
           "    holes_ += free + page.evictable;\n    free_holes_ += free;\n", "    holes_ += free;\n    free_holes_ += free;\n"),
    Mutant("positions stay behind when cells change places", "pages/group_cells.cc",
           "    std::swap(positions_[first + i], positions_[second + i]);\n", ""),
    Mutant("holes of pages that would go are lent", "pages/group_cells.cc",
           "return page.held == page.evictable ? 0 :", "return page.held == 0 ? 0 :"),
    Mutant("fresh pages ignore what later groups need now", "pages/space.cc",
           "    if (other > group) needed_now += pages_now(other, demand.cells[other]) * layers;\n", ""),
    Mutant("fresh pages ignore what is promised", "pages/space.cc",
           "                  pages_in_the_end(group, demand.total[group]) + spare / layers);",
           "                  spare == UINT64_MAX ? spare : demand.cells[group] + spec_.frames);"),
    Mutant("eviction ends before there is room", "pages/space.cc",
           "return now <= free_frames_.size() &&", "return now <= free_frames_.size() + now &&"),
    Mutant("the index is emptied before a compaction gives way", "pages/space.cc",
           "  if (compaction_ != nullptr && !has_room_now(demand)) compaction_->destroy();\n",
           "  if (compaction_ != nullptr && index_.size() == 0 && !has_room_now(demand)) compaction_->destroy();\n"),
    Mutant("fits() counts a conversation's own promise against it", "pages/space.cc",
           "return fit(promised_but(entry(id)), promise_need(", "return fit(promised_need(), promise_need("),
    Mutant("the most recently used block is evicted first", "pages/prefix_index.cc",
           "  if (oldest_ == kRoot) return std::nullopt;\n  return oldest_;\n",
           "  if (newest_ == kRoot) return std::nullopt;\n  return newest_;\n"),
    Mutant("a block is found without looking at its tokens", "pages/prefix_index.cc",
           "        std::ranges::equal(block.tokens, tokens)) {", "        block.tokens.size() == tokens.size()) {"),
    Mutant("salt is ignored", "pages/sharing.cc",
           "index_.find(parent, origin, tokens.subspan(end - block, block));",
           "index_.find(parent, {0, origin.encoded}, tokens.subspan(end - block, block));"),
    Mutant("a hit is not marked as used", "pages/sharing.cc",
           "    index_.touch(blocks[taken - 1]);\n", ""),
    Mutant("a hit goes beyond the limit", "pages/sharing.cc",
           "end <= std::min<std::uint64_t>(limit, tokens.size())", "end <= std::min<std::uint64_t>(limit | UINT64_MAX, tokens.size())"),
    Mutant("a hit holds what is promised to others", "pages/sharing.cc",
           "      if (promises_fit()) break;\n", "      if (!index_.blocks().empty()) break;\n"),
    Mutant("dirty cells are remembered", "pages/sharing.cc",
           "std::min({table.length, table.first_dirty, std::uint64_t{tokens.size()}})",
           "std::min({table.length, std::uint64_t{tokens.size()}})"),
    Mutant("a swap does not patch the index", "pages/page_store.h",
           "    for (const PrefixIndex::BlockId block : index_.blocks()) visit(index_.cells(block)[group]);\n",
           "    static_cast<void>(index_);\n"),
    Mutant("compaction does not patch the index", "pages/compaction.cc",
           "    index.add({HolderIndex::Kind::kBlock, block}, index_.cells(block)[group].runs());\n", "    static_cast<void>(block);\n"),
    Mutant("compaction does not patch snapshots", "pages/compaction.cc",
           "snapshots_[i]->cells_[group].runs());\n", "snapshots_[i]->cells_[group].runs().first(0));\n"),
    Mutant("compaction does not patch checkpoints", "pages/compaction.cc",
           "              checkpoint.cells[group].runs());\n", "              checkpoint.cells[group].runs().first(0));\n"),
    Mutant("a copy job has one cell too few", "pages/compaction.cc",
           "  copies_.push_back({group, from, to, count});\n",
           "  copies_.push_back({group, from, to, std::max<std::uint32_t>(1, count - 1)});\n"),
    Mutant("compaction moves what is to stay", "pages/compaction.cc",
           "    if (stretch.shared && !may_move(task, {run.page, run.cell}, run.count)) break;\n", ""),
    Mutant("compaction spends what is promised", "pages/compaction.cc",
           "growth_of(patches(Moves(copies_))) < 0) && store_->promises_fit()) return true;",
           "growth_of(patches(Moves(copies_))) < 0)) return true;"),
    Mutant("compaction joins one's spans at the cost of others", "pages/compaction.cc",
           "(!stretch.shared || growth_of(", "(!stretch.shared || stretch.shared || growth_of("),
    Mutant("compaction empties a page for nothing", "pages/compaction.cc",
           "    if (!stretch.shared) return growth < static_cast<std::int64_t>(stretch.gain());\n",
           "    if (!stretch.shared) return true;\n"),
    Mutant("compaction empties a page again before the last one has paid", "pages/compaction.cc",
           "&& spans >= last.spans) return false;  // M1", "&& spans > last.spans + 1000) return false;"),
    Mutant("a load writes checkpoints that have no place", "engine/load_job.cc",
           "} else if (!places.empty() && places.front().ordinal == begin) {", "} else {"),
    Mutant("whoever waits goes on stepping an executor that closes", "engine/executor.cc",
           "if (!closed_ && !closing_.load()) return {};", "if (!closed_) return {};"),
    Mutant("a swap lets an open compaction go on", "pages/compaction.cc",
           "    if (compaction_ != nullptr) compaction_->destroy();\n", ""),
    Mutant("compaction moves the conversations of an open ticket", "pages/compaction.cc",
           "  return store_->tables_[table].busy ||\n", "  return\n"),
    Mutant("a window keeps what it has passed", "pages/page_store.cc",
           "    table.cells[group].drop_below(table.length - kept,", "    table.cells[group].drop_below(table.length - table.length * kept / kept,"),
    Mutant("an edit does not raise the floor of a window", "pages/edit.cc",
           "    floor = std::max(floor, outline.length -", "    floor = std::max(floor, floor & outline.length -"),
    Mutant("a floor is not carried along by an edit", "pages/edit.cc",
           "    floor = carried(floor, first, count);\n", ""),
    Mutant("checkpoints outlive an edit of what they hold", "pages/edit.cc",
           "  store.drop_checkpoints_above(table, outline_.first_changed);\n", ""),
    Mutant("an edit forgets what a long promise counts on", "pages/edit.cc",
           "    more[group] = passed.cells() - std::min(passed.cells(), passed_then);\n", ""),
    Mutant("a checkpoint is restored without its floors", "pages/rewind.cc",
           "    planned.floors = checkpoint->floors;\n", ""),
    Mutant("a rewind to the floor is free", "pages/rewind.cc",
           "  return length > floor &&", "  return length >= floor &&"),
    Mutant("what is missing after a rewind is not promised", "pages/rewind.cc",
           "std::min(table.promised, table.behind) + planned.behind;", "std::min(table.promised, table.behind);"),
    Mutant("a fork does not own its checkpoints", "pages/page_store.cc",
           "  for (const CheckpointId checkpoint : copy.checkpoints) own_checkpoint(checkpoint);\n", ""),
    Mutant("a fork takes what is promised to its parent", "pages/page_store.cc",
           "if (only_full_ || promises_fit()) return child;", "if (only_full_ || !groups_.empty()) return child;"),
    Mutant("cells that are written over keep their positions", "pages/ticket.cc",
           "      cells.set_position({run.page, run.cell + i}, before + run.ordinal + i);\n", ""),
    Mutant("a line accepted in part keeps the state of its end", "pages/ticket.cc",
           "  if (accepted == memory_->plan[line].count || ", "  if (accepted > 0 || "),
    Mutant("a checkpoint has a window that is too short", "pages/checkpoints.cc",
           "std::min(ordinal, kept_behind(group));", "std::min<std::uint64_t>(ordinal, 1);"),
    Mutant("the newest checkpoint is dropped first", "pages/checkpoints.cc",
           "if (ends <= spec_.checkpoints_max / 2) return 0;",
           "if (ends <= spec_.checkpoints_max / 2) return table.checkpoints.size() - 1;"),
    Mutant("many short prompts leave no checkpoint at a regular distance", "pages/checkpoints.cc",
           "ends <= spec_.checkpoints_max / 2", "ends <= spec_.checkpoints_max"),
    Mutant("a hit is served without its window", "pages/sharing.cc",
           "std::min(end, spec_.groups[group].width))", "std::min<std::uint64_t>(end, 1))"),
    Mutant("a window's promise counts on cells that others hold", "pages/need.cc",
           "firm_holders(group, run.page, cell) == 1 ? 1 : 0;", "firm_holders(group, run.page, cell) != 0 ? 1 : 0;"),
    Mutant("a beginning is found behind another encoder's output", "pages/page_store.h",
           "return {salt, table.encoded};", "return {salt, table.encoded & 0};"),
    Mutant("a lane comes from beside its cell", "kv/copy_plan.cc",
           "const std::size_t source_byte = lane * unit_bytes", "const std::size_t source_byte = (lane ^ (segment.count == 16 ? 1U : 0U)) * unit_bytes"),
    Mutant("a group of lanes is put together of the group beside it", "kv/copy_plan.cc",
           "to.cell % simd::kCellLanes != 0 &&", "to.cell != 0 &&"),
    Mutant("lanes beside a segment are overwritten", "kv/copy_jobs.cc",
           "    if (segment.whole()) {\n", "    if (segment.count > 3) {\n"),
    Mutant("the last head of copied keys is forgotten", "kv/copy_jobs.cc",
           "{layer.kv_heads, keys.bytes(", "{layer.kv_heads - (layer.kv_heads > 1 ? 1U : 0U), keys.bytes("),
    Mutant("the scales of copied values are forgotten", "kv/copy_jobs.cc",
           "  if (values.scales().units > 0) copy_values(", "  if (values.scales().units > 99) copy_values("),
    Mutant("a copy of all cells begins anew behind the most runs at once", "kv/copy_jobs.cc",
           "    count = 0;\n  }\n  simd::move_bytes(std::span(moves)", "  }\n  simd::move_bytes(std::span(moves)"),
    Mutant("the last values of blocks that are imported are forgotten", "kv/copy_jobs.cc",
           "    return blocks.write();\n", "    return;\n"),
    Mutant("rows of blocks beyond those that are put together begin anew", "kv/head_part.cc",
           "    rows += some * row_step;\n    count -= some;", "    count -= some;"),
    Mutant("the padding of a value is left as it was", "kv/head_part.cc",
           "  if (stored == dims_) clear_padding(frame, cell);\n", ""),
    Mutant("a turned key is stored beside where it lay", "kv/copy_jobs.cc",
           "part.store(frame_at(to.frame), to.cell + i,", "part.store(frame_at(to.frame), to.cell + i / 2,"),
    Mutant("a fork forgets the queue", "engine/conversations.cc",
           "    child.queue = parent->queue;\n", ""),
    Mutant("an edit keeps the logits of what is gone", "engine/conversations.cc",
           "  conversation.last_logits.reset();\n  // Where all", "  // Where all"),
    Mutant("an edit keeps the rows of what is gone", "engine/conversations.cc",
           "  std::erase_if(conversation.kept, [&](const KeptRow& kept) { return kept.ordinal >= ordinal; });\n  conversation.last", "  conversation.last"),
    Mutant("an edit's jobs are left undone", "engine/conversations.cc",
           "for (const pages::RotateCells& job : ticket.jobs()) rotate(job);", "static_cast<void>(ticket.jobs());"),
    Mutant("prompt_to answers with logits left over", "engine/conversations.cc",
           "all.size() == tokens.size() && kept == tokens.size() &&", "kept == tokens.size() &&"),
    Mutant("a hit takes the token whose logits are wanted", "engine/admission.cc",
           "std::uint64_t{queued.size() - 1}});", "std::uint64_t{queued.size()}});"),
    Mutant("a prompt for every row takes a shared beginning", "engine/admission.cc",
           "static_cast<std::uint64_t>(wanted - conversation.queue.every.begin())",
           "static_cast<std::uint64_t>(wanted - conversation.queue.every.begin()) | 0x100000"),
    Mutant("a step leaves the last token queued", "engine/step_end.cc",
           "  conversation.queue.pop(line.tokens, model_->sizes().embedding);\n  if",
           "  conversation.queue.pop(line.tokens - 1, model_->sizes().embedding);\n  if"),
    Mutant("a pass forgets where the pieces before it lie", "engine/open_step.cc",
           "const std::uint64_t begin = store_->length(table) + piece.first;\n  const std::size_t groups",
           "const std::uint64_t begin = store_->length(table);\n  const std::size_t groups"),
    Mutant("the second pass of a step scans on from the state before the step", "engine/open_step.cc",
           "piece.first > 0 ? std::optional(last) : store_->state(table, group)", "store_->state(table, group)"),
    Mutant("a state's exported numbers begin one too early", "kv/states.cc",
           "numbers.data() + inside, count * sizeof(float));", "numbers.data() + inside / 2 * 2, count * sizeof(float));"),
    Mutant("compaction forgets the bytes of the last layer", "engine/engine.h",
           "layer < layers.size(); ++layer) job(layers[layer], layer);",
           "layer + 1 < layers.size(); ++layer) job(layers[layer], layer);"),
    Mutant("who is not admitted computes", "engine/admission.cc",
           "return wants_room(conversation) && conversation.admitted;", "return wants_room(conversation);"),
    Mutant("a twin of what is computed computes too", "engine/admission.cc",
           "return common / page * page > other.tokens.size() + other.borrowed;", "return false;"),
    Mutant("who finds no room keeps the beginning that is known", "engine/admission.cc",
           "    return_beginning(conversation);\n    return promised;\n", "    return promised;\n"),
    Mutant("a stopped step leaves admitted whom it computed", "engine/step_end.cc",
           "  undo_admission(conversation);  // where it was not committed\n", ""),
    Mutant("a stopped step leaves admitted whom it did not compute", "engine/step_end.cc",
           "  undo_admissions();\n", ""),
    Mutant("a step that admits takes from what was reserved", "engine/admission.cc",
           "Status admitted = admit(conversation, before);", "Status admitted = admit(conversation, 0);"),
    Mutant("who was passed over is passed over for ever", "engine/admission.cc",
           "waits_before(other) && other.passed_over >= kPassedOverMax", "waits_before(other) && other.passed_over > 100'000"),
    Mutant("who waits too long waits one pass more", "engine/planner.cc",
           "if (rank + 1 > passes_left)", "if (rank > passes_left)"),
    Mutant("a low priority goes first", "engine/planner.cc",
           "return demands[a].priority > demands[b].priority;", "return demands[a].priority < demands[b].priority;"),
    Mutant("who is taken out of a step is committed", "engine/step_end.cc",
           "    if (!line.withdrawn) {\n", "    if (true) {\n"),
    Mutant("a draw counts the tokens before the step", "engine/open_step.cc",
           "line.accepted = conversation.accepted + taken - std::min(taken, conversation.again);",
           "line.accepted = conversation.accepted;"),
    Mutant("a row is used again while somebody holds it", "engine/row_pool.cc",
           "return {&slot->row, [](Row*) {}, SlotAllocator<Row>(shelf_, slot)};",
           "shelf_->push(slot);\n  return {&slot->row, [](Row*) {}};"),
    Mutant("every span is scored with the first shift", "model/attention_stages.cc",
           "static_cast<std::uint32_t>(variant)});", "static_cast<std::uint32_t>(variant - variant)});"),
    Mutant("a new key is turned by the first shift", "model/forward.cc",
           "next + static_cast<std::uint32_t>(own - shifts.begin())", "next + static_cast<std::uint32_t>(own - own)"),
    Mutant("a query is turned upon its last turn", "model/attention_stages.cc",
           "    std::ranges::copy(raw, turned.begin());\n    turn_heads(open, cells, turned, variant);\n",
           "    turn_heads(open, cells, raw, variant);\n    std::ranges::copy(raw, turned.begin());\n"),
    Mutant("a text is read from its beginning on only", "model/sights.cc",
           "{.end = runs.empty() ? 0 : runs.back().end()};", "{.end = pass.rows[row].ordinal + 1};"),
    Mutant("sums of sub-blocks share a lane that is too narrow for them", "simd/byte_products-inl.h",
           "return kMostCode * reach <= 32767;", "return kMostCode * reach <= 2 * 32767;"),
    Mutant("the first block of a row tells how far all reach", "simd/byte_products-inl.h",
           "x.reaches[c][index]", "x.reaches[c][0 * index]"),
    Mutant("the lower of two sums borrows from the upper one", "simd/byte_products_avx512.cc",
           "kAboveSum = 0x8000;", "kAboveSum = 0;"),
    Mutant("zeros of sums in floats keep their sign", "simd/byte_products-inl.h",
           "kBegin && kRecipe.paired_scale == 0", "kBegin"),
    Mutant("a block reaches as far as its positive bytes", "simd/byte_columns.cc",
           "reach = std::max({reach, above, above - sum});", "reach = std::max(reach, above);"),
    Mutant("a bias forgets how far a cell is", "simd/attention.cc",
           "std::clamp(distance, -shape.reach, shape.reach)", "std::clamp(-distance, -shape.reach, shape.reach)"),
    Mutant("a window is one token too wide", "model/sights.cc",
           "first = std::max(first, at.ordinal + 1 - std::min(at.ordinal + 1, window.width));",
           "first = std::max(first, at.ordinal - std::min(at.ordinal, window.width));"),
    Mutant("a window does not look at positions", "model/sights.cc",
           "while (first < at.ordinal && !seen(first)) ++first;", "while (first < at.ordinal && false) ++first;"),
    Mutant("what is hidden in the middle is seen", "model/sights.cc",
           "    if (!ascend) {\n", "    if (false) {\n"),
    Mutant("a part that reads what the one before read finds it changed", "model/forward.cc",
           "        if (before != nullptr && !part.same_input) end_part(*before, w, row);\n", "        if (before != nullptr && (!part.same_input || part.norm)) end_part(*before, w, row);\n"),
    Mutant("a state begins as what lay there", "model/state_walk.h",
           "      std::ranges::fill(state, 0.0F);\n", ""),
    Mutant("a kept state is the one that the pass began with", "model/state_walk.h",
           "      step(before, state, row);\n      before = state;\n", "      step(before, state, row);\n"),
    Mutant("the first row of a pass looks at zeros instead of the token before", "model/state_walk.cc",
           "                    if (states.from) {\n", "                    if (false) {\n"),
    Mutant("a convolution remembers every token but the newest", "simd/scans.cc",
           "LoadFloats(at + kChannelBlock) : newest, at);", "LoadFloats(at + kChannelBlock) : sum, at);"),
    Mutant("a head is read before its token although it is read behind", "simd/scans.cc",
           "kReadsBefore ? before : after", "!kReadsBefore ? before : after"),
    Mutant("a holder of the pool goes on for ever", "parallel/turns.cc",
           "  return clock_->now_ns() < slice_end_;\n", "  return true;\n"),
    Mutant("whoever wakes up first has the pool", "parallel/turns.cc",
           "taken_ || went_on_ != turn;", "taken_ || went_on_ > turn;"),
    Mutant("a new holder of the pool has the slice of the last", "parallel/turns.cc",
           "  ++went_on_;\n  slice_end_ = clock_->now_ns() + slice_;\n", "  ++went_on_;\n"),
    Mutant("whoever comes takes the pool from those who wait", "parallel/turns.cc",
           "(nobody_waits || (holder_ == self && goes_on()))", "(nobody_waits || holder_ != self || goes_on())"),
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


def build(jobs, targets):
    return run(["ninja", "-C", "build/release", "-j", jobs, *sorted(targets)])


def test(target):
    return run([f"build/release/bin/{target}", "--gtest_fail_fast", "--gtest_brief=1"], TEST_SECONDS)


def stop(sentence, output=""):
    print(output[-4000:], file=sys.stderr)
    sys.exit(f"mutants: {sentence}")


def how_noticed(status, output):
    if status is None:
        return "endless"
    if status < 0:
        return f"signal {-status}"
    failed = [line.split("]")[1].split()[0] for line in output.splitlines() if line.startswith("[  FAILED  ]")]
    return failed[0].rstrip(",") if failed else f"status {status}"


def try_mutant(mutant, jobs):
    """(verdict, detail): caught by what, MISSED, or an ERROR of the list."""
    path = COPY / "src" / mutant.path
    original = path.read_text()
    if original.count(mutant.old) != 1:
        return "ERROR", f"its text is found {original.count(mutant.old)} times in {mutant.path}"
    path.write_text(original.replace(mutant.old, mutant.new))
    try:
        status, output = build(jobs, [mutant.tests])
        if status != 0:
            print(output[-2000:], file=sys.stderr)
            return "ERROR", "it does not compile"
        status, output = test(mutant.tests)
    finally:
        path.write_text(original)
    return ("MISSED", "") if status == 0 else ("caught", how_noticed(status, output))


def prepare(jobs, targets):
    """The unchanged copy, built and found sound."""
    COPY.mkdir(parents=True, exist_ok=True)
    refresh_copy()
    status, output = run(["cmake", "--preset", "release", "--log-level=WARNING"])
    if status == 0:
        status, output = build(jobs, targets)
    if status != 0:
        stop("the unchanged copy does not build", output)
    for target in sorted(targets):
        status, output = test(target)
        if status != 0:
            stop(f"{target} fails without a mutant", output)


def check_list():
    """The mutants that no longer say where they are planted, and names that are used twice."""
    wrong = []
    for mutant in MUTANTS:
        count = (checklib.ROOT / "src" / mutant.path).read_text().count(mutant.old)
        if count != 1:
            wrong.append(f"{mutant.name}: its text is found {count} times in {mutant.path}")
    names = [mutant.name for mutant in MUTANTS]
    return wrong + [f"{name}: two mutants have this name" for name in sorted(set(names)) if names.count(name) > 1]


def main():
    if sys.argv[1:] == ["--check"]:
        wrong = check_list()
        print("\n".join(wrong), end="\n" if wrong else "")
        sys.exit(len(wrong) > 0)
    jobs, words = sys.argv[1], sys.argv[2:]
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name or word in mutant.path for word in words)]
    if not chosen:
        stop(f"no mutant is named like {', '.join(words)}")
    prepare(jobs, {mutant.tests for mutant in chosen})
    caught = 0
    for mutant in chosen:
        verdict, detail = try_mutant(mutant, jobs)
        caught += verdict == "caught"
        print(f"{verdict}: {mutant.name}" + (f" ({detail})" if detail else ""), flush=True)
    print(f"{caught} of {len(chosen)} mutants caught")
    sys.exit(caught != len(chosen))


if __name__ == "__main__":
    main()
