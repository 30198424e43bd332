// All that queries of equal shape, samples, techniques and slice traits share: unit costs of every degree, the order in
// which strategies are tried, and what trying them has shown.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "family.hpp"
#include "known_answers.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/parallelizer/degrees.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

struct StrategySpace {
  std::vector<cost::UnitCosts> units;
  std::vector<Family> families;  ///< simplest first: by number of techniques, then by strategy
  std::size_t chains = 0;
  /// By chain: one that is tried before, mode by mode, and costs no more on any slice; the chain itself if there is
  /// none.
  std::vector<std::size_t> better;
  std::string unsupported;  ///< why `units` is empty
  std::unique_ptr<KnownAnswers> known = std::make_unique<KnownAnswers>();

  [[nodiscard]] bool supports(const Family& family, const model::SliceSignature& slice) const {
    return units[family.units].unsupported.of(slice).empty();
  }
  /// Why it has no strategy for the slice; empty: it has.
  [[nodiscard]] std::string why_unsupported(const model::SliceSignature& slice) const;
};

/// Number of techniques a strategy uses: tp, sp, cp, ep, dp, ZeRO, its groups, recompute. Of equally good strategies
/// the one with fewer is kept, then the smaller one.
[[nodiscard]] int technique_count(const cost::Strategy& strategy);

/// zero_stages (degrees.hpp), or the one of them that is demanded.
[[nodiscard]] std::vector<int> zero_stages_of(const Query& query, const SliceTraits& traits,
                                              const cost::Degrees& degrees, const model::ShardingGroup& wanted);

/// `costed[i]` are the unit costs of `degrees[i]`, ascending, or why there are none. Of the query count shape,
/// techniques and demands.
[[nodiscard]] StrategySpace make_strategy_space(const std::vector<cost::Degrees>& degrees,
                                                std::vector<Expected<cost::UnitCosts>> costed, const Query& query,
                                                const SliceTraits& traits, const model::ShardingGroup& wanted);

}  // namespace tangram::parallelizer
