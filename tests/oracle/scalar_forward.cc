#include "scalar_forward.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace kvasir::oracle {
namespace {

// One vector for each token.
using Row = std::vector<float>;
using Rows = std::vector<Row>;

// What weights of codes make of their input: in each block the nearest of 255 steps, the greatest magnitude
// being 127 of them.
Row in_steps(const Row& input) {
  constexpr std::size_t kBlock = 256;
  Row steps(input.size());
  for (std::size_t first = 0; first < input.size(); first += kBlock) {
    const std::size_t last = std::min(input.size(), first + kBlock);
    float greatest = 0;
    for (std::size_t k = first; k < last; ++k) greatest = std::max(greatest, std::fabs(input[k]));
    for (std::size_t k = first; k < last && greatest > 0; ++k)
      steps[k] = std::nearbyint(input[k] * (127.0F / greatest)) * (greatest / 127.0F);
  }
  return steps;
}

float product(const Row& weights, const Row& input) {
  float sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) sum = std::fma(weights[k], input[k], sum);
  return sum;
}

float product_of_codes(const Row& weights, const Row& input) {
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) sum += double{weights[k]} * double{input[k]};
  return static_cast<float>(sum);
}

// W x + b.
Rows multiply(const simd::Panels& weight, std::span<const float> bias, Rows inputs) {
  const bool codes = weight.takes_bytes();
  if (codes) {
    for (Row& input : inputs) input = in_steps(input);
  }
  Rows outputs(inputs.size(), Row(weight.rows()));
  Row weights(weight.columns());
  for (std::size_t row = 0; row < weight.rows(); ++row) {
    weight.read_row(row, weights);
    for (std::size_t token = 0; token < inputs.size(); ++token) {
      const float sum = codes ? product_of_codes(weights, inputs[token]) : product(weights, inputs[token]);
      outputs[token][row] = bias.empty() ? sum : sum + bias[row];
    }
  }
  return outputs;
}
Rows multiply(const model::Linear& linear, const Rows& inputs) {
  return multiply(linear.weight, linear.bias, inputs);
}

// (x - mean) / sqrt(variance + epsilon) * weight + bias, or without mean and bias: one width of a norm.
void normalize(const model::Norm& norm, std::span<float> x, std::size_t of_weight) {
  const auto count = static_cast<double>(x.size());
  double mean = 0;
  if (norm.kind == model::Norm::Kind::kMeanAndVariance) {
    for (const float value : x) mean += double{value} / count;
  }
  double squares = 0;
  for (const float value : x) squares += (double{value} - mean) * (double{value} - mean);
  const double length = std::sqrt(squares / count + double{norm.epsilon});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double bias = norm.bias.empty() ? 0.0 : double{norm.bias[of_weight + i]};
    x[i] = static_cast<float>((double{x[i]} - mean) / length * double{norm.weight[of_weight + i]} + bias);
  }
}
void normalize(const std::optional<model::Norm>& norm, std::span<float> x) {
  if (!norm) return;
  for (std::size_t at = 0; at < x.size(); at += norm->width)
    normalize(*norm, x.subspan(at, norm->width), at % norm->weight.size());
}
Rows normalized(const std::optional<model::Norm>& norm, Rows rows) {
  for (Row& row : rows) normalize(norm, row);
  return rows;
}

void turn(const Rope& rope, std::size_t position, std::span<float> head) {
  const std::size_t pairs = rope.frequencies.size();
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const double angle = static_cast<double>(position) * rope.frequencies[pair];
    const double cosine = std::cos(angle) * rope.magnitude;
    const double sine = std::sin(angle) * rope.magnitude;
    float& a = rope.halves ? head[pair] : head[2 * pair];
    float& b = rope.halves ? head[pair + pairs] : head[2 * pair + 1];
    const double old_a = a;
    const double old_b = b;
    a = static_cast<float>(old_a * cosine - old_b * sine);
    b = static_cast<float>(old_a * sine + old_b * cosine);
  }
}

void prepare_heads(const std::optional<model::Norm>& norm, const Rope& rope, std::size_t dims, Rows& rows) {
  for (std::size_t token = 0; token < rows.size(); ++token) {
    normalize(norm, rows[token]);
    for (std::size_t at = 0; at < rows[token].size(); at += dims)
      turn(rope, token, std::span(rows[token]).subspan(at, dims));
  }
}

