// Recurrent mixers on the bare walk, without an engine: how passes are cut,
// which states are kept and what is beside them shows in no bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "gguf/gguf.h"
#include "kv/state_layout.h"
#include "model/forward.h"
#include "pages/page_store.h"
#include "support/paths.h"
#include "support/tiny_model.h"

namespace kvasir::model {
namespace {

using kvasir::test::data_path;
using kvasir::test::load_file;
using kvasir::test::LoadedModel;
using kvasir::test::normalized_error;
using kvasir::test::read_floats;
using kvasir::test::read_tokens;

constexpr std::uint32_t kPageCells = 16;
constexpr std::uint32_t kFrames = 512;

// A model over a page store of its own: the calls of a step, and nothing else.
class Bench {
 public:
  Bench(const Model& model, int threads)
      : pool_(parallel::ThreadPool::create(threads).value()), model_(&model) {
    const Network& network = model.network();
    std::vector<kv::LayerGeometry> layers;
    for (const CacheGroup& group : network.groups)
      layers.insert(layers.end(), group.layers.begin(), group.layers.end());
    const kv::CacheTypes types{kv::CacheElement::kF32, kv::CacheElement::kF32};
    std::size_t frame = kv::Arena::frame_bytes(layers, types, kPageCells).value();
    for (const CacheGroup& group : network.groups) {
      if (!group.states.empty())
        frame = std::max(frame, kv::state_frame_bytes(group.states, layers.empty()).value());
    }
    pages::StoreSpec spec{.page_cells = kPageCells,
                          .frames = kFrames,
                          .positions_can_move = false,
                          .checkpoint_tokens = kPageCells};
    for (const CacheGroup& group : network.groups) {
      const kv::StateLayout layout(group.states, frame);
      const auto of_layers = static_cast<std::uint32_t>(group.layers.size());
      spec.groups.push_back({layout.frames() > 0 ? layout.frames() : of_layers, group.kind, group.width});
    }
    store_ = pages::PageStore::create(spec).value();
    arena_ = kv::Arena::create(layers, types, kPageCells, kFrames, frame).value();
    workspace_ = Workspace::create(model, {.rows = 64, .logit_rows = 64}).value();
    forward_ = std::make_unique<Forward>(model, arena_, *store_, *pool_, workspace_);
  }

  [[nodiscard]] pages::TableId open() { return store_->open().value(); }

  // Where a conversation is after a rewind: it is behind by what is left to `length`.
  std::uint64_t rewind(pages::TableId table, std::uint64_t length) {
    EXPECT_TRUE(store_->rewind(table, length));
    return store_->length(table);
  }

  [[nodiscard]] std::size_t recurrent_group() const {
    const auto& groups = model_->network().groups;
    return static_cast<std::size_t>(
        std::ranges::find(groups, pages::GroupKind::kRecurrent, &CacheGroup::kind) - groups.begin());
  }

  // Takes so many more tokens of each conversation in one step of one pass, and
  // appends their logits.
  struct Line {
    pages::TableId table{};
    std::span<const Token> tokens;
    std::vector<float>* logits = nullptr;
  };
  void step(const std::vector<Line>& lines, bool twice = false) {
    std::vector<pages::Growth> plan;
    for (const Line& line : lines) plan.push_back({.table = line.table, .count = line.tokens.size()});
    pages::Ticket ticket = store_->begin(plan).value();
    // A pass that is dropped and begun anew, as a step that was suspended is,
    // gives the same.
    for (int i = 0; i < (twice ? 2 : 1); ++i) {
      ASSERT_TRUE(forward_->start(pass_of(lines, ticket)));
      for (int jobs = 0; !forward_->done() && (i == 1 || !twice || jobs < 20); ++jobs)
        ASSERT_TRUE(forward_->advance());
    }
    std::uint32_t row = 0;
    for (const Line& line : lines) {
      for (std::size_t i = 0; i < line.tokens.size(); ++i) {
        const std::span<const float> logits = forward_->logits(row++);
        if (line.logits != nullptr) line.logits->insert(line.logits->end(), logits.begin(), logits.end());
      }
    }
    std::vector<std::uint64_t> accepted;
    for (const Line& line : lines) accepted.push_back(line.tokens.size());
    ticket.commit(accepted);
  }

