// A chain of a program as the event-driven simulator runs it, which shares no code with the solver.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tangram/chain/program.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::tests {

[[nodiscard]] inline chain::Price hop_after(const chain::Program& program, const chain::Chain& chain, std::size_t s) {
  const auto key = [&](std::size_t stage) {
    return program.options[static_cast<std::size_t>(chain.stages[stage].option)].key;
  };
  return program.price(chain.stages[s].last, key(s), key(s + 1));
}

/// Iteration time, ns. Under zero bubble what memory holds beyond those in flight waits for its weight gradients.
[[nodiscard]] inline std::int64_t simulated(const chain::Program& program, const chain::Chain& chain,
                                            simulate::Transfers transfers = simulate::Transfers::kOverlapped) {
  simulate::Schedule schedule;
  simulate::SimPipeline& pipeline = schedule.pipelines.emplace_back();
  pipeline.microbatches = program.microbatches;
  pipeline.transfers = transfers;
  if (program.zero_bubble) pipeline.kind = simulate::ScheduleKind::kZeroBubble;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const chain::Candidate& plan = chain.stages[s].candidate;
    simulate::SimStage stage;
    stage.parts.push_back(
        {Nanoseconds(plan.F), Nanoseconds(plan.T - plan.F), Nanoseconds(plan.A - plan.T), Nanoseconds(plan.o)});
    stage.parts.back().weight_gradient = Nanoseconds(plan.W);
    const std::int64_t in_flight = std::min(chain.in_flight[s], program.microbatches);
    stage.warmup = in_flight - 1;
    if (program.zero_bubble) {
      stage.deferrable = std::max<std::int64_t>(0, std::min(plan.n_max, program.microbatches) - in_flight);
    }
    if (s + 1 < chain.stages.size()) {
      const chain::Price hop = hop_after(program, chain, s);
      stage.latency = Nanoseconds(hop.latency);
      stage.occupancy = Nanoseconds(hop.occupancy);
    }
    pipeline.stages.push_back(std::move(stage));
  }
  return simulate::simulate(schedule).iteration.value();
}

/// The same of several model chunks a stage: of n blocks the first n mod v chunks from behind have one more.
[[nodiscard]] inline std::int64_t simulated_interleaved(const chain::Program& program, const chain::Chain& chain) {
  simulate::Schedule schedule;
  simulate::SimPipeline& pipeline = schedule.pipelines.emplace_back();
  pipeline.kind = simulate::ScheduleKind::kInterleaved;
  pipeline.microbatches = program.microbatches / program.interleaving.chunks;
  pipeline.group = chain.group;
  if (program.interleaving.sends_block) pipeline.transfers = simulate::Transfers::kForwardBlocking;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const chain::Candidate& plan = chain.stages[s].candidate;
    simulate::SimPart part{{}, {}, Nanoseconds(plan.A - plan.T), Nanoseconds(plan.o)};
    const std::int64_t chunks = program.interleaving.chunks;
    const std::int64_t blocks = chain.stages[s].last - chain.stages[s].first;
    const auto work = [&](std::int64_t first, std::int64_t last) {
      if (program.work_before.empty()) return last - first;
      return program.work_before(chain.stages[s].option, last) - program.work_before(chain.stages[s].option, first);
    };
    std::int64_t first = chain.stages[s].first;
    const std::int64_t all = work(first, first + blocks);
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t last = first + blocks / chunks + (c >= chunks - blocks % chunks ? 1 : 0);
      const std::int64_t own = work(first, last);
      part.chunks.push_back(
          {Nanoseconds(plan.F * chunks * own / all), Nanoseconds((plan.T - plan.F) * chunks * own / all)});
      first = last;
    }
    simulate::SimStage stage;
    stage.parts.push_back(std::move(part));
    const bool is_last = s + 1 == chain.stages.size();
    const chain::Price hop = is_last ? chain::boundary_around(program, chain) : hop_after(program, chain, s);
    stage.latency = Nanoseconds(hop.latency);
    stage.occupancy = Nanoseconds(hop.occupancy);
    pipeline.stages.push_back(std::move(stage));
  }
  pipeline = simulate::with_classic_warmups(std::move(pipeline));
  return simulate::simulate(schedule).iteration.value();
}

}  // namespace tangram::tests
