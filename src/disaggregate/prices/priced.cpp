#include "priced.hpp"

#include <cmath>
#include <cstdint>

namespace tangram::disaggregate {

PricedProblem::PricedProblem(const Resources& resources)
    : resources_(&resources),
      classes_(resources.problem().class_count()),
      kernel_(resources.problem().kernel_count(), classes_, 0.0) {
  const Problem& problem = resources.problem();
  std::vector<int> shared_of(problem.buffers.size(), -1);
  for (int u = 0; u < static_cast<int>(problem.buffers.size()); ++u) {
    const Buffer& buffer = at(problem.buffers, u);
    if (buffer.readers.empty()) continue;
    if (buffer.writer < 0 && buffer.readers.size() == 1) {
      alone_.push_back(u);
      continue;
    }
    at(shared_of, u) = static_cast<int>(shared_.size());
    shared_.push_back({buffer.writer, buffer.readers});
    buffer_of_.push_back(u);
    hop_of_.push_back(-1);
  }
  for (int h = 0; h < static_cast<int>(resources.hops().size()); ++h) {
    const Hop& hop = at(resources.hops(), h);
    const int with = at(shared_of, hop.buffer);
    if (at(shared_, with).readers.size() == 1) {
      at(hop_of_, with) = h;
      continue;
    }
    shared_.push_back({hop.from, {hop.to}});
    buffer_of_.push_back(-1);
    hop_of_.push_back(h);
  }
  cost_.assign(shared_.size(), classes_ * classes_, 0.0);
}

void PricedProblem::set_prices(const std::vector<double>& prices) {
  const Problem& problem = resources_->problem();
  double sum = 0;
  const auto add = [&](int row, double amount) { sum += at(prices, row) * amount; };
  for (int k = 0; k < kernels(); ++k) {
    for (int c = 0; c < classes_; ++c) {
      sum = 0;
      const bool runs = !std::isinf(at(at(problem.kernels, k).seconds, c));
      if (runs) resources_->kernel(k, c, add);
      kernel_(k, c) = runs ? sum : kNever;
    }
  }
  for (const int u : alone_) {
    const Buffer& buffer = at(problem.buffers, u);
    for (int c = 0; c < classes_; ++c) {
      sum = 0;
      resources_->resident(buffer, c, add);
      kernel_(buffer.readers.front(), c) += sum;
    }
  }
  for (int s = 0; s < static_cast<int>(shared_.size()); ++s) {
    const Buffer* buffer = at(buffer_of_, s) < 0 ? nullptr : &at(problem.buffers, at(buffer_of_, s));
    const bool has_writer = at(shared_, s).writer >= 0;
    for (int i = 0; i < (has_writer ? classes_ * classes_ : classes_); ++i) {
      sum = 0;
      if (!has_writer) {
        resources_->resident(*buffer, i, add);
      } else if (const int from = i / classes_, to = i % classes_; from != to) {
        if (buffer != nullptr) resources_->message(*buffer, from, to, add);
        if (at(hop_of_, s) >= 0) resources_->hop(at(resources_->hops(), at(hop_of_, s)), from, to, add);
      }
      cost_(s, i) = sum;
    }
  }
}

double PricedProblem::total(const Placement& placement) const {
  double sum = 0;
  for (int k = 0; k < kernels(); ++k) sum += kernel(k, at(placement, k));
  for (int s = 0; s < static_cast<int>(shared_.size()); ++s) sum += shared_total(s, placement);
  return sum;
}

double PricedProblem::shared_total(int shared, const Placement& placement) const {
  const SharedCost& who = at(shared_, shared);
  std::uint64_t charged = who.writer < 0 ? 0 : std::uint64_t{1} << at(placement, who.writer);
  double sum = 0;
  for (const int reader : who.readers) {
    const int on = at(placement, reader);
    if ((charged >> on & 1U) != 0) continue;
    charged |= std::uint64_t{1} << on;
    sum += who.writer < 0 ? cost(shared, on) : cost(shared, at(placement, who.writer), on);
  }
  return sum;
}

}  // namespace tangram::disaggregate
