// The last changes to the fastest plan: those that local_search.hpp makes to its chain, and settings beside its own.
#include <algorithm>
#include <set>
#include <utility>

#include "batch.hpp"
#include "tangram/chain/frontiers.hpp"
#include "tangram/chain/local_search.hpp"
#include "tangram/chain/timetable.hpp"

namespace tangram::compose {

namespace {

// Parts of a stage as they are in another setting of the level: GPUs and samples in proportion to those of a pipeline
// and of a microbatch there. Empty: there are no such shapes, or no whole samples.
class Conversion {
 public:
  Conversion(const Setting& from, const Setting& to, const std::vector<ClassShare>& shares)
      : from_(from), to_(to), shares_(shares) {}

  [[nodiscard]] std::vector<OptionPart> operator()(std::vector<OptionPart> parts) const {
    const bool all_can = std::ranges::all_of(parts, [&](OptionPart& part) { return convert(part); });
    return all_can ? std::move(parts) : std::vector<OptionPart>{};
  }

 private:
  bool convert(OptionPart& part) const {
    const ClassShare& share = at(shares_, part.placement.island_class);
    const std::int64_t samples = part.samples * to_.microbatch;
    const std::int64_t gpus = std::int64_t{part.placement.gpus} * from_.replicas;
    if (samples % from_.microbatch != 0 || gpus % to_.replicas != 0) return false;
    part.samples = static_cast<int>(samples / from_.microbatch);
    part.placement.gpus = static_cast<int>(gpus / to_.replicas);
    // A stage is with none where no member holds it together with the next ones.
    const int run = part.run * from_.replicas / to_.replicas;
    part.run = std::ranges::binary_search(share.runs, run) ? run : part.placement.gpus;
    return std::ranges::binary_search(share.shapes, part.placement.gpus);
  }

  const Setting& from_;
  const Setting& to_;
  const std::vector<ClassShare>& shares_;
};

bool same_parts(const std::vector<OptionPart>& a, const std::vector<OptionPart>& b) {
  return std::ranges::equal(a, b, [](const OptionPart& x, const OptionPart& y) {
    return x.placement.island_class == y.placement.island_class && x.placement.gpus == y.placement.gpus &&
           x.samples == y.samples && x.run == y.run;
  });
}

// Those near the chain's, and the short ones.
std::vector<int> lengths_near(const chain::Chain& chain, int segments, int reach, const ProgramTuning& tuning) {
  std::set<int> lengths;
  for (int length = 1; length <= std::min(tuning.short_slices, segments); ++length) lengths.insert(length);
  for (const chain::ChainStage& stage : chain.stages) {
    const int length = stage.last - stage.first;
    for (int near = length - reach; near <= length + reach; ++near) {
      if (near >= 1 && near <= segments) lengths.insert(near);
    }
  }
  return {lengths.begin(), lengths.end()};
}

}  // namespace

void BatchMaker::improve(PlacedChain& chain, std::int64_t effort) const {
  PricedProgram& priced = chain.candidate->priced;
  const chain::Refine refine = refine_of(priced, *chain.store);
  chain::Frontiers frontiers(priced.program, refine);
  chain.timed = chain::local_search(priced.program, frontiers, chain.timed.chain, chain::Changes::kAll, effort,
                                    options_.tuning.solver, options_.deadline);
}

// The chain with the options of another program and the fastest plans that hold what 1F1B asks for.
std::optional<chain::TimedChain> BatchMaker::fitted(const PlacedChain& chain, PlacedChain& into) const {
  const PricedProgram& from = chain.candidate->priced;
  PricedProgram& priced = into.candidate->priced;
  const chain::Program& program = priced.program;
  const Conversion converted(from.setting, priced.setting, into.candidate->shares);
  const chain::Refine refine = refine_of(priced, *into.store);
  chain::TimedChain result;
  result.chain.stages = chain.timed.chain.stages;
  const auto count = static_cast<std::int64_t>(result.chain.stages.size());
  for (std::int64_t s = 0; s < count; ++s) {
    chain::ChainStage& stage = result.chain.stages[static_cast<std::size_t>(s)];
    const auto parts = converted(at(from.parts, stage.option));
    const auto option = std::ranges::find_if(priced.parts, [&](const auto& other) { return same_parts(other, parts); });
    if (parts.empty() || option == priced.parts.end()) return std::nullopt;
    stage.option = static_cast<int>(option - priced.parts.begin());
    const std::int64_t depth = program.least_held(count - s);
    const auto plans = refine(stage.option, program.signature_of(stage.first, stage.last));
    const auto plan = std::ranges::find_if(plans, [&](const prune::Candidate& each) { return each.n_max >= depth; });
    if (plan == plans.end()) return std::nullopt;
    stage.candidate = *plan;
  }
  if (!chain::has_room(program, result.chain) || !chain::evaluate(program, result.chain)) return std::nullopt;
  result.time = chain::timetable(program, result.chain);
  return result;
}

PlacedChain BatchMaker::in_setting(const PlacedChain& chain, const Setting& setting, std::int64_t effort) const {
  PlacedChain other = among_own_shapes(chain, setting, options_.tuning.programs.boundary_reach);
  if (other.timed.time != kNoTime) improve(other, effort);
  return other;
}

PlacedChain BatchMaker::among_own_shapes(const PlacedChain& chain, const Setting& setting, int reach) const {
  const PricedProgram& from = chain.candidate->priced;
  PlacedChain other{std::make_shared<CandidateProgram>(), nullptr, {{}, kNoTime}};
  other.candidate->setting = setting;
  other.candidate->shares = shares_of(setting);
  const Conversion converted(from.setting, setting, other.candidate->shares);
  auto store = store_for({setting});
  std::vector<std::vector<OptionPart>>& options = other.candidate->options;
  std::vector<int> entries;
  for (const chain::ChainStage& stage : chain.timed.chain.stages) {
    auto parts = converted(at(from.parts, stage.option));
    if (parts.empty()) return other;
    if (std::ranges::any_of(options, [&](const auto& known) { return same_parts(known, parts); })) continue;
    for (OptionPart& part : parts) {
      const cluster::IslandClass& its_class = at(level_of(setting).classes, part.placement.island_class);
      part.entry = store->want(cluster::make_shape(its_class, part.placement.gpus), part.samples,
                               chain.timed.time / setting.microbatches);
      entries.push_back(part.entry);
    }
    options.push_back(std::move(parts));
  }
  std::ranges::sort(entries);
  entries.erase(std::ranges::unique(entries).begin(), entries.end());
  other.store = std::move(store);
  other.store->ask(entries, lengths_near(chain.timed.chain, signatures_.segments(), reach, options_.tuning.programs));
  if (options_.deadline.has_passed()) return other;
  other.candidate->priced =
      relaxed_program(model_, level_of(setting), other.candidate->shares, setting, options, signatures_, *other.store);
  follow(options_.constraints.semantics, other.candidate->priced.program);
  limit_spend(*other.candidate);
  auto start = fitted(chain, other);
  if (!start) return other;
  other.timed = std::move(*start);
  return other;
}

PlacedChain BatchMaker::among_all_shapes(const PlacedChain& chain, std::int64_t incumbent) const {
  Batch batch = prepare({chain.candidate->setting}, incumbent);
  PlacedChain other{nullptr, batch.store, {{}, kNoTime}};
  if (batch.candidates.empty()) return other;
  other.candidate = std::make_shared<CandidateProgram>(std::move(batch.candidates.front()));
  auto start = fitted(chain, other);
  if (!start) return other;
  other.timed = std::move(*start);
  return other;
}

}  // namespace tangram::compose
