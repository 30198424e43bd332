// Searches one after the other, each under limits of its own, from one budget of labels. Goes in: what the searches
// have in common, and what each may spend and how long its plans may take. Comes out: what each found, and what all
// took.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tangram/objective/objective.hpp"

namespace tangram::objective {

using compose::Currency;
using compose::SpendLimit;

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
/// Closed forms are rarely more than this times what simulation says; with few microbatches they are up to a quarter
/// more, which the fastest plan of all is looked at for (objective.cpp).
inline constexpr double kSimulatedSlack = 1.1;

/// A closed form from which on hardly any simulated time is within `longest`.
[[nodiscard]] Nanoseconds with_slack(Nanoseconds longest, double slack = kSimulatedSlack);

/// Of this currency; kNoLimit: none.
[[nodiscard]] std::optional<SpendLimit> limit_of(Currency currency, std::int64_t most);

/// GPU types of the fleet, and what all GPUs of each cost together and the cheapest of them alone.
struct TypeMoney {
  std::int64_t all = 0;  ///< micro-dollars per hour
  std::int64_t one = kNoLimit;
};
[[nodiscard]] std::map<std::string, TypeMoney> money_by_type(const cluster::IslandHierarchy& hierarchy);

/// Limits under which the fastest plans are looked for to have a choice, from `most` on: the i-th. They fall by a
/// seventh.
[[nodiscard]] std::int64_t choice_limit(std::int64_t most, std::size_t i);

class Walk {
 public:
  struct Step {
    std::optional<SpendLimit> limit = {};
    Nanoseconds longest = Nanoseconds::max();  ///< by closed form
    std::int64_t labels = kNoLimit;            ///< at most
    std::vector<std::string> gpu_types = {};   ///< empty: all
    int top = 0;                               ///< plans wanted, where more than the options of all say
    bool timed = false;                        ///< SearchOptions::timed, whatever the options of all say
  };

  Walk(const cluster::IslandHierarchy& hierarchy, const SearchOptions& options, const LimitedSearch& search,
       const Timing& timing)
      : hierarchy_(hierarchy), options_(options), search_(search), timing_(timing) {}

  SearchResult step(const Step& step);
  void start_over() { spent_ = 0; }  ///< with all labels again
  /// nullopt: it is no plan for the target.
  [[nodiscard]] std::optional<Shown> show(const Composition& plan) const;
  /// Of a search, those that take no longer; as the search gave them.
  [[nodiscard]] std::vector<Shown> shown_within(const SearchResult& found, Nanoseconds longest) const;

  /// None once the deadline has passed.
  [[nodiscard]] std::int64_t labels_left() const {
    return options_.deadline.has_passed() ? 0 : options_.label_budget - spent_;
  }
  [[nodiscard]] bool is_spent() const { return labels_left() <= 0; }
  [[nodiscard]] const SearchResult& effort() const { return effort_; }  ///< statistics and parallelizers alone
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] const cluster::IslandHierarchy& hierarchy() const { return hierarchy_; }
  [[nodiscard]] const SearchOptions& options() const { return options_; }

 private:
  const cluster::IslandHierarchy& hierarchy_;
  const SearchOptions& options_;
  const LimitedSearch& search_;
  const Timing& timing_;
  SearchResult effort_;
  std::optional<Nanoseconds> relaxed_;
  std::int64_t spent_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace tangram::objective
