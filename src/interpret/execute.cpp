#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/interpret/interpret.hpp"
#include "thread.hpp"
#include "trouble.hpp"
#include "warp.hpp"

namespace tangram::interpret {
namespace {

/// The threads of a block, in turn: each as far as it comes alone.
class Block {
 public:
  Block(BlockContext& context, std::int64_t threads) : context_(context), stops_(static_cast<std::size_t>(threads)) {
    for (std::int64_t i = 0; i < threads; ++i) threads_.push_back(std::make_unique<Thread>(context, i));
  }

  std::optional<Diagnostic> run() {
    while (true) {
      for (std::size_t i = 0; i < threads_.size(); ++i) {
        if (stops_[i]) continue;
        stops_[i] = threads_[i]->run();
        if (stops_[i] == Stop::kFault) return fault(*threads_[i]);
      }
      const auto exited = [](const auto& stop) { return stop == Stop::kExited; };
      if (std::ranges::all_of(stops_, exited)) return std::nullopt;
      if (!release_warps() && !release_barrier()) {
        return trouble(*context_.program.module, first_waiting().step().source->place, "deadlock",
                       "threads wait for others that never come: not all of them reach the same barrier or shuffle");
      }
    }
  }

 private:
  [[nodiscard]] Diagnostic fault(const Thread& thread) const {
    const ptx::Place place = thread.has_ended() ? ptx::Place{} : thread.step().source->place;
    return trouble(*context_.program.module, place, "fault", thread.fault());
  }

  [[nodiscard]] const Thread& first_waiting() const {
    const auto found = std::ranges::find_if(stops_, [](const auto& stop) { return stop != Stop::kExited; });
    return *threads_[static_cast<std::size_t>(found - stops_.begin())];
  }

  /// Groups of a warp that stand before the same step with all that they name.
  bool release_warps() {
    bool released = false;
    for (std::size_t first = 0; first < threads_.size(); first += kWarpThreads) {
      const std::size_t end = std::min(first + kWarpThreads, threads_.size());
      for (std::size_t i = first; i < end; ++i) {
        if (stops_[i] != Stop::kWarp) continue;
        std::vector<std::size_t> here;
        std::vector<Thread*> members;
        const Step* step = &threads_[i]->step();
        const Bits mask = member_mask(*threads_[i]);
        bool all = true;
        for (std::size_t j = first; j < end; ++j) {
          if ((mask >> (j - first) & 1) == 0 || stops_[j] == Stop::kExited) continue;
          if (stops_[j] == Stop::kWarp && &threads_[j]->step() == step) {
            here.push_back(j);
            members.push_back(threads_[j].get());
          } else if (step->op != Op::kActiveMask) {
            all = false;
          }
        }
        if (!all) continue;
        exchange(members);
        release(here);
        released = true;
      }
    }
    return released;
  }

  /// bar.sync id, or id and how many threads.
  bool release_barrier() {
    std::vector<std::size_t> here;
    std::size_t alive = 0;
    std::optional<Bits> barrier;
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (stops_[i] == Stop::kExited) continue;
      ++alive;
      if (stops_[i] != Stop::kBarrier) continue;
      const Step& step = threads_[i]->step();
      const Bits id = step.operands.empty() ? 0 : threads_[i]->read(step.operands[0]);
      if (!barrier) {
        barrier = id;
        if (step.operands.size() > 1) wanted = static_cast<std::size_t>(threads_[i]->read(step.operands[1]));
      }
      if (id == *barrier) here.push_back(i);
    }
    if (here.empty() || here.size() < (wanted > 0 ? std::min(wanted, alive) : alive)) return false;
    release(here);
    return true;
  }

  void release(const std::vector<std::size_t>& numbers) {
    for (const std::size_t i : numbers) {
      if (threads_[i]->fault().empty()) threads_[i]->go_on();
      stops_[i].reset();
    }
  }

  BlockContext& context_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::optional<Stop>> stops_;  ///< where each waits; nothing: it goes on
};

std::vector<std::uint64_t> place_variables(const ptx::Module& module, Memory& memory) {
  std::vector<std::uint64_t> addresses;
  for (const ptx::Variable& variable : module.variables) {
    const bool in_memory = variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst;
    addresses.push_back(in_memory ? memory.allocate(std::max<std::int64_t>(variable.bytes, 1)) : 0);
    if (in_memory) std::ranges::copy(variable.contents, memory.bytes(addresses.back()).begin());
  }
  return addresses;
}

Expected<std::vector<std::uint8_t>> place_arguments(const Program& program, const GridLaunch& launch) {
  const Routine& entry = program.routines.front();
  if (launch.arguments.size() != static_cast<std::size_t>(entry.source->parameters)) {
    return fail(trouble(*program.module, {}, "bad-launch",
                        fmt::format("{} has {} parameters, and the launch {} arguments", launch.entry,
                                    entry.source->parameters, launch.arguments.size())));
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(entry.parameter_bytes));
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const auto size = static_cast<std::size_t>(entry.source->variables[i].bytes);
    const std::size_t count = std::min(size, launch.arguments[i].size());
    std::copy_n(launch.arguments[i].begin(), count, bytes.begin() + entry.offsets[i]);
  }
  return bytes;
}

}  // namespace

Expected<void> execute(const ptx::Module& module, const GridLaunch& launch, Memory& memory) {
  constexpr std::int64_t kMostShared = std::int64_t{1} << 24;
  const auto program = load(module, launch.entry);
  if (!program) return fail(program.error());
  const auto arguments = place_arguments(*program, launch);
  if (!arguments) return fail(arguments.error());
  const std::int64_t shared = program->shared_bytes + launch.shared_bytes;
  if (shared > kMostShared) {
    return fail(
        trouble(module, {}, "bad-launch", fmt::format("{} bytes of shared memory are more than any GPU has", shared)));
  }
  const std::vector<std::uint64_t> variables = place_variables(module, memory);
  BlockContext context{*program, launch, memory, variables, *arguments, {}, {}, launch.most_steps};
  const std::int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  for (std::int64_t z = 0; z < launch.grid[2]; ++z) {
    for (std::int64_t y = 0; y < launch.grid[1]; ++y) {
      for (std::int64_t x = 0; x < launch.grid[0]; ++x) {
        context.block = {x, y, z};
        context.shared.assign(static_cast<std::size_t>(shared) + 16, 0);
        if (auto wrong = Block(context, threads).run()) return fail(*std::move(wrong));
      }
    }
  }
  return {};
}

}  // namespace tangram::interpret
