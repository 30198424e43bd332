#include "pricing.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "staircases.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::compose {

namespace {

std::vector<Placement> placements_of(const std::vector<OptionPart>& parts) {
  std::vector<Placement> placements;
  placements.reserve(parts.size());
  for (const OptionPart& part : parts) placements.push_back(part.placement);
  return placements;
}

// What passes of one of v chunks make of the numbers of a stage.
class Passes {
 public:
  explicit Passes(int chunks) : chunks_(chunks) {}

  [[nodiscard]] std::int64_t time(std::int64_t of_stage) const { return (of_stage + chunks_ - 1) / chunks_; }
  [[nodiscard]] std::int64_t held(std::int64_t microbatches) const {
    return microbatches > INT64_MAX / chunks_ ? INT64_MAX : microbatches * chunks_;
  }
  [[nodiscard]] std::vector<prune::Candidate> steps(std::vector<prune::Candidate> of_stage) const {
    if (chunks_ == 1) return of_stage;
    for (prune::Candidate& step : of_stage) {
      step.T = step.A = time(step.T);
      step.n_max = held(step.n_max);
    }
    return staircase(std::move(of_stage));
  }

 private:
  std::int64_t chunks_;
};

prune::Candidate to_candidate(const StoredPlan& plan, Nanoseconds crossing, int source, Passes passes) {
  const Nanoseconds exposed = cost::exposed_sync(plan.cost.gradient_sync + crossing, plan.cost.backward);
  prune::Candidate candidate;
  candidate.T = passes.time((plan.cost.forward + plan.cost.backward).value());
  candidate.F = passes.time(plan.cost.forward.value());
  candidate.A = candidate.T + exposed.value();
  candidate.o = plan.cost.optimizer_step.value();
  candidate.n_max = passes.held(plan.n_max);
  candidate.source = source;
  return candidate;
}

// With whole backward passes, and without what may be put off of them.
std::vector<prune::Candidate> priced(const std::vector<StoredPlan>& plans, Nanoseconds crossing, Passes passes) {
  std::vector<prune::Candidate> candidates;
  candidates.reserve(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    candidates.push_back(to_candidate(plans[i], crossing, static_cast<int>(i), passes));
    if (plans[i].weight_gradient == Nanoseconds(0) || plans[i].n_max_of_put_off == 0) continue;
    candidates.push_back(candidates.back());
    candidates.back().W = plans[i].weight_gradient.value();
    candidates.back().n_max = plans[i].n_max_of_put_off;
  }
  return prune::pareto(candidates);
}

struct Frontier {
  std::vector<prune::Candidate> candidates;
  std::vector<std::array<int, 2>> sources;
};

Frontier single_frontier(const std::vector<StoredPlan>& plans, Nanoseconds crossing, Passes passes) {
  Frontier result;
  result.candidates = priced(plans, crossing, passes);
  for (prune::Candidate& candidate : result.candidates) {
    const int plan = candidate.source;
    candidate.source = static_cast<int>(result.sources.size());
    result.sources.push_back({plan, -1});
  }
  return result;
}

// Both parts work on the same slice at once: the stage is as slow as the slower one and holds what both can hold. Both
// put weight gradients off, or none.
Frontier mixed_frontier(const std::vector<StoredPlan>& a, const std::vector<StoredPlan>& b, Nanoseconds crossing,
                        Passes passes) {
  std::vector<prune::Candidate> pairs;
  std::vector<std::array<int, 2>> sources;
  const std::vector<prune::Candidate> left = priced(a, crossing, passes);
  const std::vector<prune::Candidate> right = priced(b, crossing, passes);
  for (const prune::Candidate& x : left) {
    for (const prune::Candidate& y : right) {
      prune::Candidate both;
      both.T = std::max(x.T, y.T);
      both.F = std::max(x.F, y.F);
      both.A = std::max(x.A, y.A);
      both.o = std::max(x.o, y.o);
      if (x.W > 0 && y.W > 0) both.W = both.T - std::max(x.passage(), y.passage());
      both.n_max = std::min(x.n_max, y.n_max);
      both.source = static_cast<int>(sources.size());
      pairs.push_back(both);
      sources.push_back({x.source, y.source});
    }
  }
  Frontier result;
  result.candidates = prune::pareto(pairs);
  for (prune::Candidate& candidate : result.candidates) {
    result.sources.push_back(sources[static_cast<std::size_t>(candidate.source)]);
    candidate.source = static_cast<int>(result.sources.size()) - 1;
  }
  return result;
}

Bytes boundary_bytes(const model::Model& model, const Setting& setting, int cut) {
  return Bytes(model::cut_bytes(model, cut) * setting.microbatch);
}

// What a part adds to the limits of its class: its shape, or what it makes of the run behind it.
std::int64_t placement_weight(const OptionPart& part, const PlacementLimit& limit) {
  return limit.weight_of(part.run) - limit.weight_of(part.run - part.placement.gpus);
}

// By limit, those of all classes in a row; empty: the option adds nothing.
std::vector<std::int64_t> placement_weights(const std::vector<OptionPart>& parts,
                                            const std::vector<ClassShare>& shares) {
  std::vector<std::int64_t> weights;
  for (std::size_t k = 0; k < shares.size(); ++k) {
    for (const PlacementLimit& limit : shares[k].limits) {
      std::int64_t& weight = weights.emplace_back(0);
      for (const OptionPart& part : parts) {
        if (part.placement.island_class == static_cast<int>(k)) weight += placement_weight(part, limit);
      }
    }
  }
  if (std::ranges::all_of(weights, [](std::int64_t weight) { return weight == 0; })) return {};
  return weights;
}

void add_options(PricedProgram& priced, const std::vector<ClassShare>& shares) {
  std::map<std::vector<std::tuple<int, int, int>>, int> keys;
  for (const ClassShare& share : shares) {
    for (const PlacementLimit& limit : share.limits) priced.program.placement.push_back(limit.most);
  }
  for (const auto& parts : priced.parts) {
    chain::Option option;
    std::vector<std::tuple<int, int, int>> placements;
    for (const OptionPart& part : parts) {
      const ClassShare& share = shares[static_cast<std::size_t>(part.placement.island_class)];
      option.uses.push_back({part.placement.island_class, part.placement.gpus / share.unit});
      placements.emplace_back(part.placement.island_class, part.placement.gpus, part.run);
    }
    option.key = keys.try_emplace(placements, static_cast<int>(keys.size())).first->second;
    option.weights = placement_weights(parts, shares);
    priced.program.options.push_back(std::move(option));
  }
  priced.program.keys = static_cast<int>(keys.size());
}

// Whether a stage on `from` can be in front of one on `to`: where it joins a run, that must be the run behind it.
bool can_hand_over(const std::vector<OptionPart>& from, const std::vector<OptionPart>& to) {
  const OptionPart& a = from.front();
  if (!a.is_with_next()) return true;
  const OptionPart& b = to.front();
  return to.size() == 1 && a.placement.island_class == b.placement.island_class && a.run - a.placement.gpus == b.run;
}

// Whether a class's stages of one pipeline are in one member.
bool in_one_member(const std::vector<ClassShare>& shares, int island_class) {
  return shares[static_cast<std::size_t>(island_class)].in_one_member;
}

// Stages as they are placed to each other; `together`: in the same member.
Handover handover_between(const cluster::IslandLevel& level, const std::vector<ClassShare>& shares,
                          const std::vector<OptionPart>& from, const std::vector<OptionPart>& to, bool together,
                          Bytes bytes) {
  const auto placed = [&](const std::vector<OptionPart>& parts) {
    std::vector<Placement> placements = placements_of(parts);
    for (Placement& p : placements) {
      if (together || in_one_member(shares, p.island_class)) p.member = 0;
    }
    return placements;
  };
  return dearest_handover(level, placed(from), placed(to), bytes);
}

chain::Price price_of(const Handover& handover) {
  return {handover.cost.latency.value(), handover.cost.occupancy.value()};
}

// [key] the first option that has it.
std::vector<const std::vector<OptionPart>*> representatives(const PricedProgram& priced) {
  const chain::Program& program = priced.program;
  std::vector<const std::vector<OptionPart>*> representative(static_cast<std::size_t>(program.keys), nullptr);
  for (std::size_t i = 0; i < program.options.size(); ++i) {
    auto& slot = at(representative, program.options[i].key);
    if (slot == nullptr) slot = &priced.parts[i];
  }
  return representative;
}

// From the last stage to the first, which may be anywhere to each other.
void add_interleaving(PricedProgram& priced, const cluster::IslandLevel& level, std::int64_t cut_bytes) {
  chain::Program& program = priced.program;
  chain::Interleaving& interleaving = program.interleaving;
  interleaving.chunks = priced.setting.chunks;
  interleaving.groups = microbatch_groups(priced.setting.microbatches);
  interleaving.around.assign(program.keys, program.keys, chain::Price::none());
  const Bytes bytes(cut_bytes * priced.setting.microbatch);
  const auto options = representatives(priced);
  for (std::size_t from = 0; from < options.size(); ++from) {
    for (std::size_t to = 0; to < options.size(); ++to) {
      interleaving.around(from, to) =
          price_of(handover_between(level, priced.shares, *options[from], *options[to], /*together=*/false, bytes));
    }
  }
}

void add_prices(PricedProgram& priced, const model::Model& model, const CutPoints& cuts,
                const cluster::IslandLevel& level) {
  chain::Program& program = priced.program;
  std::map<std::int64_t, int> kinds;
  std::vector<Bytes> bytes_of_kind;
  program.cut_kind.assign(static_cast<std::size_t>(program.blocks) + 1, 0);
  for (int cut = 1; cut < program.blocks; ++cut) {
    const Bytes bytes = boundary_bytes(model, priced.setting, cuts.block(cut));
    const auto [entry, created] = kinds.try_emplace(bytes.value(), static_cast<int>(kinds.size()));
    if (created) bytes_of_kind.push_back(bytes);
    program.cut_kind[static_cast<std::size_t>(cut)] = entry->second;
  }
  if (bytes_of_kind.empty()) bytes_of_kind.emplace_back(0);
  const auto representative = representatives(priced);
  for (const Bytes bytes : bytes_of_kind) {
    Grid<chain::Price>& prices = program.prices.emplace_back(program.keys, program.keys, chain::Price::none());
    for (std::size_t from = 0; from < representative.size(); ++from) {
      for (std::size_t to = 0; to < representative.size(); ++to) {
        const std::vector<OptionPart>& front = *representative[from];
        const std::vector<OptionPart>& behind = *representative[to];
        if (!can_hand_over(front, behind)) continue;
        prices(from, to) =
            price_of(handover_between(level, priced.shares, front, behind, front.front().is_with_next(), bytes));
      }
    }
  }
}

// Whether an option may run slices of a signature: the last stage is with no next one.
bool may_run(const PricedProgram& priced, std::size_t option, const SignatureTable& signatures, int signature) {
  if (!signatures.is_stage(signature, priced.setting.chunks)) return false;
  return !priced.parts[option].front().is_with_next() || !signatures.entry(signature).signature.head;
}

// Calls visit(option, signature, plans of the first part, plans of the last part) where all parts have plans.
template <class Visit>
void for_each_key(const PricedProgram& priced, const model::Model& model, const SignatureTable& signatures,
                  const FrontierStore& store, Visit visit) {
  for (std::size_t option = 0; option < priced.parts.size(); ++option) {
    const std::vector<OptionPart>& parts = priced.parts[option];
    for (int s = 0; s < signatures.size(); ++s) {
      const bool whole = signatures.entry(s).segments() == signatures.segments();
      if (!model.job.allow.pipeline && !whole) continue;
      if (!may_run(priced, option, signatures, s)) continue;
      const auto& first = store.at(parts.front().entry).plans[static_cast<std::size_t>(s)];
      const auto& last = store.at(parts.back().entry).plans[static_cast<std::size_t>(s)];
      if (!first.empty() && !last.empty()) visit(option, static_cast<std::size_t>(s), first, last);
    }
  }
}

std::vector<chain::Drain> drains_of(const std::vector<StoredPlan>& plans, Nanoseconds crossing, Passes passes) {
  std::vector<chain::Drain> steps;
  for (const StoredPlan& plan : plans) {
    const prune::Candidate candidate = to_candidate(plan, crossing, 0, passes);
    steps.push_back({candidate.A + candidate.o, candidate.n_max});
  }
  return staircase(std::move(steps));
}

// max A + max o of both is no less than either's A + o.
std::vector<chain::Drain> drains_of_both(const std::vector<chain::Drain>& a, const std::vector<chain::Drain>& b) {
  std::vector<chain::Drain> steps;
  for (const chain::Drain& x : a) {
    for (const chain::Drain& y : b) steps.push_back({std::max(x.cost, y.cost), std::min(x.n_max, y.n_max)});
  }
  return staircase(std::move(steps));
}

void add_drains(PricedProgram& priced, const model::Model& model, const cluster::IslandLevel& level,
                const SignatureTable& signatures, const FrontierStore& store) {
  priced.program.drains = {priced.parts.size(), priced.program.blocks + 1};
  for_each_key(priced, model, signatures, store,
               [&](std::size_t option, std::size_t s, const auto& first, const auto& last) {
                 const SignatureTable::Entry& slice = signatures.entry(static_cast<int>(s));
                 const int segments = slice.segments();
                 if (signatures.id(0, segments) != static_cast<int>(s)) return;
                 const std::vector<OptionPart>& parts = priced.parts[option];
                 const Nanoseconds crossing =
                     crossing_sync(model, level, priced.setting.replicas, priced.setting.reach, placements_of(parts),
                                   slice.signature, first.front().cost.gradient_volume);
                 const Passes passes(priced.setting.chunks);
                 std::vector<chain::Drain> drains = drains_of(first, crossing, passes);
                 if (parts.size() > 1) drains = drains_of_both(drains, drains_of(last, crossing, passes));
                 priced.program.drains(option, segments) = std::move(drains);
               });
}

std::int64_t slowest_of(const std::vector<StoredPlan>& plans) {
  std::int64_t slowest = 0;
  for (const StoredPlan& plan : plans) {
    slowest = std::max(slowest, (plan.cost.forward + plan.cost.backward).value());
  }
  return slowest;
}

std::int64_t least_forward(const std::vector<StoredPlan>& plans) {
  std::int64_t least = INT64_MAX;
  for (const StoredPlan& plan : plans) least = std::min(least, plan.cost.forward.value());
  return least;
}

std::int64_t least_backward(const std::vector<StoredPlan>& plans) {
  std::int64_t least = INT64_MAX;
  for (const StoredPlan& plan : plans) {
    least = std::min(least, (plan.cost.backward - plan.weight_gradient).value());
  }
  return least;
}

void add_staircases(PricedProgram& priced, const model::Model& model, const SignatureTable& signatures,
                    const FrontierStore& store) {
  chain::Program& program = priced.program;
  const auto count = static_cast<std::size_t>(signatures.size());
  for (std::size_t option = 0; option < priced.parts.size(); ++option) {
    const std::vector<OptionPart>& parts = priced.parts[option];
    for (std::size_t s = 0; s < count; ++s) {
      const bool whole = signatures.entry(static_cast<int>(s)).segments() == signatures.segments();
      if (!model.job.allow.pipeline && !whole) continue;
      if (!may_run(priced, option, signatures, static_cast<int>(s))) continue;
      const std::vector<prune::Candidate>& first = store.at(parts.front().entry).staircases[s];
      const std::vector<prune::Candidate>& last = store.at(parts.back().entry).staircases[s];
      std::vector<prune::Candidate>& steps = program.frontiers(option, s);
      steps = Passes(priced.setting.chunks).steps(parts.size() == 1 ? first : staircase_of_both(first, last));
      if (!store.may_put_off()) continue;
      const std::int64_t passage =
          std::max(store.at(parts.front().entry).least_passage[s], store.at(parts.back().entry).least_passage[s]);
      for (prune::Candidate& step : steps) step.W = std::max<std::int64_t>(0, step.T - passage);
    }
  }
}

// As chain::Program says it; nothing where segments are blocks.
std::vector<int> blocks_in_front(const CutPoints& cuts) {
  std::vector<int> blocks;
  for (int cut = 0; cut <= cuts.segments() && !cuts.are_everywhere(); ++cut) blocks.push_back(cuts.block(cut));
  return blocks;
}

// Stages that share a member with the next one: a number for each run.
void number_runs(const PricedProgram& priced, const chain::Chain& chain, Composition& composition) {
  int runs = 0;
  for (std::size_t s = 0; s + 1 < chain.stages.size(); ++s) {
    if (!priced.parts[static_cast<std::size_t>(chain.stages[s].option)].front().is_with_next()) continue;
    PartChoice& part = composition.stages[s].parts.front();
    if (part.member == PartChoice::kAnyMember) part.member = runs++;
    composition.stages[s + 1].parts.front().member = part.member;
  }
}

}  // namespace