// e^(x - max) / sum
void softmax(std::span<double> x) {
  const double max = *std::ranges::max_element(x);
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - max);
  for (double& value : x) value /= sum;
}

// The weights of the tokens from the first on that `token` sees; a sink takes its part and is left out.
std::vector<double> attention_weights(std::vector<double> scores, const model::CellAttention& cells,
                                      std::size_t head) {
  for (double& score : scores) {
    score *= double{cells.scale};
    if (cells.soft_cap != 0) score = double{cells.soft_cap} * std::tanh(score / double{cells.soft_cap});
  }
  const bool sinks = !cells.sinks.empty();
  if (sinks) scores.push_back(double{cells.sinks[head]});
  softmax(scores);
  if (sinks) scores.pop_back();
  return scores;
}

// What all query heads of each token read.
Rows read_cells(const model::CellAttention& cells, std::size_t width, const Rows& query, const Rows& key,
                const Rows& value) {
  const std::size_t key_dims = cells.geometry.key_dims;
  const std::size_t value_dims = cells.geometry.value_dims;
  Rows attended(query.size(), Row(cells.heads * value_dims));
  for (std::size_t token = 0; token < query.size(); ++token) {
    const std::size_t first = width == 0 || token < width ? 0 : token + 1 - width;
    for (std::size_t head = 0; head < cells.heads; ++head) {
      const std::size_t kv_head = head / cells.heads_per_kv();
      const float* q = query[token].data() + head * key_dims;
      std::vector<double> scores(token + 1 - first);
      for (std::size_t seen = first; seen <= token; ++seen) {
        const float* k = key[seen].data() + kv_head * key_dims;
        for (std::size_t d = 0; d < key_dims; ++d) scores[seen - first] += double{q[d]} * double{k[d]};
      }
      const std::vector<double> weights = attention_weights(std::move(scores), cells, head);
      for (std::size_t d = 0; d < value_dims; ++d) {
        double sum = 0;
        for (std::size_t seen = first; seen <= token; ++seen)
          sum += weights[seen - first] * double{value[seen][kv_head * value_dims + d]};
        attended[token][head * value_dims + d] = static_cast<float>(sum);
      }
    }
  }
  return attended;
}

// What a body needs besides its input.
struct Surroundings {
  const model::Network& network;
  std::span<const Rope> ropes;
};

Rows run(const model::Attention& mixer, const Surroundings& around, const Rows& x) {
  Rows query = multiply(mixer.query, x);
  Rows key = multiply(mixer.key, x);
  const Rows value = multiply(mixer.value, x);
  const std::size_t key_dims = mixer.cells.geometry.key_dims;
  const Rope& rope = around.ropes[mixer.cells.rotary];
  prepare_heads(mixer.query_norm, rope, key_dims, query);
  prepare_heads(mixer.key_norm, rope, key_dims, key);
  const std::size_t width = around.network.groups[mixer.cells.group].width;
  return multiply(mixer.output, read_cells(mixer.cells, width, query, key, value));
}

// The plain part of a head's key, unpacked from a latent as the paper has it before anything is absorbed:
// matrix^T latent.
std::vector<double> unpacked_key(const simd::Panels& matrix, const Row& latent) {
  std::vector<double> key(matrix.columns());
  Row weights(matrix.columns());
  for (std::size_t c = 0; c < latent.size(); ++c) {
    matrix.read_row(c, weights);
    for (std::size_t d = 0; d < key.size(); ++d) key[d] += double{weights[d]} * double{latent[c]};
  }
  return key;
}

