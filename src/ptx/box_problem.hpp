// An affine offset over a box of symbols with linear constraints. Goes in: the offset, and which threads compute it.
// Comes out: its values as sets of bytes.
#pragma once

#include <map>
#include <vector>

#include "footprint.hpp"

namespace tangram::ptx {

/// A constraint sum <= bound, or sum == bound, over some symbols.
struct Limit {
  Form form;  ///< at most zero
  bool is_equality = false;
};

/// Solved by steps each of which makes it simpler (README.md, "Bytes").
class BoxProblem {
 public:
  BoxProblem(const Form& offset, const Symbols& symbols) : offset_(offset), symbols_(symbols) {}

  Footprint solve(std::int64_t width, const Domain& domain);

 private:
  void add_reason(const Reason& why);
  void take_constraints(const Domain& domain);
  void unfold_splits();
  void unfold(const Split& split);
  [[nodiscard]] static Form unfolded(const Form& form, const Split& split);
  void find_symbols();
  void check_independence();
  void separate(std::int64_t width, Footprint& out, int depth);
  [[nodiscard]] Range range(const Form& form) const;
  [[nodiscard]] bool tighten();
  [[nodiscard]] bool tighten(const Limit& limit);
  bool fix_equalities();
  bool fold(std::size_t number);
  bool cut_at(const Limit& limit, std::int64_t width, Footprint& out, int depth);
  void drop_implied();
  void project();
  [[nodiscard]] bool touches_offset(const Limit& limit) const;
  void emit(std::int64_t width, Footprint& out) const;

  Form offset_;
  const Symbols& symbols_;
  std::vector<Limit> limits_;
  std::map<int, Range> box_;
  std::vector<Reason> reasons_;  ///< why the bytes are not exact
};

}  // namespace tangram::ptx
