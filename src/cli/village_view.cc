#include "cli/village_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/clock.h"
#include "base/try.h"
#include "cli/streams.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kColumns = 79;
constexpr std::size_t kActLines = 4;
constexpr std::size_t kTalkLines = 4;
constexpr std::size_t kGridColumns = 3;
constexpr std::size_t kHeight = 1 + 8 + 1 + 3 + 1 + kActLines + 1 + kTalkLines;
constexpr std::int64_t kPeriodNs = 80'000'000;
constexpr std::int64_t kSayPeriodNs = 1'000'000'000;

// Colours of the 256 that tell the characters apart.
constexpr std::array<int, 24> kColours = {203, 209, 215, 221, 191, 155, 119, 84,  79,  80,  81,  75,
                                          111, 105, 141, 177, 213, 211, 217, 180, 144, 108, 152, 187};
constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kPlain = "\x1b[0m";
constexpr std::string_view kDim = "\x1b[38;5;243m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kGreen = "\x1b[38;5;114m";
constexpr std::string_view kRed = "\x1b[38;5;203m";

std::string colour(std::size_t who) {
  return fmt::format("\x1b[38;5;{}m", kColours[who % kColours.size()]);
}

// A line of the view: text in colours, whose columns are counted.
class Row {
 public:
  // At most what is left of the row.
  Row& add(std::string_view text, std::string_view ink = {}) {
    std::size_t bytes = 0;
    std::size_t columns = 0;
    while (bytes < text.size() && columns_ + columns < kColumns) {
      ++bytes;
      while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) ++bytes;
      ++columns;
    }
    columns_ += columns;
    text_ += ink;
    text_ += text.substr(0, bytes);
    if (!ink.empty()) text_ += kPlain;
    return *this;
  }
  Row& rule() {
    while (columns_ < kColumns) add("─", kDim);
    return *this;
  }
  // Blanks up to a column.
  Row& to(std::size_t column) {
    while (columns_ < std::min(column, kColumns)) add(" ");
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_ + "\x1b[K"; }

 private:
  std::string text_;
  std::size_t columns_ = 0;
};

struct Sign {
  std::string_view glyph;
  std::string_view what;
};
constexpr Sign kSpeaks{"●", "speaks"};
constexpr Sign kReads{"◐", "listens"};
constexpr Sign kHere{"○", "in the pool"};
constexpr Sign kAway{"·", "put away"};
constexpr Sign kWaits{"◌", "waits for room"};

const Sign& sign_of(const Villager& villager) {
  const ConversationState state = villager.conversation.state();
  if (state == ConversationState::kWaiting) return kWaits;
  if (villager.answer && !villager.said.empty()) return kSpeaks;
  if (villager.answer || state == ConversationState::kQueued || state == ConversationState::kComputing)
    return kReads;
  return state == ConversationState::kSpilled ? kAway : kHere;
}

void add_villager(Row& row, const Villager& villager, std::size_t who) {
  const Sign& sign = sign_of(villager);
  const bool away = &sign == &kAway;
  const std::string ink = away ? std::string(kDim) : colour(who);
  const std::string name = &sign == &kSpeaks ? ink + std::string(kBold) : ink;
  row.add(fmt::format(" {} ", sign.glyph), ink).add(fmt::format("{:<8}", villager.person->name), name);
  row.add(fmt::format("{:<11}{:>4}", villager.person->trade, villager.conversation.length()), kDim);
}

std::vector<Row> grid_rows(const Village& village) {
  const std::size_t height = (village.all().size() + kGridColumns - 1) / kGridColumns;
  std::vector<Row> rows(height);
  for (std::size_t who = 0; who < village.all().size(); ++who)
    add_villager(rows[who % height], village.all()[who], who);
  return rows;
}

Row legend_row() {
  Row row;
  row.add("─", kDim);
  for (const Sign* sign : {&kSpeaks, &kReads, &kHere, &kAway, &kWaits})
    row.add(fmt::format(" {} {} ", sign->glyph, sign->what), kDim);
  return row.rule();
}

// A square for each page's worth of the pool, in the colour of whose cells they are.
Row pool_row(const Village& village) {
  const CacheInfo cache = village.executor().cache();
  Row row;
  row.add("pool ", kDim);
  const auto squares = static_cast<std::size_t>(cache.pool / kVillagePage);
  std::size_t shown = 0;
  std::uint64_t tokens = 0;
  for (std::size_t who = 0; who < village.all().size(); ++who) {
    const ConversationInfo info = village.all()[who].conversation.info();
    tokens += info.own + info.shared;
    for (; shown < squares && (shown + 1) * kVillagePage <= tokens + kVillagePage / 2; ++shown)
      row.add("■", colour(who));
  }
  for (tokens += cache.evictable; shown < squares && (shown + 1) * kVillagePage <= tokens; ++shown)
    row.add("□", kDim);
  for (; shown < squares; ++shown) row.add("·", kDim);
  return row.add(fmt::format(" {}/{}", cache.held, cache.pool), kDim);
}

