#include "profile_units.hpp"

namespace tangram::cost {
namespace {

bool equal_dimensions(const model::BlockType& a, const model::BlockType& b) {
  return a.hidden == b.hidden && a.attention == b.attention && a.recurrence == b.recurrence &&
         a.feed_forward == b.feed_forward && a.norms == b.norms && a.norm_bias == b.norm_bias &&
         a.parallel_attention == b.parallel_attention;
}

bool is_of(const ProfileUnit& unit, const WantedUnit& wanted, const cluster::GpuType& device) {
  if (unit.kind != wanted.kind) return false;
  if (matrix_format(device, unit.dtype) != matrix_format(device, wanted.precision)) return false;
  if (unit.kind != ProfileKind::kBlock) return unit.vocabulary == wanted.vocabulary && unit.hidden == wanted.hidden;
  return unit.flash_attention == wanted.flash_attention && equal_dimensions(unit.block, *wanted.block);
}

}  // namespace

WantedUnit wanted_block(const model::BlockType& block, const model::Job& job) {
  const DType precision = block.wide ? wide_precision(job) : job.precision;
  return {ProfileKind::kBlock, &block, 0, 0, block.tokens, precision, job.flash_attention};
}

WantedUnit wanted_edge(ProfileKind kind, const model::Model& model) {
  return {kind, nullptr, model.vocabulary, model.hidden, model.job.sequence_length, model.job.precision, false};
}

std::vector<std::size_t> units_of(const Profile& profile, const WantedUnit& wanted, const cluster::GpuType& device) {
  std::vector<std::size_t> units;
  for (std::size_t u = 0; u < profile.units.size(); ++u) {
    if (is_of(profile.units[u], wanted, device)) units.push_back(u);
  }
  return units;
}

}  // namespace tangram::cost
