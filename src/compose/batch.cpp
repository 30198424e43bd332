#include "batch.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "tangram/chain/relaxation.hpp"

namespace tangram::compose {

namespace {

std::vector<int> all_lengths(int segments) {
  std::vector<int> lengths(static_cast<std::size_t>(segments));
  std::iota(lengths.begin(), lengths.end(), 1);
  return lengths;
}

// Enough to say how fast the others can be at most, see FrontierStore.
std::vector<int> few_lengths(int segments, int dense) {
  std::vector<int> lengths;
  for (int length = 1; length <= segments; length += length < dense ? 1 : length) lengths.push_back(length);
  return lengths;
}

// A stage of time T makes an iteration of at least M T.
std::int64_t slowest_of_interest(const Setting& setting, std::int64_t incumbent) {
  return incumbent / setting.microbatches;
}

void add_entries(const std::vector<std::vector<OptionPart>>& options, std::vector<int>& entries) {
  for (const auto& parts : options) {
    for (const OptionPart& part : parts) entries.push_back(part.entry);
  }
}

std::vector<int> distinct(std::vector<int> entries) {
  std::ranges::sort(entries);
  const auto rest = std::ranges::unique(entries);
  entries.erase(rest.begin(), rest.end());
  return entries;
}

// Of programs or groups of options.
template <class Owners>
std::vector<int> entries_of(const Owners& owners) {
  std::vector<int> entries;
  for (const auto& owner : owners) add_entries(owner.options, entries);
  return distinct(std::move(entries));
}

// [entry][signature] whether a program has a relaxed frontier of it.
std::vector<std::vector<char>> wanted_by(const std::vector<CandidateProgram>& candidates, const FrontierStore& store) {
  std::vector<std::vector<char>> wanted(store.size());
  for (const CandidateProgram& candidate : candidates) {
    const chain::Program& program = candidate.priced.program;
    for (std::size_t option = 0; option < candidate.options.size(); ++option) {
      for (const OptionPart& part : candidate.options[option]) {
        std::vector<char>& own = wanted[static_cast<std::size_t>(part.entry)];
        own.resize(static_cast<std::size_t>(program.signatures), 0);
        for (int signature = 0; signature < program.signatures; ++signature) {
          if (!program.frontier(static_cast<int>(option), signature).empty())
            own[static_cast<std::size_t>(signature)] = 1;
        }
      }
    }
  }
  return wanted;
}

// Whether one of the options holds any block.
bool holds_any(const std::vector<std::vector<OptionPart>>& options, const HeldBlocks& held) {
  return std::ranges::any_of(options, [&](const std::vector<OptionPart>& parts) {
    return std::ranges::all_of(parts, [&](const OptionPart& part) { return held(part.entry, 1) > 0; });
  });
}

void cut_by(chain::Relaxation& relaxation, CandidateProgram& candidate, std::int64_t incumbent,
            const ProgramTuning& tuning) {
  candidate.compared_with = incumbent;
  candidate.cut = tuning.root_bound && relaxation.root_bound(incumbent) >= incumbent;
}

bool holds_any(const chain::Program& program) {
  return std::ranges::any_of(program.frontiers, [](const auto& frontier) { return !frontier.empty(); });
}

void add_candidates(std::span<const OptionGroup> groups, Batch& batch) {
  for (const OptionGroup& group : groups) {
    for (const Setting& setting : group.settings) {
      batch.candidates.push_back({setting, group.shares, group.options, {}, {}});
    }
  }
}

void keep_largest(std::vector<ClassShare>& shares, int shapes) {
  for (ClassShare& share : shares) {
    const std::ptrdiff_t excess = std::ssize(share.shapes) - shapes;
    if (excess > 0) share.shapes.erase(share.shapes.begin(), share.shapes.begin() + excess);
  }
}

}  // namespace

bool are_modelled(std::span<const parallelizer::Parallelizer* const> parallelizers) {
  return std::ranges::all_of(parallelizers, [](const parallelizer::Parallelizer* p) { return p->info().modelled; });
}

BatchMaker::BatchMaker(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                       std::span<const parallelizer::Parallelizer* const> parallelizers, const SearchOptions& options,
                       const SignatureTable& signatures)
    : model_(model),
      hierarchy_(hierarchy),
      parallelizers_(parallelizers),
      options_(options),
      signatures_(signatures),
      shares_(hierarchy, options.constraints.gpu_types) {}

const cluster::IslandLevel& BatchMaker::level_of(const Setting& setting) const {
  return hierarchy_.levels[static_cast<std::size_t>(setting.level)];
}

std::unique_ptr<FrontierStore> BatchMaker::store_for(const std::vector<Setting>& settings) const {
  std::int64_t most = 1;
  for (const Setting& setting : settings) most = std::max(most, setting.microbatches);
  const std::int64_t in_flight = std::min(most, std::int64_t{2} * model_.block_count());
  const StoreLimits limits{in_flight,
                           model_.job.allow,
                           options_.constraints.demands,
                           options_.profiles,
                           options_.tuning.programs.blocks_per_round,
                           options_.deadline,
                           options_.constraints.put_off};
  return std::make_unique<FrontierStore>(model_, signatures_, parallelizers_, limits);
}

// No shape costs more than a pipeline may spend, and all are of the degrees that are demanded.
std::vector<ClassShare> BatchMaker::shares_of(const Setting& setting) const {
  const cluster::IslandLevel& level = level_of(setting);
  std::vector<ClassShare> shares = shares_.at(setting.level, setting.replicas, setting.reach);
  if (options_.spend) cut_spending(level, setting.replicas, shares);
  if (options_.constraints.demands.degrees) keep_demanded(setting.microbatch, shares);
  return shares;
}

void BatchMaker::keep_demanded(std::int64_t microbatch, std::vector<ClassShare>& shares) const {
  const int demanded = options_.constraints.demands.degrees->gpus();
  const bool suits = suits_degrees(microbatch);
  for (ClassShare& share : shares) {
    std::erase_if(share.shapes, [&](int gpus) { return !suits || gpus != demanded; });
  }
}

bool BatchMaker::suits_degrees(std::int64_t microbatch) const {
  const parallelizer::Demands& demands = options_.constraints.demands;
  return !demands.degrees || !demands.equal_samples || microbatch % demands.degrees->dp == 0;
}

void BatchMaker::cut_spending(const cluster::IslandLevel& level, int replicas, std::vector<ClassShare>& shares) const {
  const std::int64_t most = options_.spend->most / replicas;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    const std::int64_t affordable = most / std::max<std::int64_t>(1, spend_of_gpu(level.classes[k]));
    std::erase_if(shares[k].shapes, [&](int gpus) { return gpus > affordable; });
    shares[k].units = static_cast<int>(std::min<std::int64_t>(shares[k].units, affordable / shares[k].unit));
  }
}

