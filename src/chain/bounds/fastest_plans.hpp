// The fastest plans of a program by slice, depth and option: what its bounds look at. Goes in: a program. Comes out:
// lists of options by what they take, the cheapest hop of every cut, and the weights that covers are counted under.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "block_weights.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

inline constexpr double kNoCompletion = std::numeric_limits<double>::infinity();

/// What all windows of a program share: T_min of every signature, depth and option, and the cheapest hop of every cut.
/// An option that is no faster than another and takes no less of any class is left out: no prices make it the choice.
class FastestPlans {
 public:
  explicit FastestPlans(const Program& program, const SolverTuning& tuning = {});

  struct Entry {
    double T;
    double cost;  ///< T (zero bubble: the least T - W), or at least A + o in the lists of first slices
    int option;
    bool operator==(const Entry&) const = default;
  };
  [[nodiscard]] int depths() const { return depths_; }
  /// Entries of a list, ascending in T. Most depths of a signature share one list.
  [[nodiscard]] std::span<const Entry> list(std::size_t id) const {
    return std::span(entries_).subspan(begins_[id], begins_[id + 1] - begins_[id]);
  }
  [[nodiscard]] std::size_t lists() const { return begins_.size() - 1; }

  /// The lists of a signature, or of first slices that end at the same cut, by depth; each row is an option in all of
  /// them. For what looks at all entries again and again.
  struct Table {
    std::size_t first_list = 0;
    std::size_t lists = 0;
    std::vector<int> options;   ///< [row]
    std::vector<double> times;  ///< [row][list] T, ascending
    std::vector<double> costs;  ///< [row][list] kNoCompletion where the option is not in the list
  };
  [[nodiscard]] const std::vector<Table>& tables() const { return tables_; }
  /// List of the slice [0, last) where it is the first stage, at a depth from 1 on.
  [[nodiscard]] std::size_t first_list_at(int last, int depth) const { return first_list_of_(last, depth); }
  /// List of a signature at a depth from 1 on.
  [[nodiscard]] std::size_t list_at(int signature, int depth) const { return list_of_(signature, depth); }
  /// Blocks of the longest slice with the signature; 0: none has it.
  [[nodiscard]] int blocks_of(int signature) const { return at(blocks_of_, signature); }
  /// Signatures of the slices that end at a cut, those of one block first: in a row, unlike Program::signature.
  [[nodiscard]] std::span<const int> ending_at(int cut) const {
    const auto blocks = static_cast<std::size_t>(cut);
    return std::span(ending_at_).subspan(blocks * (blocks - 1) / 2, blocks);
  }
  [[nodiscard]] double round_trip(int cut) const { return at(round_trip_, cut); }
  /// No chain costs more, by the entries of the lists and the round trips.
  [[nodiscard]] double dearest() const { return dearest_; }
  /// Of the bounds that are made of the lists.
  [[nodiscard]] const SolverTuning& tuning() const { return tuning_; }
  /// Under which Capacity counts covers.
  [[nodiscard]] const std::vector<BlockWeights>& weights() const { return weights_; }

 private:
  void add_signature_lists(const Program& program, int signature);
  void add_first_lists(const Program& program, int last);
  void add_list(std::vector<Entry>& entries);
  void add_table(std::size_t first_list, std::size_t options);

  SolverTuning tuning_;
  int depths_ = 1;
  std::vector<Entry> entries_;
  std::vector<std::size_t> begins_{0};
  Grid<std::size_t> list_of_;        // by signature and depth
  Grid<std::size_t> first_list_of_;  // by last and depth
  std::vector<Table> tables_;
  std::vector<std::size_t> classes_of_;           // [option] that it takes units of
  std::vector<std::vector<char>> takes_no_more_;  // [option][other] of any class
  std::vector<int> blocks_of_;
  std::vector<int> ending_at_;
  std::vector<double> round_trip_;
  double dearest_ = 0;
  std::vector<BlockWeights> weights_;
};

}  // namespace tangram::chain