Row tiers_row(const Village& village) {
  const CacheInfo cache = village.executor().cache();
  const Metrics metrics = village.executor().metrics();
  const auto megabytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; };
  Row row;
  row.add("away ", kDim).add(fmt::format("{:2}", cache.spilled + cache.returning), kBold);
  row.add(fmt::format(" of {}: {:.1f} MB in memory, {:.1f} on disk", village.all().size(),
                      megabytes(cache.memory_tier_bytes), megabytes(cache.disk_tier_bytes)));
  return row.to(52).add(
      fmt::format("{:5.0f} MB out, {} came back", megabytes(metrics.bytes_spilled), metrics.returns));
}

Row step_row(const Village& village) {
  const Pulse& pulse = village.pulse();
  const double budget = std::chrono::duration<double, std::milli>(kFrameBudget).count();
  Row row;
  row.add("step ", kDim);
  for (const double ms : pulse.latest_ms) {
    const auto level = static_cast<std::size_t>(std::clamp(ms / budget * 6.0, 0.0, 7.0));
    row.add(kBars[level], ms > budget + 2 ? kRed : kGreen);
  }
  row.to(47).add(fmt::format("{:5.1f} of {:.0f} ms", pulse.step_ms, budget));
  return row.add(fmt::format("{:8.0f} tokens/s", pulse.tokens_per_second), kBold);
}

}  // namespace

bool live_view_fits() noexcept {
  if (::isatty(STDOUT_FILENO) != 1) return false;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return false;
  return size.ws_col >= kColumns + 1 && size.ws_row >= kHeight + 1;
}

VillageView::VillageView(bool live) : live_(live), start_ns_(base::system_clock().now_ns()) {}

VillageView::~VillageView() {
  if (drawn_) static_cast<void>(print("\n\x1b[?25h"));
}

double VillageView::elapsed() const noexcept {
  return static_cast<double>(base::system_clock().now_ns() - start_ns_) * 1e-9;
}

Status VillageView::act(std::string_view title) {
  title_ = title;
  lines_.clear();
  if (live_ && !closed_) return {};
  return print(fmt::format("{:5.1f} s  {}\n", elapsed(), title));
}

Status VillageView::line(std::string_view text) {
  lines_.emplace_back(text);
  if (live_ && !closed_) return {};
  return print(fmt::format("         {}\n", text));
}

Status VillageView::verdict(bool good, std::string_view text) {
  if (!live_) return print(fmt::format(" {}\n", text));
  return print(fmt::format(" {}{}{}\n", good ? kGreen : kRed, text, kPlain));
}

Status VillageView::heard(const Village& village, const Heard& heard) {
  const std::string_view name = village.all()[heard.who].person->name;
  if (!live_) {
    const std::int64_t now = base::system_clock().now_ns();
    if (heard.right && now - said_ns_ < kSayPeriodNs) return {};
    said_ns_ = now;
    return print(fmt::format("{:5.1f} s  {}: {} - {}{}\n", elapsed(), name, heard.line.question, heard.answer,
                             heard.right ? "" : "  (WRONG)"));
  }
  Row row;
  row.add(fmt::format(" {} ", heard.right ? "✓" : "✗"), heard.right ? kGreen : kRed);
  row.add(fmt::format("{:<8}", name), colour(heard.who)).add(heard.line.question, kDim).add(" ");
  talk_.push_back(row.add(heard.answer).text());
  if (talk_.size() > kTalkLines) talk_.pop_front();
  return {};
}

Status VillageView::draw(const Village& village) {
  if (!live_ || closed_ || base::system_clock().now_ns() - drawn_ns_ < kPeriodNs) return {};
  return draw_now(village);
}

Status VillageView::close(const Village& village) {
  if (live_ && !closed_) {
    KVASIR_TRY(draw_now(village));
    KVASIR_TRY(print("\n\n\x1b[?25h"));
  }
  drawn_ = false;
  closed_ = true;
  return {};
}

Status VillageView::draw_now(const Village& village) {
  drawn_ns_ = base::system_clock().now_ns();
  std::vector<Row> rows;
  rows.emplace_back()
      .add(" KVASIR ", kBold)
      .add(fmt::format("{} characters, one model, one cache with room for a few of them",
                       village.all().size()))
      .to(73)
      .add(fmt::format("{:4.1f} s", elapsed()), kBold);
  std::ranges::move(grid_rows(village), std::back_inserter(rows));
  rows.push_back(legend_row());
  rows.push_back(pool_row(village));
  rows.push_back(tiers_row(village));
  rows.push_back(step_row(village));
  rows.emplace_back().add("── ", kDim).add(title_, kBold).add(" ").rule();
  for (std::size_t i = 0; i < kActLines; ++i)
    rows.emplace_back().add(" ").add(i < lines_.size() ? lines_[i] : "");
  rows.emplace_back().rule();
  std::string text = drawn_ ? fmt::format("\r\x1b[{}A", kHeight - 1) : "\x1b[?25l";
  for (const Row& row : rows) text += row.text() + "\n";
  for (std::size_t i = 0; i < kTalkLines; ++i) {
    text += i < talk_.size() ? talk_[i] : "\x1b[K";
    if (i + 1 < kTalkLines) text += "\n";
  }
  drawn_ = true;
  return print(text);
}

}  // namespace kvasir::cli