PricedProgram relaxed_program(const model::Model& model, const cluster::IslandLevel& level,
                              const std::vector<ClassShare>& shares, const Setting& setting,
                              std::vector<std::vector<OptionPart>> options, const SignatureTable& signatures,
                              const FrontierStore& store) {
  PricedProgram priced;
  priced.setting = setting;
  priced.parts = std::move(options);
  priced.shares = shares;
  chain::Program& program = priced.program;
  program.blocks = signatures.segments();
  program.blocks_before = blocks_in_front(signatures.cuts());
  program.microbatches = setting.microbatches * setting.chunks;
  program.zero_bubble = store.may_put_off();
  for (const ClassShare& share : shares) program.inventory.push_back(share.units);
  program.signatures = signatures.size();
  program.signature = {program.blocks + 1, signatures.ids()};
  add_options(priced, shares);
  add_prices(priced, model, signatures.cuts(), level);
  if (setting.chunks > 1) {
    add_interleaving(priced, level, signatures.chunked().cut_bytes());
    for (const auto& parts : priced.parts) program.work_before.add_row(store.at(parts.front().entry).work_before);
  }
  program.frontiers = {priced.parts.size(), signatures.size()};
  program.least_forward = {priced.parts.size(), signatures.size(), INT64_MAX};
  program.least_backward = program.least_forward;
  priced.sources.resize(program.frontiers.size());
  add_staircases(priced, model, signatures, store);
  for_each_key(priced, model, signatures, store,
               [&](std::size_t option, std::size_t s, const auto& first, const auto& last) {
                 const Passes passes(setting.chunks);
                 const std::int64_t slowest = std::max(slowest_of(first), slowest_of(last));
                 program.slowest = std::max(program.slowest, passes.time(slowest));
                 program.least_forward(option, s) = passes.time(std::max(least_forward(first), least_forward(last)));
                 // Of two parts, max T - max F is no less than the backward of the part whose forward takes longer. Of
                 // several chunks, either is rounded up.
                 const std::int64_t backward = std::min(least_backward(first), least_backward(last));
                 program.least_backward(option, s) = passes.time(backward) - (setting.chunks > 1 ? 1 : 0);
               });
  add_drains(priced, model, level, signatures, store);
  return priced;
}

