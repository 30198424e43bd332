#include "known_answers.hpp"

namespace tangram::parallelizer {

std::optional<std::vector<Member>> KnownAnswers::recall(const Query& query) const {
  const std::scoped_lock lock(mutex_);
  const auto known = answers_.find({query.max_in_flight, query.slice});
  if (known == answers_.end() || known->second.upper_bound < query.upper_bound) return std::nullopt;
  return known->second.found;
}

void KnownAnswers::remember(const Query& query, std::vector<Member> found, bool complete) {
  const Nanoseconds upper_bound = complete ? Nanoseconds::max() : query.upper_bound;
  const std::scoped_lock lock(mutex_);
  const auto [at, is_new] = answers_.try_emplace({query.max_in_flight, query.slice}, upper_bound, std::move(found));
  if (is_new || upper_bound <= at->second.upper_bound) return;
  at->second = {upper_bound, std::move(found)};
}

}  // namespace tangram::parallelizer
