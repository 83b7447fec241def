#include "scalar_forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <variant>

namespace kvasir::oracle {
namespace {

// One vector for each token.
using Row = std::vector<float>;
using Rows = std::vector<Row>;

// What weights of codes make of their input: in each block the nearest of 255 steps, the greatest magnitude
// being 127 of them.
Row in_steps(const Row& input, std::size_t block) {
  Row steps(input.size());
  for (std::size_t first = 0; first < input.size(); first += block) {
    float greatest = 0;
    for (std::size_t k = first; k < first + block; ++k) greatest = std::max(greatest, std::fabs(input[k]));
    for (std::size_t k = first; k < first + block && greatest > 0; ++k)
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
  const std::size_t block = weight.activation_block();
  if (block != 0) {
    for (Row& input : inputs) input = in_steps(input, block);
  }
  Rows outputs(inputs.size(), Row(weight.rows()));
  Row weights(weight.columns());
  for (std::size_t row = 0; row < weight.rows(); ++row) {
    weight.read_row(row, weights);
    for (std::size_t token = 0; token < inputs.size(); ++token) {
      const float sum =
          block == 0 ? product(weights, inputs[token]) : product_of_codes(weights, inputs[token]);
      outputs[token][row] = bias.empty() ? sum : sum + bias[row];
    }
  }
  return outputs;
}
Rows multiply(const model::Linear& linear, const Rows& inputs) {
  return multiply(linear.weight, linear.bias, inputs);
}

// x / sqrt(mean(x^2) + epsilon) * weight
void normalize(const model::Norm& norm, std::span<float> x) {
  double squares = 0;
  for (const float value : x) squares += double{value} * double{value};
  const double length = std::sqrt(squares / static_cast<double>(x.size()) + double{norm.epsilon});
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(double{x[i]} / length * double{norm.weight[i]});
  }
}
Rows normalized(const model::Norm& norm, Rows rows) {
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
    for (std::size_t at = 0; at < rows[token].size(); at += dims) {
      const std::span<float> head = std::span(rows[token]).subspan(at, dims);
      if (norm) normalize(*norm, head);
      turn(rope, token, head);
    }
  }
}

// e^(x - max) / sum
void softmax(std::span<double> x) {
  const double max = *std::ranges::max_element(x);
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value - max);
  for (double& value : x) value /= sum;
}

Rows attend(const model::Attention& mixer, const Rope& rope, const Rows& x) {
  Rows query = multiply(mixer.query, x);
  Rows key = multiply(mixer.key, x);
  const Rows value = multiply(mixer.value, x);
  const std::size_t key_dims = mixer.geometry.key_dims;
  const std::size_t value_dims = mixer.geometry.value_dims;
  prepare_heads(mixer.query_norm, rope, key_dims, query);
  prepare_heads(mixer.key_norm, rope, key_dims, key);
  Rows attended(x.size(), Row(mixer.heads * value_dims));
  for (std::size_t token = 0; token < x.size(); ++token) {
    for (std::size_t head = 0; head < mixer.heads; ++head) {
      const std::size_t kv_head = head / mixer.heads_per_kv();
      const float* q = query[token].data() + head * key_dims;
      std::vector<double> weights(token + 1);
      for (std::size_t seen = 0; seen <= token; ++seen) {
        const float* k = key[seen].data() + kv_head * key_dims;
        for (std::size_t d = 0; d < key_dims; ++d) weights[seen] += double{q[d]} * double{k[d]};
        weights[seen] *= double{mixer.scale};
      }
      softmax(weights);
      for (std::size_t d = 0; d < value_dims; ++d) {
        double sum = 0;
        for (std::size_t seen = 0; seen <= token; ++seen) {
          sum += weights[seen] * double{value[seen][kv_head * value_dims + d]};
        }
        attended[token][head * value_dims + d] = static_cast<float>(sum);
      }
    }
  }
  return multiply(mixer.output, attended);
}

// down(silu(gate(x)) * up(x))
Rows feed_forward(const model::GatedFeedForward& part, const Rows& x) {
  Rows gate = multiply(part.gate, x);
  const Rows up = multiply(part.up, x);
  for (std::size_t token = 0; token < x.size(); ++token) {
    for (std::size_t i = 0; i < gate[token].size(); ++i) {
      const double z = gate[token][i];
      gate[token][i] = static_cast<float>(z / (1 + std::exp(-z)) * double{up[token][i]});
    }
  }
  return multiply(part.down, gate);
}

// Each token's most probable experts, weighed by their probabilities among the chosen.
Rows feed_forward(const model::Experts& part, const Rows& x) {
  const Rows scores = multiply(part.router, x);
  Rows sums(x.size(), Row(x[0].size()));
  for (std::size_t token = 0; token < x.size(); ++token) {
    std::vector<double> probabilities(scores[token].begin(), scores[token].end());
    softmax(probabilities);
    std::vector<std::size_t> order(probabilities.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
    });
    order.resize(part.used);
    std::ranges::sort(order);
    double chosen = 0;
    for (const std::size_t expert : order) chosen += probabilities[expert];
    for (const std::size_t expert : order) {
      const Row out = feed_forward(part.experts[expert], Rows{x[token]})[0];
      const auto weight = static_cast<float>(probabilities[expert] / chosen);
      for (std::size_t i = 0; i < out.size(); ++i) sums[token][i] += weight * out[i];
    }
  }
  return sums;
}

void add(Rows& x, const Rows& more) {
  for (std::size_t token = 0; token < x.size(); ++token) {
    for (std::size_t i = 0; i < x[token].size(); ++i) x[token][i] += more[token][i];
  }
}

}  // namespace

std::vector<float> scalar_forward(const model::Network& network, const Rope& rope,
                                  std::span<const Token> tokens) {
  Rows x(tokens.size(), Row(network.token_embedding.columns()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    network.token_embedding.read_row(static_cast<std::size_t>(tokens[i]), x[i]);
  }
  for (const model::Layer& layer : network.layers) {
    add(x, attend(layer.mixer, rope, normalized(layer.mixer_norm, x)));
    const Rows normed = normalized(layer.feed_forward_norm, x);
    add(x, std::visit([&](const auto& part) { return feed_forward(part, normed); }, layer.feed_forward));
  }
  const Rows normed = normalized(network.output_norm, x);
  const Rows logits =
      network.output ? multiply(*network.output, normed) : multiply(network.token_embedding, {}, normed);
  std::vector<float> all;
  for (const Row& row : logits) all.insert(all.end(), row.begin(), row.end());
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
