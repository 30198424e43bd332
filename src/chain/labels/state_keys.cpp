#include "state_keys.hpp"

#include <optional>
#include <utility>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

// Programs have no more units than have their place, see share_classes.
std::vector<Radix> radices_within(const std::vector<int>& inventory) {
  std::optional<std::vector<Radix>> radices = radices_of(inventory);
  TANGRAM_ASSERT(radices.has_value());
  return *std::move(radices);
}

}  // namespace

StateKeys::StateKeys(const Program& program)
    : program_(program),
      resources_(program.resources()),
      radices_(radices_within(program.inventory)),
      loads_(program) {}

StateKey StateKeys::after(const StateKey& key, int option) {
  StateKey next = key;
  next.load = loads_.after(key.load, option);
  for (const Use& use : at(program_.options, option).uses) {
    const Radix& r = at(radices_, use.island_class);
    (r.high ? next.high : next.low) += r.scale * static_cast<std::uint64_t>(use.units);
  }
  return next;
}

void StateKeys::find_left(const StateKey& key, std::vector<std::int64_t>& left) const {
  left = resources_;
  for (std::size_t k = 0; k < radices_.size(); ++k) {
    const Radix& r = radices_[k];
    const std::uint64_t word = r.high ? key.high : key.low;
    const auto used = static_cast<std::int64_t>(word / r.scale % r.radix);
    left[k] -= used;
    if (!program_.unit_spend.empty()) left.back() -= used * program_.unit_spend[k];
  }
}

}  // namespace tangram::chain
