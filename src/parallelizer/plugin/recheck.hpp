// The judge of outside answers. Goes in: a query and the text that came back. Comes out: an outcome whose plans were
// recomputed with the program's own cost model, and for each plan that did not pass the reason.
//
// A plan is a strategy (degrees, ZeRO stage, recompute) and, if the plugin likes, claims of time and memory. The
// strategy is costed anew: only so do plans of different parallelizers compare, and only so can a written plan be
// checked by those who do not have the plugin. Claims are bounded: what no GPU could do, or what does not fit by its
// own account, is inconsistent and rejects the plan; otherwise the ratio of claim to recomputed time is kept for
// people.
#pragma once

#include <string>

#include "tangram/parallelizer/answers.hpp"

namespace tangram::parallelizer {

/// What a plugin says of its own about a strategy is at most so long.
inline constexpr std::size_t kLongestOpaque = std::size_t{1} << 20;

class Recheck {
 public:
  /// `name` marks accepted plans. Model and profiles must outlive it.
  Recheck(const model::Model& model, const cost::ProfileSet* profiles, std::string name)
      : model_(model), profiles_(profiles), name_(std::move(name)) {}

  [[nodiscard]] Outcome judge(const Query& query, const Answer& answer) const;

 private:
  const model::Model& model_;
  const cost::ProfileSet* profiles_;
  std::string name_;
};

}  // namespace tangram::parallelizer