std::vector<prune::Candidate> price_frontier(PricedProgram& priced, int option, int signature,
                                             const model::Model& model, const cluster::IslandLevel& level,
                                             const SignatureTable& signatures, const FrontierStore& store) {
  const std::vector<OptionPart>& parts = priced.parts[static_cast<std::size_t>(option)];
  const auto& first = store.at(parts.front().entry).plans[static_cast<std::size_t>(signature)];
  const auto& last = store.at(parts.back().entry).plans[static_cast<std::size_t>(signature)];
  if (first.empty() || last.empty()) return {};
  if (!may_run(priced, static_cast<std::size_t>(option), signatures, signature)) return {};
  // The gradient volume of a slice does not depend on the strategy.
  const Nanoseconds crossing =
      crossing_sync(model, level, priced.setting.replicas, priced.setting.reach, placements_of(parts),
                    signatures.entry(signature).signature, first.front().cost.gradient_volume);
  const Passes passes(priced.setting.chunks);
  Frontier frontier =
      parts.size() == 1 ? single_frontier(first, crossing, passes) : mixed_frontier(first, last, crossing, passes);
  const auto at = static_cast<std::size_t>(option) * static_cast<std::size_t>(signatures.size()) +
                  static_cast<std::size_t>(signature);
  priced.sources[at] = std::move(frontier.sources);
  return std::move(frontier.candidates);
}