std::int64_t BatchMaker::spend_of_gpu(const cluster::IslandClass& island_class) const {
  return options_.spend->currency == Currency::kGpus ? 1 : price_of(island_class).value();
}

Batch BatchMaker::prepare(const std::vector<Setting>& settings, std::int64_t incumbent) const {
  Batch batch;
  batch.settings = settings;
  batch.store = store_for(settings);
  std::vector<OptionGroup> groups = groups_of(settings, incumbent, *batch.store);
  ask_first(entries_of(groups), incumbent, *batch.store);
  add_mixed(incumbent, groups, *batch.store);
  drop_by_time(incumbent, groups, batch);
  if (may_drop(incumbent)) {
    batch.store->ask(entries_of(groups), few_lengths(signatures_.segments(), options_.tuning.programs.dense_slices));
    if (give_up_if_late(batch)) return batch;
    drop_by_slices(incumbent, groups, batch);
    batch.screened = may_screen(incumbent);
    add_candidates(groups, batch);
    relax_programs(batch, incumbent);
    if (give_up_if_late(batch)) return batch;
    batch.store->ask(entries_of(batch.candidates), all_lengths(signatures_.segments()),
                     wanted_by(batch.candidates, *batch.store));
  } else {
    add_candidates(groups, batch);
  }
  if (give_up_if_late(batch)) return batch;
  relax_programs(batch, incumbent);
  give_up_if_late(batch);
  return batch;
}