Rows run(const model::LatentAttention& part, const Surroundings& around, const Rows& x) {
  const Rope& rope = around.ropes[part.cells.rotary];
  Rows query = part.query_down
                   ? multiply(part.query_up, normalized(part.query_norm, multiply(*part.query_down, x)))
                   : multiply(part.query_up, x);
  Rows latents = multiply(part.down, x);
  Rows turned;
  for (std::size_t token = 0; token < x.size(); ++token) {
    const auto end = latents[token].begin() + static_cast<std::ptrdiff_t>(part.latent());
    turned.emplace_back(end, latents[token].end());
    latents[token].erase(end, latents[token].end());
    turn(rope, token, turned[token]);
  }
  latents = normalized(part.latent_norm, std::move(latents));
  const std::size_t width = part.plain() + part.turned();
  Rows joined(x.size());
  for (std::size_t head = 0; head < part.cells.heads; ++head) {
    std::vector<std::vector<double>> keys;
    for (const Row& latent : latents) keys.push_back(unpacked_key(part.keys[head].weight, latent));
    const Rows values = multiply(part.values[head], latents);
    for (std::size_t token = 0; token < x.size(); ++token) {
      const std::span<float> own = std::span(query[token]).subspan(head * width, width);
      const std::span<float> to_turn = own.subspan(part.plain());
      turn(rope, token, to_turn);
      std::vector<double> scores(token + 1);
      for (std::size_t seen = 0; seen <= token; ++seen) {
        for (std::size_t d = 0; d < part.plain(); ++d) scores[seen] += double{own[d]} * keys[seen][d];
        for (std::size_t d = 0; d < part.turned(); ++d)
          scores[seen] += double{to_turn[d]} * double{turned[seen][d]};
      }
      const std::vector<double> weights = attention_weights(std::move(scores), part.cells, head);
      for (std::size_t d = 0; d < values[token].size(); ++d) {
        double sum = 0;
        for (std::size_t seen = 0; seen <= token; ++seen) sum += weights[seen] * double{values[seen][d]};
        joined[token].push_back(static_cast<float>(sum));
      }
    }
  }
  return multiply(part.output, joined);
}

double activated(simd::Activation activation, double z) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  switch (activation) {
    case simd::Activation::kSilu:
      return z * sigmoid(z);
    case simd::Activation::kGelu:
      return z / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (z + 0.044715 * z * z * z)));
    case simd::Activation::kRelu:
      return std::max(z, 0.0);
    case simd::Activation::kSquaredRelu:
      return std::max(z, 0.0) * std::max(z, 0.0);
    case simd::Activation::kSwishOfSeven:
      return std::min(z, 7.0) * sigmoid(1.702 * std::min(z, 7.0));
  }
  return 0;
}

double gated(simd::Activation activation, double z, double up) {
  const bool sevens = activation == simd::Activation::kSwishOfSeven;
  return activated(activation, z) * (sevens ? std::clamp(up, -7.0, 7.0) + 1 : up);
}

// down(activation(gate(x)) * up(x)), or down(activation(up(x))); in part, where a share says so
Rows run(const model::FeedForward& part, const Surroundings& /*around*/, const Rows& x) {
  const Rows up = multiply(part.up, x);
  Rows inner = part.gate ? multiply(*part.gate, x) : up;
  for (std::size_t token = 0; token < x.size(); ++token) {
    for (std::size_t i = 0; i < inner[token].size(); ++i) {
      const double z = inner[token][i];
      inner[token][i] = static_cast<float>(part.gate ? gated(part.activation, z, double{up[token][i]})
                                                     : activated(part.activation, z));
    }
  }
  Rows out = multiply(part.down, inner);
  if (!part.share) return out;
  const Rows share = multiply(*part.share, x);
  for (std::size_t token = 0; token < x.size(); ++token) {
    for (float& value : out[token])
      value = static_cast<float>(double{value} / (1 + std::exp(-double{share[token][0]})));
  }
  return out;
}

using Order = std::vector<std::size_t>;

// The `count` highest scores, ties to the lower index, in ascending index.
Order highest(const std::vector<double>& scores, std::size_t count) {
  Order order(scores.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

// The experts that a token goes to, of those in the best groups.
Order choose(const model::Routing& routing, std::vector<double> scores) {
  for (std::size_t i = 0; i < routing.bias.size(); ++i) scores[i] += double{routing.bias[i]};
  if (routing.groups == 1) return highest(scores, routing.used);
  const std::size_t width = scores.size() / routing.groups;
  std::vector<double> of_groups;
  for (std::size_t group = 0; group < routing.groups; ++group) {
    std::vector<double> some(scores.begin() + static_cast<std::ptrdiff_t>(group * width),
                             scores.begin() + static_cast<std::ptrdiff_t>((group + 1) * width));
    std::ranges::sort(some, std::greater<>());
    of_groups.push_back(width > 1 ? some[0] + some[1] : some[0]);
  }
  const Order kept = highest(of_groups, routing.groups_used);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::ranges::binary_search(kept, i / width)) scores[i] = -std::numeric_limits<double>::infinity();
  }
  return highest(scores, routing.used);
}

