#include "groups.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "../ledger.hpp"
#include "../prices/master.hpp"
#include "tangram/base/assert.hpp"

namespace tangram::disaggregate {

namespace {

bool by_phase(ArmKind kind) {
  return kind == ArmKind::kPhases || kind == ArmKind::kPhasesShared || kind == ArmKind::kPhaseBlocks ||
         kind == ArmKind::kPhaseBlocksShared;
}
bool by_block(ArmKind kind) {
  return kind == ArmKind::kBlocks || kind == ArmKind::kBlocksShared || kind == ArmKind::kPhaseBlocks ||
         kind == ArmKind::kPhaseBlocksShared;
}

// Bytes of weights that any of the placements keeps on a class, and of caches by their shares; messages alive of the
// placement with most of them.
std::vector<double> memory_of(const Problem& problem, const std::vector<Share>& placements) {
  std::vector<double> memory(problem.classes.size(), 0);
  for (int c = 0; c < problem.class_count(); ++c) {
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.kind == BufferKind::kMessage) continue;
      double share = 0;
      for (const Share& part : placements) {
        const auto is_here = [&](int reader) { return at(part.placement, reader) == c; };
        if (std::ranges::any_of(buffer.readers, is_here)) share += part.share;
      }
      if (share > 0 && buffer.kind == BufferKind::kWeight) share = 1;
      at(memory, c) += share * resident_bytes(problem, buffer, c);
    }
  }
  for (int f = 0; f < static_cast<int>(problem.phases.size()); ++f) {
    std::vector<double> most(problem.classes.size(), 0);
    for (const Share& part : placements) {
      const std::vector<double> live = live_messages(problem, part.placement, f);
      for (std::size_t c = 0; c < most.size(); ++c) most[c] = std::max(most[c], live[c]);
    }
    for (std::size_t c = 0; c < most.size(); ++c) {
      memory[c] += most[c] * micro_batches_on(problem.classes[c], at(problem.phases, f));
    }
  }
  return memory;
}

bool fits(const Problem& problem, const std::vector<double>& memory) {
  for (std::size_t c = 0; c < memory.size(); ++c) {
    if (memory[c] > problem.classes[c].memory) return false;
  }
  return true;
}

}  // namespace

Groups groups_of(const Problem& problem, ArmKind kind) {
  TANGRAM_ASSERT(by_phase(kind) || by_block(kind));
  Groups groups;
  std::map<std::pair<int, Block>, int> numbers;
  for (const Kernel& kernel : problem.kernels) {
    const std::pair key(by_phase(kind) ? kernel.phase : 0, by_block(kind) ? kernel.block : Block::kOther);
    const int number = numbers.try_emplace(key, static_cast<int>(numbers.size())).first->second;
    groups.of.push_back(number);
  }
  groups.count = static_cast<int>(numbers.size());
  return groups;
}

std::vector<Placement> group_placements(const Problem& problem, const Groups& groups) {
  std::vector<Placement> found;
  const Resources resources(problem);
  Placement on(static_cast<std::size_t>(groups.count), 0);  // by group
  do {
    Placement placement;
    bool runs = true;
    for (int k = 0; k < problem.kernel_count(); ++k) {
      placement.push_back(at(on, at(groups.of, k)));
      runs = runs && !std::isinf(at(at(problem.kernels, k).seconds, placement.back()));
    }
    constexpr double kRounding = 1e-12;
    if (runs && Ledger(resources, placement).overdraft() <= kRounding) found.push_back(std::move(placement));
  } while (next_placement(on, problem.class_count()));
  return found;
}

bool GroupPlan::improve(const Problem& problem, Placement placement) {
  Usage usage = usage_of(problem, placement);
  if (!usage.fits || usage.period >= period) return false;
  placements = {{1, std::move(placement)}};
  period = usage.period;
  memory = std::move(usage.memory);
  return true;
}

GroupPlan place_groups(const Problem& problem, const Groups& groups) {
  GroupPlan best;
  for (Placement& placement : group_placements(problem, groups)) best.improve(problem, std::move(placement));
  best.bound = best.period;
  return best;
}

GroupPlan share_groups(const Problem& problem, const Groups& groups) {
  const Resources resources(problem);
  const std::vector<Placement> placements = group_placements(problem, groups);
  std::vector<std::vector<double>> rows;
  double unit = 0;  // seconds that are about a period
  for (const Placement& placement : placements) {
    const Ledger ledger(resources, placement);
    rows.push_back(ledger.rows());
    unit = unit == 0 ? ledger.period() : std::min(unit, ledger.period());
  }
  if (placements.empty() || unit == 0) return place_groups(problem, groups);
  Master master(resources.rows(), resources.memory_row(0));
  for (std::vector<double>& of : rows) {
    for (int i = 0; i < resources.memory_row(0); ++i) at(of, i) /= unit;
    master.add(std::move(of));
  }
  const MasterSolution mixed = master.solve();
  GroupPlan plan;
  for (std::size_t j = 0; j < placements.size(); ++j) {
    if (mixed.shares[j] > 1e-9) plan.placements.push_back({mixed.shares[j], placements[j]});
  }
  plan.period = plan.bound = period_of(problem, plan.placements);
  plan.memory = memory_of(problem, plan.placements);
  if (plan.placements.empty() || !fits(problem, plan.memory)) return place_groups(problem, groups);
  return plan;
}

double period_of(const Problem& problem, const std::vector<Share>& placements) {
  if (placements.empty()) return kNever;
  if (placements.size() == 1) return usage_of(problem, placements.front().placement).period;
  const Resources resources(problem);
  std::vector<double> rows(static_cast<std::size_t>(resources.memory_row(0)), 0);
  for (const Share& part : placements) {
    const std::vector<double> of_part = Ledger(resources, part.placement).rows();
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] += part.share * of_part[i];
  }
  return *std::ranges::max_element(rows);
}

}  // namespace tangram::disaggregate
