// A tree of continuations: each story is told on in two ways, and again, and again. What they have in common
// lies in the cache once, and every level is computed together.

#include <iostream>
#include <string>
#include <vector>

#include "check.h"
#include "kvasir/executor.h"

namespace {

constexpr int kLevels = 3;
constexpr std::uint64_t kTokens = 6;  // that each node of the tree adds

struct Node {
  kvasir::Conversation story;
  std::string text;
};

std::vector<Node> next_level(std::vector<Node>& parents) {
  std::vector<Node> children;
  std::vector<kvasir::Generation> told;
  for (Node& parent : parents) {
    for (int branch = 0; branch < 2; ++branch) {
      children.push_back({check(parent.story.fork()), parent.text});
      told.push_back(check(children.back().story.generate({.max_tokens = kTokens, .ignore_end = true})));
    }
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    children[i].text += "/" + check(told[i].rest()).text;
    check(children[i].story.wait());  // its last token is computed once, not by each of its children
  }
  return children;
}

}  // namespace

int main(int count, char** arguments) {
  const kvasir::Model model = check(kvasir::Model::load(model_file(count, arguments)));
  kvasir::Executor executor = check(kvasir::Executor::create(model));
  std::vector<std::vector<Node>> tree(1);
  tree[0].push_back({check(executor.conversation({.seed = 1})), ""});
  check(tree[0][0].story.prompt("Once upon a time there was a small dragon"));
  check(tree[0][0].story.wait());
  for (int level = 0; level < kLevels; ++level) tree.push_back(next_level(tree.back()));
  for (const Node& leaf : tree.back()) std::cout << leaf.text << "\n";
  std::uint64_t lengths = 0;
  for (const std::vector<Node>& level : tree) {
    for (const Node& node : level) lengths += node.story.length();
  }
  std::cout << "the tree has " << lengths << " tokens, the cache holds " << executor.cache().held
            << " of them\n";
}
