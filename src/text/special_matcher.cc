#include "text/special_matcher.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace kvasir::text {
namespace {

bool is_white(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// An edge of the trie, for visiting nodes in the order of their depth.
struct Edge {
  std::uint32_t depth;
  std::uint32_t parent;
  std::uint32_t node;
  char byte;
};

std::vector<Edge> edges_by_depth(const ByteTrie& trie, const Vocabulary& vocabulary,
                                 const std::vector<Token>& tokens) {
  std::vector<Edge> edges;
  std::vector<bool> seen(trie.nodes());
  for (const Token token : tokens) {
    std::uint32_t parent = ByteTrie::kRoot;
    std::uint32_t depth = 0;
    for (const char byte : vocabulary.spelling(token)) {
      const std::uint32_t node = trie.child(parent, byte);
      if (!seen[node]) edges.push_back({depth, parent, node, byte});
      seen[node] = true;
      parent = node;
      ++depth;
    }
  }
  std::ranges::sort(edges, {}, &Edge::depth);
  return edges;
}

}  // namespace

SpecialMatcher::SpecialMatcher(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (std::uint32_t id = 0; id < vocabulary.size(); ++id) {
    const TokenTraits& traits = vocabulary.traits[id];
    const auto token = static_cast<Token>(id);
    if ((traits.control || traits.user_defined || traits.unknown) && !vocabulary.spelling(token).empty()) {
      tokens_.push_back(token);
    }
  }
  std::ranges::sort(tokens_, {},
                    [&](Token token) { return std::tuple(~vocabulary.spelling(token).size(), token); });
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) names_.add(vocabulary.spelling(tokens_[i]), i);

  // The automaton of Aho and Corasick (1975): a node's longest suffix is found from its parent's.
  back_.assign(names_.nodes(), ByteTrie::kRoot);
  for (const Edge& edge : edges_by_depth(names_, vocabulary, tokens_)) {
    if (edge.parent == ByteTrie::kRoot) continue;
    std::uint32_t suffix = back_[edge.parent];
    std::uint32_t next = names_.child(suffix, edge.byte);
    while (next == ByteTrie::kNone && suffix != ByteTrie::kRoot) {
      suffix = back_[suffix];
      next = names_.child(suffix, edge.byte);
    }
    back_[edge.node] = next == ByteTrie::kNone ? ByteTrie::kRoot : next;
  }
}

// Indices of the tokens whose names stand anywhere in the text, overlapping or not, ascending. Each node is
// looked at once, so this is linear.
std::vector<std::uint32_t> SpecialMatcher::named_in(std::string_view text) const {
  std::vector<std::uint32_t> found;
  std::vector<bool> seen(names_.nodes());
  seen[ByteTrie::kRoot] = true;
  std::uint32_t node = ByteTrie::kRoot;
  for (const char byte : text) {
    std::uint32_t next = names_.child(node, byte);
    while (next == ByteTrie::kNone && node != ByteTrie::kRoot) {
      node = back_[node];
      next = names_.child(node, byte);
    }
    if (next == ByteTrie::kNone) continue;
    node = next;
    for (std::uint32_t at = node; !seen[at]; at = back_[at]) {
      seen[at] = true;
      if (names_.value(at) != ByteTrie::kNone) found.push_back(names_.value(at));
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<Fragment> SpecialMatcher::cut(std::string_view text, bool parse_special) const {
  if (text.empty()) return {};
  std::vector<Fragment> fragments = {{0, text.size()}};
  if (tokens_.empty()) return fragments;
  for (const std::uint32_t index : named_in(text)) {
    const TokenTraits& traits = vocabulary_.traits_of(tokens_[index]);
    if (!parse_special && (traits.control || traits.unknown)) continue;
    find_token(tokens_[index], text, fragments);
  }
  return fragments;
}

// Cuts the ordinary fragments at each place where they name the token.
void SpecialMatcher::find_token(Token token, std::string_view text, std::vector<Fragment>& fragments) const {
  const std::string_view name = vocabulary_.spelling(token);
  const TokenTraits& traits = vocabulary_.traits_of(token);
  std::vector<Fragment> cut;
  for (const Fragment& fragment : fragments) {
    std::size_t start = fragment.start;
    while (fragment.token == Fragment::kOrdinary && start < fragment.end) {
      const std::size_t at = text.substr(0, fragment.end).find(name, start);
      if (at == text.npos) break;
      std::size_t left_end = at;
      while (traits.strips_left && left_end > start && is_white(text[left_end - 1])) --left_end;
      if (left_end > start) cut.push_back({start, left_end});
      cut.push_back({at, at + name.size(), token});
      start = at + name.size();
      while (traits.strips_right && start < fragment.end && is_white(text[start])) ++start;
    }
    if (start < fragment.end) cut.push_back({start, fragment.end, fragment.token});
  }
  fragments.swap(cut);
}

}  // namespace kvasir::text