  // Starts a pass that was changed, and drops it.
  template <class Change>
  [[nodiscard]] Status try_start(const std::vector<Line>& lines, const Change& change) {
    std::vector<pages::Growth> plan;
    for (const Line& line : lines) plan.push_back({.table = line.table, .count = line.tokens.size()});
    const pages::Ticket ticket = store_->begin(plan).value();
    Pass pass = pass_of(lines, ticket);
    change(pass);
    return forward_->start(std::move(pass));
  }

 private:
  Pass pass_of(const std::vector<Line>& lines, const pages::Ticket& ticket) {
    const std::vector<CacheGroup>& groups = model_->network().groups;
    Pass pass;
    pass.places.resize(groups.size());
    for (std::size_t index = 0; index < lines.size(); ++index) {
      const Line& line = lines[index];
      const std::uint64_t length = store_->length(line.table);
      PassSequence& sequence = pass.sequences.emplace_back();
      sequence.first_row = static_cast<std::uint32_t>(pass.rows.size());
      sequence.rows = static_cast<std::uint32_t>(line.tokens.size());
      for (std::size_t i = 0; i < line.tokens.size(); ++i) {
        pass.rows.push_back({.token = line.tokens[i],
                             .sequence = static_cast<std::uint32_t>(index),
                             .ordinal = length + i,
                             .position = static_cast<std::int64_t>(length + i),
                             .logits_row = pass.logit_rows++});
      }
      sequence.runs.resize(groups.size());
      sequence.floors.resize(groups.size());
      sequence.states.resize(groups.size());
      for (std::size_t group = 0; group < groups.size(); ++group) {
        const auto held = store_->runs(line.table, group);
        if (groups[group].kind == pages::GroupKind::kRecurrent) {
          if (!held.empty()) sequence.states[group].from = held.back().page;
          const auto writes = ticket.states(index, group);
          sequence.states[group].writes.assign(writes.begin(), writes.end());
          continue;
        }
        std::vector<pages::Run>& runs = sequence.runs[group];
        runs.assign(held.begin(), held.end());
        for (const pages::Run& run : ticket.new_runs(index, group)) {
          runs.push_back(run);
          for (std::uint32_t i = 0; i < run.count; ++i)
            pass.places[group].push_back({run.page, run.cell + i});
        }
      }
    }
    return pass;
  }

  std::unique_ptr<parallel::ThreadPool> pool_;
  const Model* model_;
  std::unique_ptr<pages::PageStore> store_;
  kv::Arena arena_;
  Workspace workspace_;
  std::unique_ptr<Forward> forward_;
};

class RecurrentModel : public testing::TestWithParam<const char*> {
 protected:
  std::string folder_ = data_path(std::string("models/") + GetParam());
  LoadedModel model_ = load_file(folder_ + "/model.gguf");
  std::vector<Token> tokens_ = read_tokens(folder_ + "/tokens.txt");

