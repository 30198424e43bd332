#include "tangram/kernels/operators.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

using Name = std::string_view;

constexpr std::array<Name, kOperatorCount> kOperatorNames{"gemm",    "attention_decode", "attention_prefill",
                                                          "experts", "chunk_products",   "stream"};
constexpr std::array<Name, 3> kGemmShape{"m", "n", "k"};
constexpr std::array<Name, 5> kDecodeShape{"batch", "context", "heads", "kv_heads", "head_dim"};
constexpr std::array<Name, 5> kPrefillShape{"batch", "tokens", "heads", "kv_heads", "head_dim"};
constexpr std::array<Name, 5> kExpertsShape{"tokens", "hidden", "intermediate", "topk", "experts"};
constexpr std::array<Name, 5> kChunkShape{"products", "m", "n", "k", "bytes"};
constexpr std::array<Name, 1> kStreamShape{"bytes"};

using Shape = std::span<const std::int64_t>;

double number(Shape shape, int place) { return static_cast<double>(at(shape, place)); }

Work gemm_work(Shape shape, double width) {
  const double m = number(shape, 0);
  const double n = number(shape, 1);
  const double k = number(shape, 2);
  return {2 * m * n * k, width * (m * n + n * k + m * k)};
}

/// Queries and outputs of `tokens`, keys and values of `context`, and `pairs` of both that meet, of each request.
Work attention_work(Shape shape, double tokens, double context, double pairs, double width) {
  const double batch = number(shape, 0);
  const double query = number(shape, 2) * number(shape, 4);
  const double key = number(shape, 3) * number(shape, 4);
  return {4 * batch * pairs * query, 2 * width * batch * (tokens * query + context * key)};
}

Work experts_work(Shape shape, double width) {
  const double tokens = number(shape, 0);
  const double hidden = number(shape, 1);
  const double inner = number(shape, 2);
  const double chosen = std::min(number(shape, 3), number(shape, 4));
  const double experts = number(shape, 4);
  const double hit = experts * (1 - std::pow(1 - chosen / experts, tokens));
  const double rows = tokens * chosen;
  const double weights = 3 * hidden * inner;
  return {2 * rows * weights, width * (hit * weights + 2 * rows * hidden + 3 * rows * inner)};
}

}  // namespace

std::string_view to_string(Operator op) { return at(kOperatorNames, op); }

std::span<const std::string_view> operator_names() { return kOperatorNames; }

std::span<const std::string_view> shape_names(Operator op) {
  switch (op) {
    case Operator::kGemm: return kGemmShape;
    case Operator::kAttentionDecode: return kDecodeShape;
    case Operator::kAttentionPrefill: return kPrefillShape;
    case Operator::kExperts: return kExpertsShape;
    case Operator::kChunkProducts: return kChunkShape;
    case Operator::kStream: return kStreamShape;
  }
  return kStreamShape;
}

Work work_of(Operator op, Shape shape, DType dtype) {
  TANGRAM_ASSERT(shape.size() == shape_names(op).size());
  const auto width = static_cast<double>(bytes_of(dtype));
  switch (op) {
    case Operator::kGemm: return gemm_work(shape, width);
    case Operator::kAttentionDecode: {
      const double context = number(shape, 1);
      return attention_work(shape, 1, context, context, width);
    }
    case Operator::kAttentionPrefill: {
      const double tokens = number(shape, 1);
      return attention_work(shape, tokens, tokens, tokens * tokens / 2, width);
    }
    case Operator::kExperts: return experts_work(shape, width);
    case Operator::kChunkProducts:
      return {2 * number(shape, 0) * number(shape, 1) * number(shape, 2) * number(shape, 3), number(shape, 4)};
    case Operator::kStream: return {0, number(shape, 0)};
  }
  return {};
}

}  // namespace tangram::kernels
