#include "ledger.hpp"

#include <algorithm>

namespace tangram::disaggregate {

Ledger::Ledger(const Resources& resources)
    : resources_(&resources),
      placement_(resources.problem().kernels.size(), kNowhere),
      rows_(static_cast<std::size_t>(resources.rows()), 0),
      readers_(resources.problem().buffers.size(), resources.problem().classes.size(), 0) {}

Ledger::Ledger(const Resources& resources, const Placement& placement) : Ledger(resources) {
  for (int k = 0; k < static_cast<int>(placement.size()); ++k) put(k, at(placement, k));
}

void Ledger::put(int kernel, int on) {
  const int before = at(placement_, kernel);
  if (before == on) return;
  const auto read = [&](int change, int where) {
    if (where == kNowhere) return;
    for (const int u : resources_->buffers_of(kernel)) {
      if (at(resources_->problem().buffers, u).writer != kernel) readers_(u, where) += change;
    }
  };
  const auto run = [&](double sign, int where) {
    if (where == kNowhere) return;
    resources_->kernel(kernel, where, [&](int row, double amount) { at(rows_, row) += sign * amount; });
  };
  count_buffers(kernel, -1);
  run(-1, before);
  read(-1, before);
  at(placement_, kernel) = on;
  read(1, on);
  run(1, on);
  count_buffers(kernel, 1);
}

void Ledger::count_buffers(int kernel, double sign) {
  for (const int u : resources_->buffers_of(kernel)) count_buffer(u, sign);
  for (const int h : resources_->hops_of(kernel)) count_hop(at(resources_->hops(), h), sign);
}

void Ledger::count_buffer(int buffer, double sign) {
  const Buffer& of = at(resources_->problem().buffers, buffer);
  const auto add = [&](int row, double amount) { at(rows_, row) += sign * amount; };
  const int from = of.writer >= 0 ? at(placement_, of.writer) : kNowhere;
  if (of.writer >= 0 && from == kNowhere) return;
  for (int c = 0; c < readers_.columns(); ++c) {
    if (readers_(buffer, c) == 0 || c == from) continue;
    if (of.writer >= 0) {
      resources_->message(of, from, c, add);
    } else {
      resources_->resident(of, c, add);
    }
  }
}

void Ledger::count_hop(const Hop& hop, double sign) {
  const int from = at(placement_, hop.from);
  const int to = at(placement_, hop.to);
  if (from == kNowhere || to == kNowhere || from == to) return;
  resources_->hop(hop, from, to, [&](int row, double amount) { at(rows_, row) += sign * amount; });
}

double Ledger::period() const { return *std::max_element(rows_.begin(), rows_.begin() + resources_->memory_row(0)); }

double Ledger::overdraft() const {
  double sum = 0;
  for (auto row = rows_.begin() + resources_->memory_row(0); row != rows_.end(); ++row) sum += std::max(0.0, *row - 1);
  return sum;
}

double Ledger::priced(const std::vector<double>& prices) const {
  double sum = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) sum += prices[i] * rows_[i];
  return sum;
}

}  // namespace tangram::disaggregate