Batch BatchMaker::screened_before(const std::vector<Setting>& settings) const {
  Batch batch;
  batch.settings = settings;
  batch.store = store_for(settings);
  batch.cut = settings;
  return batch;
}

Batch BatchMaker::first_look(const Setting& setting, std::int64_t time, std::int64_t incumbent) const {
  Batch batch;
  batch.settings = {setting};
  batch.store = store_for(batch.settings);
  OptionGroup group{{setting}, shares_of(setting), {}};
  keep_largest(group.shares, options_.tuning.programs.first_look_shapes);
  add_options(group, slowest_of_interest(setting, time), *batch.store);
  ask_first(entries_of(std::span(&group, 1)), incumbent, *batch.store);
  std::vector<OptionGroup> groups{std::move(group)};
  drop_by_time(incumbent, groups, batch);
  add_candidates(groups, batch);
  batch.store->ask(entries_of(batch.candidates), all_lengths(signatures_.segments()));
  if (give_up_if_late(batch)) return batch;
  relax_programs(batch, incumbent);
  give_up_if_late(batch);
  return batch;
}

// Of a batch, all of one microbatch size. Those without a shape to run on are left out.
std::vector<OptionGroup> BatchMaker::groups_of(const std::vector<Setting>& settings, std::int64_t incumbent,
                                               FrontierStore& store) const {
  std::vector<OptionGroup> groups;
  for (const Setting& setting : settings) {
    if (groups.empty() || !groups.back().settings.front().is_alike(setting)) {
      groups.push_back({{setting}, shares_of(setting), {}});
      add_options(groups.back(), slowest_of_interest(setting, incumbent), store);
    } else {
      groups.back().settings.push_back(setting);
    }
  }
  std::erase_if(groups, [](const OptionGroup& group) { return group.options.empty(); });
  return groups;
}

void BatchMaker::add_options(OptionGroup& group, std::int64_t slowest, FrontierStore& store) const {
  const Setting& setting = group.settings.front();
  group.options = single_options(level_of(setting), group.shares, setting.microbatch, slowest, store);
}

// Their samples are split by the times of single segments.
void BatchMaker::add_mixed(std::int64_t incumbent, std::vector<OptionGroup>& groups, FrontierStore& store) const {
  const std::size_t pairs = mixed_pairs(model_.job, hierarchy_, options_);
  if (pairs == 0) return;
  std::vector<int> entries;
  for (OptionGroup& group : groups) {
    const Setting& setting = group.settings.front();
    const std::int64_t slowest = slowest_of_interest(setting, incumbent);
    const auto mixed = mixed_options(level_of(setting), group.options, setting.microbatch, slowest, store, pairs);
    add_entries(mixed, entries);
    group.options.insert(group.options.end(), mixed.begin(), mixed.end());
  }
  ask_first(distinct(std::move(entries)), incumbent, store);
}

// Single segments, which say what programs are too slow, where longer slices take no less than theirs; all else.
void BatchMaker::ask_first(std::span<const int> entries, std::int64_t incumbent, FrontierStore& store) const {
  if (may_drop(incumbent)) return store.ask_segments(entries);
  store.ask(entries, all_lengths(signatures_.segments()));
}

bool BatchMaker::may_screen(std::int64_t incumbent) const {
  return may_drop(incumbent) && options_.tuning.programs.screening;
}

bool BatchMaker::is_too_small(const OptionGroup& group, int segments, const HeldBlocks& held) const {
  constexpr double kExact = 1e-6;
  return most_blocks(group.shares, group.options, signatures_.segments(), held) < segments - kExact;
}

// Stages that are as fast as plans of interest need them to be can not hold all segments. The first one and the last
// may be of other types than the others.
void BatchMaker::drop_by_time(std::int64_t incumbent, std::vector<OptionGroup>& groups, Batch& batch) const {
  if (!may_screen(incumbent)) return;
  const FrontierStore& store = *batch.store;
  std::erase_if(groups, [&](const OptionGroup& group) {
    // Of most chunks stages may be slowest.
    const Setting& most = *std::ranges::max_element(group.settings, {}, &Setting::chunks);
    if (!is_too_slow(group, most.chunks, incumbent, store)) return false;
    const auto later = later_chunks(most);
    batch.chunked_left |= later && !is_too_slow(group, later->most, incumbent, store);
    batch.cut.insert(batch.cut.end(), group.settings.begin(), group.settings.end());
    batch.some_slice_fits |= holds_any(group.options, [&](int entry, int) { return store.at(entry).one_segment; });
    return true;
  });
}

