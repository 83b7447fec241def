// Merging neighbours, best pair first: the loop that SentencePiece-style and byte-pair vocabularies share.
//
// The symbols are a linked list, the pairs a heap, so that n symbols take O(n log n) however they merge.
// Source of the method: Sennrich, Haddow, Birch (2016), "Neural Machine Translation of Rare Words with
// Subword Units"; of doing it with a heap: SentencePiece.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kvasir::text {

struct Symbol {
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  std::uint32_t start = 0;     // in the text
  std::uint32_t length = 0;    // bytes; 0 once it is part of a symbol before it
  std::uint32_t id = kNobody;  // whatever the kind calls it
  std::uint32_t prev = kNobody;
  std::uint32_t next = kNobody;
};

// What two neighbours would become. Lower priorities merge first, and of equal ones the leftmost.
struct Merge {
  std::uint32_t priority;
  std::uint32_t id;
};

// Merges a list of symbols in place. Keeps its memory for the next list; one thread at a time.
class PairMerger {
 public:
  // Makes a list of symbols, to be filled by append(), empty.
  void clear() {
    symbols_.clear();
    candidates_.clear();
  }

  void append(std::uint32_t start, std::uint32_t length, std::uint32_t id) {
    const auto index = static_cast<std::uint32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({start, length, id, index > 0 ? index - 1 : Symbol::kNobody, Symbol::kNobody});
  }

  // `find(left, right)` answers std::optional<Merge> for two neighbours.
  template <class Find>
  void merge_all(Find&& find) {
    for (std::uint32_t left = 0; left + 1 < symbols_.size(); ++left) {
      if (const std::optional<Candidate> found = candidate(left, find)) candidates_.push_back(*found);
    }
    std::ranges::make_heap(candidates_, std::greater<>{});
    while (!candidates_.empty()) {
      std::ranges::pop_heap(candidates_, std::greater<>{});
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      if (is_current(best)) take(best, find);
    }
  }

  // `visit(symbol)` for each that is left, in order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t i = symbols_.empty() ? Symbol::kNobody : 0; i != Symbol::kNobody;
         i = symbols_[i].next) {
      visit(symbols_[i]);
    }
  }

 private:
  struct Candidate {
    std::uint64_t order;   // priority, then the left symbol
    std::uint32_t length;  // of both together: another length means that one of them has changed since
    std::uint32_t id;

    [[nodiscard]] std::uint32_t left() const noexcept { return static_cast<std::uint32_t>(order); }
    bool operator>(const Candidate& other) const noexcept { return order > other.order; }
    bool operator<(const Candidate& other) const noexcept { return order < other.order; }
    bool operator==(const Candidate& other) const noexcept { return order == other.order; }
    bool operator<=(const Candidate& other) const noexcept { return order <= other.order; }
    bool operator>=(const Candidate& other) const noexcept { return order >= other.order; }
  };

  template <class Find>
  std::optional<Candidate> candidate(std::uint32_t left, Find& find) const {
    const Symbol& first = symbols_[left];
    const Symbol& second = symbols_[first.next];
    const std::optional<Merge> found = find(first, second);
    if (!found) return std::nullopt;
    return Candidate{std::uint64_t{found->priority} << 32 | left, first.length + second.length, found->id};
  }

  [[nodiscard]] bool is_current(const Candidate& best) const noexcept {
    const Symbol& first = symbols_[best.left()];
    return first.length != 0 && first.next != Symbol::kNobody &&
           first.length + symbols_[first.next].length == best.length;
  }

  template <class Find>
  void take(const Candidate& best, Find& find) {
    Symbol& first = symbols_[best.left()];
    Symbol& second = symbols_[first.next];
    first.length = best.length;
    first.id = best.id;
    first.next = second.next;
    second.length = 0;
    if (first.next != Symbol::kNobody) {
      symbols_[first.next].prev = best.left();
      push(best.left(), find);
    }
    if (first.prev != Symbol::kNobody) push(first.prev, find);
  }

  template <class Find>
  void push(std::uint32_t left, Find& find) {
    if (const std::optional<Candidate> found = candidate(left, find)) {
      candidates_.push_back(*found);
      std::ranges::push_heap(candidates_, std::greater<>{});
    }
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap, the best on top
};

}  // namespace kvasir::text