void follow(const runtime::Semantics& semantics, chain::Program& program) {
  program.classic_warmup = semantics.warmup == runtime::Warmup::kClassic;
  program.blocking_transfers = semantics.transfers == runtime::Transfers::kBlocking;
  program.interleaving.sends_block = semantics.transfers == runtime::Transfers::kForwardBlocking;
}

namespace {

// The last stage hands over to the first where chunks are interleaved, else to none.
std::optional<Handover> handover_behind(const model::Model& model, const cluster::IslandLevel& level,
                                        const PricedProgram& priced, const SignatureTable& signatures,
                                        const chain::Chain& chain, std::size_t s) {
  const bool is_last = s + 1 == chain.stages.size();
  if (is_last && priced.setting.chunks == 1) return std::nullopt;
  const std::vector<OptionPart>& from = at(priced.parts, chain.stages[s].option);
  const std::vector<OptionPart>& to = at(priced.parts, chain.stages[is_last ? 0 : s + 1].option);
  const Bytes bytes = priced.setting.chunks > 1
                          ? Bytes(signatures.chunked().cut_bytes() * priced.setting.microbatch)
                          : boundary_bytes(model, priced.setting, signatures.cuts().block(chain.stages[s].last));
  return handover_between(level, priced.shares, from, to, !is_last && from.front().is_with_next(), bytes);
}

// What a stage takes for all of its blocks, whatever the program counts in.
void add_times(const chain::ChainStage& from, int chunks, StageChoice& stage) {
  const auto time = [](std::int64_t value) { return Nanoseconds(value); };
  stage.T = time(from.candidate.T);
  stage.F = time(from.candidate.F);
  stage.A = time(from.candidate.A);
  stage.o = time(from.candidate.o);
  if (chunks == 1) return;
  const Nanoseconds exposed = stage.A - stage.T;
  stage.T = stage.F = Nanoseconds(0);
  for (const PartChoice& part : stage.parts) {
    stage.T = std::max(stage.T, part.plan.cost.forward + part.plan.cost.backward);
    stage.F = std::max(stage.F, part.plan.cost.forward);
  }
  stage.A = stage.T + exposed;
}

void lay_out_chunks(Composition& composition) {
  std::vector<int> blocks;
  for (const StageChoice& stage : composition.stages) blocks.push_back(stage.last - stage.first);
  std::vector<std::vector<model::BlockRange>> ranges = chunk_ranges(blocks, composition.chunks);
  for (std::size_t s = 0; s < ranges.size(); ++s) composition.stages[s].chunks = std::move(ranges[s]);
}

}  // namespace