// The weights of the chosen experts.
std::vector<double> weigh(const model::Routing& routing, const std::vector<double>& scores,
                          const Order& chosen) {
  std::vector<double> weights;
  double sum = 0;
  for (const std::size_t expert : chosen) {
    weights.push_back(scores[expert]);
    sum += scores[expert];
  }
  if (routing.gate == model::Routing::Gate::kSoftmaxOfChosen) {
    softmax(weights);
  } else if (routing.sum_to_one) {
    for (double& weight : weights) weight /= sum;
  }
  for (double& weight : weights) weight *= double{routing.scale};
  return weights;
}

Rows run(const model::Experts& part, const Surroundings& around, const Rows& x) {
  const Rows router = multiply(part.router, x);
  Rows sums(x.size(), Row(x[0].size()));
  for (std::size_t token = 0; token < x.size(); ++token) {
    std::vector<double> scores(router[token].begin(), router[token].end());
    if (part.routing.gate == model::Routing::Gate::kSoftmax) softmax(scores);
    if (part.routing.gate == model::Routing::Gate::kSigmoid) {
      for (double& score : scores) score = 1 / (1 + std::exp(-score));
    }
    const Order chosen = choose(part.routing, scores);
    const std::vector<double> weights = weigh(part.routing, scores, chosen);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const Row out = run(part.experts[chosen[i]], around, Rows{x[token]})[0];
      for (std::size_t d = 0; d < out.size(); ++d) sums[token][d] += static_cast<float>(weights[i]) * out[d];
    }
  }
  return sums;
}

// Whether this is one of the kinds above.
template <class Body>
constexpr bool kKnown =
    std::is_same_v<Body, model::Attention> || std::is_same_v<Body, model::LatentAttention> ||
    std::is_same_v<Body, model::FeedForward> || std::is_same_v<Body, model::Experts>;

Rows run(const model::PartBody& body, const Surroundings& around, const Rows& x) {
  return std::visit(
      [&]<class Body>(const Body& one) -> Rows {
        if constexpr (kKnown<Body>) return run(one, around, x);
        std::abort();  // the test asked for what knows_every_part() denies
      },
      body);
}

void scale(Rows& x, float by) {
  for (Row& row : x) {
    for (float& value : row) value *= by;
  }
}

void add(Rows& x, const Rows& more) {
  for (std::size_t token = 0; token < x.size(); ++token) {
    for (std::size_t i = 0; i < x[token].size(); ++i) x[token][i] += more[token][i];
  }
}

Rows embed(const model::Network& network, std::span<const Token> tokens) {
  Rows x(tokens.size(), Row(network.token_embedding.columns()));
  for (std::size_t i = 0; i < tokens.size(); ++i)
    network.token_embedding.read_row(static_cast<std::size_t>(tokens[i]), x[i]);
  scale(x, network.embedding_scale);
  if (network.position_embedding) {
    Rows positions(x.size(), Row(x[0].size()));
    for (std::size_t i = 0; i < x.size(); ++i) network.position_embedding->read_row(i, positions[i]);
    add(x, positions);
  }
  return normalized(network.embedding_norm, std::move(x));
}

std::vector<Rope> read_ropes(const gguf::File& file, const model::Network& network) {
  std::vector<Rope> ropes;
  for (const simd::RotaryTable& table : network.rotary) {
    ropes.push_back({.frequencies = {table.frequencies().begin(), table.frequencies().end()},
                     .magnitude = table.magnitude(),
                     .halves = table.pairing() == simd::RopePairing::kHalves});
  }
  const auto architecture = file.get_string("general.architecture").value_or("");
  if (architecture == "llama" || architecture == "qwen2" || architecture == "qwen3")
    ropes.front() = read_rope(file);
  return ropes;
}

}  // namespace