bool BatchMaker::is_too_slow(const OptionGroup& group, int chunks, std::int64_t incumbent,
                             const FrontierStore& store) const {
  const std::int64_t slowest = slowest_in(group, group.settings.front().microbatches, chunks, incumbent, store);
  const auto held = [&](int entry, int) { return blocks_by_time(store.at(entry).one_segment, slowest); };
  return is_too_small(group, signatures_.segments() - 2, held);
}

// Nor can the longest slices, which count with their memory.
void BatchMaker::drop_by_slices(std::int64_t incumbent, std::vector<OptionGroup>& groups, Batch& batch) const {
  if (!may_screen(incumbent)) return;
  for (OptionGroup& group : groups) {
    batch.some_slice_fits = batch.some_slice_fits || holds_any(group.options, [&](int entry, int) {
                              return SliceLengths(batch.store->at(entry), signatures_, INT64_MAX, 1).longest(1);
                            });
    std::erase_if(group.settings, [&](const Setting& setting) {
      const auto later = batch.chunked_left ? std::nullopt : later_chunks(setting);
      batch.chunked_left |= later && !is_too_small(setting, group, *later, incumbent, *batch.store);
      if (!is_too_small(setting, group, {setting.chunks, setting.chunks}, incumbent, *batch.store)) return false;
      batch.cut.push_back(setting);
      return true;
    });
  }
  std::erase_if(groups, [](const OptionGroup& group) { return group.settings.empty(); });
}

// That the setting may have in the case that comes later; nullopt: none.
std::optional<ChunkRange> BatchMaker::later_chunks(const Setting& setting) const {
  std::optional<ChunkRange> range;
  for (const int chunks : options_.constraints.later_chunks) {
    if (!can_have_chunks(model_, setting.microbatches, chunks)) continue;
    range =
        range ? ChunkRange{std::min(range->least, chunks), std::max(range->most, chunks)} : ChunkRange{chunks, chunks};
  }
  return range;
}

// Of the latency only what blocks between the ends take counts, and nothing where weight gradients are put off.
std::int64_t BatchMaker::slowest_in(const OptionGroup& group, std::int64_t microbatches, int chunks,
                                    std::int64_t incumbent, const FrontierStore& store) const {
  double fastest = 0;
  for (const auto& parts : group.options) {
    for (const OptionPart& part : parts) {
      const double block = store.at(part.entry).one_segment;
      if (block > 0 && (fastest == 0 || block < fastest)) fastest = block;
    }
  }
  const std::int64_t latency = store.may_put_off() ? 0 : least_time(fastest, signatures_.segments() - 2);
  return slowest_stage(incumbent - 1, latency, microbatches, chunks);
}

// With any of so many chunks: with most of them stages may be slowest and have least in flight, and with fewest of them
// most slices are stages.
bool BatchMaker::is_too_small(const Setting& setting, const OptionGroup& group, ChunkRange chunks,
                              std::int64_t incumbent, const FrontierStore& store) const {
  const std::int64_t slowest = slowest_in(group, setting.microbatches, chunks.most, incumbent, store);
  std::map<int, SliceLengths> lengths;
  const auto lengths_of = [&](int entry) -> const SliceLengths& {
    return lengths.try_emplace(entry, store.at(entry), signatures_, slowest, chunks.least).first->second;
  };
  const auto in_flight = [&](int depth) { return least_in_flight(depth, setting.microbatches, chunks.most); };
  return is_too_small(group, signatures_.segments(),
                      [&](int entry, int depth) { return lengths_of(entry).longest(in_flight(depth)); }) ||
         is_too_small(group, signatures_.alike(),
                      [&](int entry, int depth) { return lengths_of(entry).longest_alike(in_flight(depth)); });
}

bool BatchMaker::give_up_if_late(Batch& batch) const {
  if (!options_.deadline.has_passed()) return false;
  batch.late = true;
  batch.candidates.clear();
  batch.cut.clear();
  return true;
}

