// The best selection at one period.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "efficient.hpp"
#include "tangram/multimodal/join.hpp"
#include "tangram/multimodal/label.hpp"

namespace tangram::multimodal {

struct Joined {
  Selection selection;
  std::int64_t fixed = 0;  ///< its time without M - 1 periods
};

class JoinAtPeriod {
 public:
  JoinAtPeriod(const JoinProblem& problem, std::int64_t period) : problem_(problem), period_(period) {}

  /// The least `fixed` of all selections that keep the period; none: no selection does.
  [[nodiscard]] std::optional<Joined> best();

 private:
  struct Branches {
    Costs costs;
    std::vector<int> units;
    BranchLabel label;
    bool has_longest = false;  ///< one of them has as many stages as the longest; where warm-ups are the graph's
    std::vector<int> choices;
  };
  struct Language {
    Costs costs;
    std::vector<int> units;
    Label label;
    std::vector<int> choices;  ///< one
  };
  /// Choices that may be joined: of one key, and where warm-ups are the graph's, with one number of stages behind each
  /// stage of a branch and in front of the language model.
  struct Slice {
    int key = 0;
    std::size_t language_stages = 0;  ///< 0: any
    std::size_t longest_branch = 0;   ///< 0: any
  };

  [[nodiscard]] std::vector<Slice> slices() const;
  void join(const Slice& slice);
  [[nodiscard]] std::vector<Language> language_of(const Slice& slice) const;
  [[nodiscard]] std::vector<Branches> branches_of(const Slice& slice) const;
  [[nodiscard]] std::vector<Branches> branches_of(const Encoder& encoder, const Slice& slice) const;
  [[nodiscard]] std::vector<Branches> joined(const std::vector<Branches>& some,
                                             const std::vector<Branches>& more) const;
  [[nodiscard]] bool has_units(const std::vector<int>& some, const std::vector<int>& more) const;

  const JoinProblem& problem_;
  std::int64_t period_;
  std::optional<Joined> best_;
};

}  // namespace tangram::multimodal
