// The stages that a label search puts in front of labels. Goes in: a program, its frontiers, the completion bound, and
// what the search is asked. Comes out: for every number of blocks left and every depth, the extensions that can stay
// below the cutoff, by how much they raise a label's bound at least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../bounds/completion_bound.hpp"
#include "label_query.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::chain {

struct Extension {
  double growth = 0;                     ///< of a label's bound, at least
  Candidate plan;                        ///< copied: it is looked at for every label
  const Candidate* candidate = nullptr;  ///< where it came from; none of relaxed frontiers
};

/// Extensions by the same slice on the same option: one look at a state may rule out all of them.
struct ExtensionGroup {
  double growth = 0;  ///< of the first one, the smallest
  int option = 0;
  int blocks = 0;
  std::uint32_t begin = 0;  ///< of its extensions, by growth
  std::uint32_t end = 0;
  double ahead = 0;  ///< in a state: what the hop in front of its labels and the stages before the slice add at least
  std::int32_t target = kNone;  ///< in a state: the one that it leads to, once a label went there

  static constexpr std::int32_t kNone = -1;
};

/// All extensions of a position at a depth.
struct ExtensionLists {
  bool built = false;
  std::vector<Extension> extensions;
  std::vector<ExtensionGroup> groups;  ///< by growth
};

/// Made when they are first asked for.
class Extensions {
 public:
  Extensions(const LabelGround& ground, const CompletionBound& bound, const LabelQuery& query);

  /// Those that cannot stay below the cutoff even from the root are left out: along any chain the bound never shrinks.
  [[nodiscard]] const ExtensionLists& of(int left, int depth) {
    ExtensionLists& lists = lists_(left, depth);
    if (!lists.built) build(left, depth, lists);
    return lists;
  }

 private:
  struct GroupTerms {
    int depth;
    bool is_first_stage;
    double fixed;  // growth without the stage itself
    double slack;  // growth that is too much
  };

  void build(int left, int depth, ExtensionLists& lists);
  [[nodiscard]] bool is_allowed(int option) const {
    return query_.mixed || at(program_.options, option).uses.size() <= 1;
  }
  [[nodiscard]] std::span<const Candidate> plans_of(int option, int blocks, int left, int depth);
  void add_group(ExtensionLists& lists, ExtensionGroup group, std::span<const Candidate> frontier,
                 const GroupTerms& terms) const;
  void keep_best_groups(std::vector<ExtensionGroup>& groups) const;

  const Program& program_;
  Frontiers& frontiers_;
  const CompletionBound& bound_;
  const LabelQuery& query_;
  std::vector<Candidate> relaxed_;  // of the frontier that is being added
  Grid<ExtensionLists> lists_;      // by blocks left and depth
};

}  // namespace tangram::chain