Composition to_composition(const model::Model& model, const cluster::IslandLevel& level, const PricedProgram& priced,
                           const SignatureTable& signatures, const FrontierStore& store, const chain::Chain& chain) {
  Composition composition;
  composition.level = priced.setting.level;
  composition.replicas = priced.setting.replicas;
  composition.microbatch = priced.setting.microbatch;
  composition.microbatches = priced.setting.microbatches;
  composition.samples = model.job.global_batch;
  composition.chunks = priced.setting.chunks;
  composition.group = chain.group;
  composition.period = Nanoseconds(chain.period);
  composition.closed_form = Nanoseconds(chain.time);
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const chain::ChainStage& from = chain.stages[s];
    const auto option = static_cast<std::size_t>(from.option);
    const auto signature = static_cast<std::size_t>(signatures.id(from.first, from.last));
    const std::array<int, 2>& source = priced.sources[option * static_cast<std::size_t>(signatures.size()) + signature]
                                                     [static_cast<std::size_t>(from.candidate.source)];
    StageChoice stage;
    stage.first = signatures.cuts().block(from.first);
    stage.last = signatures.cuts().block(from.last);
    for (std::size_t p = 0; p < priced.parts[option].size(); ++p) {
      const OptionPart& part = priced.parts[option][p];
      stage.parts.push_back(
          {part.placement.island_class, part.placement.gpus, part.samples,
           store.partial_plan(store.at(part.entry).plans[signature][static_cast<std::size_t>(source[p])]),
           in_one_member(priced.shares, part.placement.island_class) ? 0 : PartChoice::kAnyMember});
    }
    add_times(from, composition.chunks, stage);
    stage.crossing = crossing_sync(
        model, level, composition.replicas, priced.setting.reach, placements_of(priced.parts[option]),
        signatures.entry(static_cast<int>(signature)).signature, stage.parts.front().plan.cost.gradient_volume);
    stage.in_flight = chain::held_by(priced.program, chain, s);
    if (const auto pair = handover_behind(model, level, priced, signatures, chain, s)) {
      stage.to_next = pair->cost;
      stage.link_source = pair->source;
      stage.link_target = pair->target;
      stage.link_to_next = pair->link;
    }
    composition.stages.push_back(std::move(stage));
  }
  number_runs(priced, chain, composition);
  if (composition.chunks > 1) lay_out_chunks(composition);
  return composition;
}

}  // namespace tangram::compose
