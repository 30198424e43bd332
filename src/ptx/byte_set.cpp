#include <algorithm>

#include "footprint.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {
namespace {

bool is_in(const ByteSet& set, std::size_t repeats, std::int64_t offset) {
  if (repeats == 0) return offset >= 0 && offset < set.run;
  const Repeat& outer = set.repeats[repeats - 1];
  std::int64_t reach = set.run;  // of everything within
  for (std::size_t i = 0; i + 1 < repeats; ++i) reach += set.repeats[i].stride * (set.repeats[i].count - 1);
  if (offset < 0) return false;
  const std::int64_t last = std::min(offset / outer.stride, outer.count - 1);
  for (std::int64_t i = last; i >= 0; --i) {
    const std::int64_t rest = offset - i * outer.stride;
    if (rest >= reach) return false;
    if (is_in(set, repeats - 1, rest)) return true;
  }
  return false;
}

}  // namespace

std::int64_t ByteSet::end() const {
  std::int64_t last = first + run;
  for (const Repeat& repeat : repeats) last += repeat.stride * (repeat.count - 1);
  return last;
}

bool ByteSet::contains(std::int64_t byte) const { return is_in(*this, repeats.size(), byte - first); }

ByteSet normalized(std::int64_t first, std::int64_t run, std::vector<Repeat> repeats) {
  std::erase_if(repeats, [](const Repeat& repeat) { return repeat.count <= 1 || repeat.stride == 0; });
  for (Repeat& repeat : repeats) {
    if (repeat.stride > 0) continue;
    first += repeat.stride * (repeat.count - 1);
    repeat.stride = -repeat.stride;
  }
  std::ranges::sort(repeats);
  ByteSet set{first, run, {}};
  for (const Repeat& repeat : repeats) {
    if (set.repeats.empty() && repeat.stride <= set.run) {
      set.run += repeat.stride * (repeat.count - 1);
      continue;
    }
    if (!set.repeats.empty()) {  // the pieces of the one before, continued
      Repeat& before = set.repeats.back();
      if (repeat.stride % before.stride == 0 && repeat.stride <= before.stride * before.count) {
        before.count += repeat.stride / before.stride * (repeat.count - 1);
        continue;
      }
    }
    set.repeats.push_back(repeat);
  }
  return set;
}

}  // namespace tangram::ptx