// Slices of few lengths say which programs can hold a plan of interest.
bool BatchMaker::may_drop(std::int64_t incumbent) const {
  return options_.tuning.programs.staircases && incumbent != INT64_MAX && are_modelled(parallelizers_) &&
         parallelizer::are_inherited(options_.constraints.demands);
}

// Leaves those whose relaxation is better than the incumbent, without what none of their plans within reach can use.
void BatchMaker::relax_programs(Batch& batch, std::int64_t incumbent) const {
  std::vector<CandidateProgram>& candidates = batch.candidates;
  tbb::parallel_for(std::size_t{0}, candidates.size(), [&](std::size_t i) {
    if (options_.deadline.has_passed()) return;  // the batch is given up
    CandidateProgram& candidate = candidates[i];
    candidate.priced = relaxed_program(model_, level_of(candidate.setting), candidate.shares, candidate.setting,
                                       candidate.options, signatures_, *batch.store);
    follow(options_.constraints.semantics, candidate.priced.program);
    limit_spend(candidate);
    candidate.some_slice_fits = holds_any(candidate.priced.program);
    relax(candidate, incumbent);
  });
  for (const CandidateProgram& candidate : candidates) {
    batch.some_slice_fits |= candidate.some_slice_fits;
    if (candidate.cut) batch.cut.push_back(candidate.setting);
  }
  std::erase_if(candidates, [](const CandidateProgram& candidate) { return candidate.cut; });
}

void BatchMaker::relax(CandidateProgram& candidate, std::int64_t incumbent) const {
  chain::Program& program = candidate.priced.program;
  chain::Relaxation relaxation(program, options_.tuning.solver);
  cut_by(relaxation, candidate, incumbent, options_.tuning.programs);
  if (!candidate.cut) candidate.slices_cut += relaxation.presolve(within_reach(incumbent), program);
}

// Every pipeline may spend an equal share.
void BatchMaker::limit_spend(CandidateProgram& candidate) const {
  if (!options_.spend) return;
  chain::Program& program = candidate.priced.program;
  const std::vector<cluster::IslandClass>& classes = level_of(candidate.setting).classes;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    program.unit_spend.push_back(candidate.shares[k].unit * spend_of_gpu(classes[k]));
  }
  program.most_spend = options_.spend->most / candidate.setting.replicas;
}

// Timetables are looked at of plans a little slower by closed form than any of interest.
std::int64_t BatchMaker::within_reach(std::int64_t incumbent) const {
  if (incumbent == INT64_MAX || !options_.timed) return incumbent;
  return incumbent + static_cast<std::int64_t>(options_.tuning.solver.timetable_reach * static_cast<double>(incumbent));
}

chain::Refine BatchMaker::refine_of(PricedProgram& priced, const FrontierStore& store) const {
  return [this, &priced, &store](int option, int signature) {
    return price_frontier(priced, option, signature, model_, level_of(priced.setting), signatures_, store);
  };
}

void BatchMaker::solve(CandidateProgram& candidate, const FrontierStore& store, const Goal& goal) const {
  PricedProgram& priced = candidate.priced;
  if (goal.incumbent < candidate.compared_with) {  // which was found since
    chain::Relaxation relaxation(priced.program, options_.tuning.solver);
    cut_by(relaxation, candidate, goal.incumbent, options_.tuning.programs);
  }
  if (candidate.cut) return;
  chain::ProgramLimits limits;
  limits.incumbent = goal.incumbent;
  limits.accepted_gap = goal.accepted_gap;
  limits.label_budget = goal.labels;
  limits.deadline = options_.deadline;
  limits.keep = options_.top;
  limits.timed = options_.timed;
  limits.timed_incumbent = goal.timed_incumbent;
  limits.only_timetables = goal.only_timetables;
  limits.refine = refine_of(priced, store);
  limits.tuning = options_.tuning.solver;
  candidate.solved = chain::solve(priced.program, limits);
}

Composition BatchMaker::composition_of(const CandidateProgram& candidate, const FrontierStore& store,
                                       const chain::Chain& chain) const {
  return to_composition(model_, level_of(candidate.setting), candidate.priced, signatures_, store, chain);
}

}  // namespace tangram::compose
