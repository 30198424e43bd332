// Parts of a block that a model writes in its framework's operators: a kernel each, in fp32 where the model asks for
// it, as models of Hugging Face and of PyTorch do without torch.compile. Goes in: a job. Comes out: which of them; the
// others are one kernel forward and one backward.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/base/enum_set.hpp"

namespace tangram::model {

enum class EagerOperator : std::uint8_t {
  kNorms,     ///< without a bias: RMSNorm
  kRotary,    ///< rotary positions of queries and keys
  kGates,     ///< of gated feed-forwards: the activation, and its product with what it gates
  kAdapters,  ///< low-rank ones: PEFT's, in fp32
};

inline constexpr std::array<std::pair<std::string_view, EagerOperator>, 4> kEagerOperatorNames{{
    {"norms", EagerOperator::kNorms},
    {"rotary", EagerOperator::kRotary},
    {"gates", EagerOperator::kGates},
    {"adapters", EagerOperator::kAdapters},
}};

using EagerOperators = EnumSet<EagerOperator>;

inline constexpr EagerOperators kAllEager{EagerOperator::kNorms, EagerOperator::kRotary, EagerOperator::kGates,
                                          EagerOperator::kAdapters};

/// The two that have names.
inline constexpr std::array<std::pair<std::string_view, EagerOperators>, 2> kNamedEagerOperators{{
    {"none", {}},
    {"all", kAllEager},
}};

/// As model files have them: "none", "all", else each in the order of kEagerOperatorNames.
[[nodiscard]] std::vector<std::string_view> names_of(const EagerOperators& operators);

}  // namespace tangram::model