bool knows_every_part(const model::Network& network) {
  return std::ranges::all_of(network.layers, [](const model::Layer& layer) {
    return std::ranges::all_of(layer.parts, [](const model::Part& part) {
      return std::visit([]<class Body>(const Body&) { return kKnown<Body>; }, part.body);
    });
  });
}

std::vector<float> scalar_forward(const model::Network& network, const gguf::File& file,
                                  std::span<const Token> tokens) {
  const std::vector<Rope> ropes = read_ropes(file, network);
  const Surroundings around{network, ropes};
  Rows x = embed(network, tokens);
  Rows stream = x;  // as the last part with an input of its own found it
  Rows input;
  for (const model::Layer& layer : network.layers) {
    for (const model::Part& part : layer.parts) {
      if (!part.same_input) stream = x;
      if (!part.same_input || part.norm) input = normalized(part.norm, stream);
      Rows given = run(part.body, around, input);
      given = normalized(part.output_norm, std::move(given));
      scale(given, part.scale);
      add(x, given);
      x = normalized(part.stream_norm, std::move(x));
      scale(x, part.stream_scale);
    }
  }
  const Rows normed = normalized(network.output_norm, x);
  Rows logits =
      network.output ? multiply(*network.output, normed) : multiply(network.token_embedding, {}, normed);
  scale(logits, network.logit_scale);
  std::vector<float> all;
  for (Row& row : logits) {
    if (network.logit_cap != 0) {
      const double cap = network.logit_cap;
      for (float& logit : row) logit = static_cast<float>(cap * std::tanh(double{logit} / cap));
    }
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

Rope read_rope(const gguf::File& file) {
  const std::string architecture(file.get_string("general.architecture").value());
  const auto number = [&](const char* key, double otherwise) {
    const auto value = file.get_float(architecture + "." + key);
    return value ? *value : otherwise;
  };
  Rope rope;
  rope.halves = architecture != "llama";
  const double head =
      number("attention.key_length", number("embedding_length", 0) / number("attention.head_count", 1));
  const double dims = number("rope.dimension_count", head);
  const double base = number("rope.freq_base", 10000);
  const auto type_key = file.get_string(architecture + ".rope.scaling.type");
  const std::string type(type_key ? *type_key : "linear");
  const double given = number("rope.scaling.factor", number("rope.scale_linear", 1));
  const double factor = type == "none" || given == 0 ? 1 : given;
  for (std::size_t pair = 0; pair < static_cast<std::size_t>(dims) / 2; ++pair) {
    rope.frequencies.push_back(std::pow(base, -2 * static_cast<double>(pair) / dims));
  }
  if (const gguf::Tensor* tensor = file.find_tensor("rope_freqs.weight")) {
    std::vector<float> divisors(rope.frequencies.size());
    const Status read = file.read(*tensor, 0, std::as_writable_bytes(std::span(divisors)));
    for (std::size_t i = 0; read && i < divisors.size(); ++i) rope.frequencies[i] /= double{divisors[i]};
  }
  // YaRN: a pair that turns often within the original context keeps its frequency, one that turns less than
  // once is stretched, with a linear ramp over the pairs between.
  const double original = number("rope.scaling.original_context_length", number("context_length", 0));
  const auto pair_that_turns = [&](double turns) {
    return dims * std::log(original / (2 * std::numbers::pi * turns)) / (2 * std::log(base));
  };
  const double low = std::max(0.0, std::floor(pair_that_turns(number("rope.scaling.yarn_beta_fast", 32))));
  const double high =
      std::min(dims - 1, std::ceil(pair_that_turns(number("rope.scaling.yarn_beta_slow", 1))));
  for (std::size_t pair = 0; pair < rope.frequencies.size(); ++pair) {
    const double along = (static_cast<double>(pair) - low) / std::max(high - low, 0.001);
    const double kept =
        type == "yarn" ? (1 - std::clamp(along, 0.0, 1.0)) * number("rope.scaling.yarn_ext_factor", 1) : 0;
    rope.frequencies[pair] *= kept + (1 - kept) / factor;
  }
  rope.magnitude = number("rope.scaling.attn_factor", 1);
  if (type == "yarn") rope.magnitude *= 1 + 0.1 * std::log(factor);
  return rope;
}

}  // namespace kvasir::oracle
