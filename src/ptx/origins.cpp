#include "origins.hpp"

#include <algorithm>
#include <iterator>

namespace tangram::ptx {
namespace {

constexpr std::size_t kMostSums = 16;  // pointers that kernels choose among are fewer

}  // namespace

Origins Origins::number(bool data) {
  Origins origins;
  origins.sums_.emplace();
  origins.data_ = data;
  return origins;
}

Origins Origins::of(Base base, bool data) {
  Origins origins;
  origins.sums_.insert({base});
  origins.data_ = data;
  return origins;
}

bool Origins::join(const Origins& other) {
  const auto before = sums_;
  const bool data_before = data_;
  sums_.insert(other.sums_.begin(), other.sums_.end());
  data_ = data_ || other.data_;
  limit();
  return sums_ != before || data_ != data_before;
}

Origins Origins::sum(const Origins& a, const Origins& b) {
  Origins result;
  result.data_ = a.data_ || b.data_;
  for (const Sum& left : a.sums_) {
    for (const Sum& right : b.sums_) {
      Sum both;
      std::ranges::set_union(left, right, std::back_inserter(both));
      result.sums_.insert(std::move(both));
    }
  }
  result.limit();
  return result;
}

Origins Origins::scaled() const { return sums_.empty() ? Origins() : number(data_); }

/// Beyond the limit each origin counts alone: none is lost.
void Origins::limit() {
  if (sums_.size() <= kMostSums) return;
  std::set<Sum> alone;
  for (const Sum& sum : sums_) {
    if (sum.empty()) alone.emplace();
    for (const Base& base : sum) alone.insert({base});
  }
  sums_ = std::move(alone);
}

}  // namespace tangram::ptx
