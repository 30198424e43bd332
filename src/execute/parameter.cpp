#include "parameter.hpp"

namespace tangram::execute {

namespace {

// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every bit of the input moves every bit of the output.
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

constexpr double kAdapterScale = 2;  // lora_alpha is often twice the rank

std::uint64_t seed_of(const std::string& name) {
  std::uint64_t seed = 0;
  for (const char letter : name) seed = scrambled(seed ^ static_cast<std::uint64_t>(letter));
  return seed;
}

double value_at(std::uint64_t seed, int row, int column) {
  const std::uint64_t bits =
      scrambled(scrambled(seed + static_cast<std::uint64_t>(row)) + static_cast<std::uint64_t>(column));
  return static_cast<double>(bits >> 11U) * 0x1p-53 - 0.5;
}

}  // namespace

void add_product(Parameter& weight, const Matrix& read, const Matrix& gave) {
  if (weight.puts_off) {
    weight.put_off.emplace_back(read, gave);
  } else {
    add_transposed_product(weight.gradient, read, gave);
  }
}

Matrix linear(const Parameter& weight, const Matrix& input) {
  Matrix out = product(input, weight.value);
  if (weight.adapter_in != nullptr) {
    Matrix added = product(product(input, weight.adapter_in->value), weight.adapter_out->value);
    added *= kAdapterScale;
    out += added;
  }
  return out;
}

Matrix linear_backward(Parameter& weight, const Matrix& input, const Matrix& gradient) {
  add_product(weight, input, gradient);
  Matrix out = product_transposed(gradient, weight.value);
  if (weight.adapter_in != nullptr) {
    Matrix scaled = gradient;
    scaled *= kAdapterScale;
    const Matrix narrow = product_transposed(scaled, weight.adapter_out->value);
    add_product(*weight.adapter_out, product(input, weight.adapter_in->value), scaled);
    add_product(*weight.adapter_in, input, narrow);
    out += product_transposed(narrow, weight.adapter_in->value);
  }
  return out;
}

double initial_value(const std::string& name, int row, int column) { return value_at(seed_of(name), row, column); }

Parameter make_parameter(std::string name, int order, const Slice& slice, const Copies& copies, int rank, int zero) {
  Parameter p;
  p.name = std::move(name);
  p.order = order;
  p.slice = slice;
  p.copies = copies;
  p.zero = zero;
  p.value = Matrix(slice.row_range.length(), slice.column_range.length());
  p.gradient = Matrix(p.value.rows(), p.value.columns());
  const bool norm = slice.rows == 1;
  const std::uint64_t seed = seed_of(p.name);
  for (int i = 0; i < p.value.rows(); ++i) {
    for (int j = 0; j < p.value.columns(); ++j) {
      const double value = value_at(seed, slice.row_range.first + i, slice.column_range.first + j);
      p.value.at(i, j) = norm ? 1 + value / 2 : value;
    }
  }
  p.shard =
      zero == 0 ? Range{0, slice.size()} : piece(slice.size(), copies.shards->position(rank), copies.shards->size());
  const auto at = [](auto& values, int k) { return values.begin() + k; };
  if (zero >= 2) p.shard_gradient.assign(static_cast<std::size_t>(p.shard.length()), 0.0);
  if (zero == 3) {
    p.shard_value.assign(at(p.value.values(), p.shard.first), at(p.value.values(), p.shard.last));
    p.value = Matrix();
  }
  p.own_gradient.assign(static_cast<std::size_t>(p.shard.length()), 0.0);
  return p;
}

}  // namespace tangram::execute