  // The logits of all tokens, in steps of these sizes, the last of which
  // repeats.
  std::vector<float> in_pieces(std::vector<std::size_t> pieces, int threads = 1, bool twice = false) {
    Bench bench(*model_.model, threads);
    const pages::TableId table = bench.open();
    std::vector<float> logits;
    std::size_t piece = 0;
    for (std::size_t at = 0; at < tokens_.size();) {
      const std::size_t count = std::min(pieces[piece], tokens_.size() - at);
      if (piece + 1 < pieces.size()) ++piece;
      bench.step({{table, std::span(tokens_).subspan(at, count), &logits}}, twice);
      at += count;
    }
    return logits;
  }
};

TEST_P(RecurrentModel, GivesTheRecordedLogits) {
  EXPECT_LE(normalized_error(in_pieces({tokens_.size()}), read_floats(folder_ + "/logits.f32")), 1e-9);
}

// U1
TEST_P(RecurrentModel, GivesTheSameBitsHoweverPassesAreCut) {
  const std::vector<float> whole = in_pieces({tokens_.size()});
  EXPECT_EQ(whole, in_pieces({1}));
  EXPECT_EQ(whole, in_pieces({7, 16, 1}));
  EXPECT_EQ(whole, in_pieces({3, 30, 2}, 3));
}

TEST_P(RecurrentModel, GivesTheSameBitsWhereAPassIsDroppedAndBegunAnew) {
  EXPECT_EQ(in_pieces({tokens_.size()}), in_pieces({5, 20, 1}, 2, true));
}

TEST_P(RecurrentModel, GivesTheSameBitsBesideOtherConversations) {
  const std::vector<float> whole = in_pieces({tokens_.size()});
  Bench bench(*model_.model, 2);
  const pages::TableId other = bench.open();
  const pages::TableId table = bench.open();
  const pages::TableId third = bench.open();
  const std::span<const Token> all = tokens_;
  std::vector<float> logits;
  bench.step({{other, all.first(9)}});
  bench.step({{other, all.subspan(20, 3)}, {table, all.first(17), &logits}, {third, all.subspan(5, 1)}});
  bench.step({{table, all.subspan(17, 1), &logits}, {other, all.subspan(30, 8)}});
  bench.step({{third, all.first(20)}, {table, all.subspan(18), &logits}});
  EXPECT_EQ(whole, logits);
}

// A rewind goes back to the state that was kept nearest before; what is computed anew from there has the same
// bits.
TEST_P(RecurrentModel, GoesOnFromAKeptStateWithTheSameBits) {
  const std::vector<float> whole = in_pieces({tokens_.size()});
  Bench bench(*model_.model, 1);
  const pages::TableId table = bench.open();
  const std::span<const Token> all = tokens_;
  bench.step({{table, all}});
  const std::uint64_t kept = bench.rewind(table, all.size() - 3);
  ASSERT_GE(kept, kPageCells);
  ASSERT_LT(kept, all.size() - 3);
  std::vector<float> logits;
  bench.step({{table, all.subspan(kept), &logits}});
  const auto from = static_cast<std::ptrdiff_t>(kept * model_.vocabulary());
  EXPECT_EQ(std::vector<float>(whole.begin() + from, whole.end()), logits);
}

TEST_P(RecurrentModel, RefusesAPassWithoutTheStatesThatItMustLeave) {
  Bench bench(*model_.model, 1);
  const pages::TableId table = bench.open();
  const std::span<const Token> some = std::span(tokens_).first(3);
  const auto start = [&](const auto& change) {
    return bench.try_start({{table, some}}, [&](Pass& pass) { change(pass.sequences[0]); });
  };
  EXPECT_TRUE(start([](PassSequence&) {}));
  const auto refused = [&](const auto& change) {
    const Status status = start(change);
    return !status && status.error().code() == Outcome::kInvalidArgument;
  };
  const std::size_t group = bench.recurrent_group();
  EXPECT_TRUE(refused([](PassSequence& sequence) { sequence.states.clear(); }));
  EXPECT_TRUE(refused([&](PassSequence& sequence) { sequence.states[group].writes.clear(); }));
  EXPECT_TRUE(refused([&](PassSequence& sequence) { ++sequence.states[group].writes.back().ordinal; }));
  EXPECT_TRUE(refused([&](PassSequence& sequence) {
    pages::StateWrite earlier = sequence.states[group].writes.back();
    --earlier.ordinal;
    sequence.states[group].writes.push_back(earlier);
  }));
}

std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// The file with another name for one of its tensors, of the same length.
Result<std::shared_ptr<const Model>> load_changed(std::vector<std::byte> bytes, std::size_t at,
                                                  std::span<const std::byte> instead) {
  std::ranges::copy(instead, bytes.begin() + static_cast<std::ptrdiff_t>(at));
  std::vector<std::unique_ptr<base::ReadFile>> shards;
  shards.push_back(base::memory_file(std::move(bytes)));
  const gguf::File file = gguf::File::parse(std::move(shards)).value();
  const auto pool = parallel::ThreadPool::create(1).value();
  return Model::load(file, *pool);
}

TEST_P(RecurrentModel, IsRefusedByTheNameOfATensorThatIsMissing) {
  const std::vector<std::byte> bytes = read_bytes(folder_ + "/model.gguf");
  constexpr char kOther = 'Z';
  std::size_t refused = 0;
  for (const gguf::Tensor& tensor : model_.file->tensors()) {
    const std::span<const std::byte> name = std::as_bytes(std::span(tensor.name));
    const auto found = std::ranges::search(bytes, name);
    ASSERT_FALSE(found.empty()) << tensor.name;
    const auto at = static_cast<std::size_t>(found.begin() - bytes.begin());
    const auto loaded = load_changed(bytes, at, std::as_bytes(std::span(&kOther, 1)));
    if (loaded) continue;
    ++refused;
    EXPECT_EQ(Outcome::kCorrupt, loaded.error().code()) << loaded.error().message();
    // Where a router is missing a dense part is what is looked for: the layer is named in any case.
    const std::string stem = tensor.name.substr(0, tensor.name.rfind('.'));
    const std::string place = tensor.name.contains("gate_inp.") ? stem.substr(0, stem.rfind('.')) : stem;
    EXPECT_NE(loaded.error().message().find(place), std::string::npos)
        << tensor.name << ": " << loaded.error().message();
  }
  // All but biases and norms that a family may leave out, and matrices that stand for a choice of parts.
  EXPECT_GE(refused * 10, model_.file->tensors().size() * 7);
}

// Counts that the file did not have: whatever loads must also run.
TEST_P(RecurrentModel, IsRefusedOrRunsWhateverACountSays) {
  const std::vector<std::byte> bytes = read_bytes(folder_ + "/model.gguf");
  for (const gguf::KeyValue& entry : model_.file->metadata()) {
    if (entry.value.type() != gguf::ValueType::kUint32) continue;
    const auto found = std::ranges::search(bytes, std::as_bytes(std::span(entry.key)));
    ASSERT_FALSE(found.empty()) << entry.key;
    // Behind the key stands the type of the value, then the value.
    const auto at = static_cast<std::size_t>(found.end() - bytes.begin()) + sizeof(std::uint32_t);
    for (const std::uint32_t count : {0U, 1U, 2U, 3U, 5U, 64U, 1U << 16, 1U << 31, UINT32_MAX}) {
      const auto loaded = load_changed(bytes, at, std::as_bytes(std::span(&count, 1)));
      if (!loaded) {
        EXPECT_FALSE(loaded.error().message().empty());
        continue;
      }
      Bench bench(**loaded, 1);
      bench.step({{bench.open(), std::span(tokens_).first(3)}});
    }
  }
}

// RWKV-6 halves the stream in every n-th layer: a number that no tensor's shape shows.
TEST(Fingerprint, DiffersWhereAKeyDoesAndNoTensorDoes) {
  const std::string path = data_path("models/rwkv6/model.gguf");
  const std::vector<std::byte> bytes = read_bytes(path);
  const std::string key = "rwkv6.rescale_every_n_layers";
  const auto found = std::ranges::search(bytes, std::as_bytes(std::span(key)));
  const auto at = static_cast<std::size_t>(found.end() - bytes.begin()) + sizeof(std::uint32_t);
  const std::array<std::uint32_t, 2> layers = {2, 1};
  const auto same = load_changed(bytes, at, std::as_bytes(std::span(layers).first(1))).value();
  const auto other = load_changed(bytes, at, std::as_bytes(std::span(layers).last(1))).value();
  EXPECT_EQ(load_file(path).model->fingerprint(), same->fingerprint());
  EXPECT_NE(same->fingerprint().weights, other->fingerprint().weights);
}

INSTANTIATE_TEST_SUITE_P(Models, RecurrentModel,
                         testing::Values("mamba", "mamba2", "jamba", "falcon-h1", "granitehybrid",
                                         "nemotron-h", "lfm2", "qwen3next", "rwkv6", "rwkv7"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace kvasir::model
