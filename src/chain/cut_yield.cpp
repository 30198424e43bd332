#include "tangram/chain/cut_yield.hpp"

namespace tangram::chain {

CutYield& CutYield::operator+=(const CutYield& other) {
  slices_by_capacity += other.slices_by_capacity;
  windows_by_bound += other.windows_by_bound;
  groups_by_units += other.groups_by_units;
  groups_by_spending += other.groups_by_spending;
  groups_by_remainder += other.groups_by_remainder;
  groups_by_packing += other.groups_by_packing;
  labels_by_time += other.labels_by_time;
  labels_by_bound += other.labels_by_bound;
  labels_by_remainder += other.labels_by_remainder;
  labels_by_dominance += other.labels_by_dominance;
  return *this;
}

}  // namespace tangram::chain
