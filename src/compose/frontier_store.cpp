#include "frontier_store.hpp"

#include <algorithm>
#include <map>

#include "tangram/cost/stage.hpp"

namespace tangram::compose {

namespace {

constexpr std::size_t kLengthsPerRound = 8;  // lengths asked for together; later rounds profit from dead slices

std::int64_t time_of(const parallelizer::PartialPlan& plan) { return (plan.cost.forward + plan.cost.backward).value(); }

// A failure, or plans of which none passed, says nothing about longer slices.
bool leaves_open(const parallelizer::Outcome& outcome) {
  using parallelizer::OutcomeStatus;
  return outcome.status == OutcomeStatus::kFailed || (outcome.status == OutcomeStatus::kOk && outcome.plans.empty());
}

}  // namespace

SignatureTable::SignatureTable(const model::Model& model) : blocks_(model.block_count()) {
  ids_.assign(static_cast<std::size_t>(blocks_ + 1) * static_cast<std::size_t>(blocks_ + 1), -1);
  by_length_.resize(static_cast<std::size_t>(blocks_) + 1);
  std::map<model::SliceSignature, int> known;
  for (int length = 1; length <= blocks_; ++length) {
    for (int first = 0; first + length <= blocks_; ++first) {
      const int last = first + length;
      model::SliceSignature signature = model::signature(model, first, last);
      const auto [entry, created] = known.try_emplace(signature, static_cast<int>(entries_.size()));
      if (created) {
        entries_.push_back({std::move(signature), first, last});
        by_length_[static_cast<std::size_t>(length)].push_back(entry->second);
      }
      ids_[at(first, last)] = entry->second;
    }
  }
}

int FrontierStore::want(const cluster::DeviceShape& shape, int samples, std::int64_t slowest) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].samples != samples || !(entries_[i].shape == shape)) continue;
    entries_[i].slowest = std::max(entries_[i].slowest, slowest);
    return static_cast<int>(i);
  }
  ShapePlans entry;
  entry.shape = shape;
  entry.samples = samples;
  entry.slowest = slowest;
  entry.plans.resize(static_cast<std::size_t>(signatures_.size()));
  entry.dead.assign(static_cast<std::size_t>(signatures_.size()), 1);
  entries_.push_back(std::move(entry));
  return static_cast<int>(entries_.size()) - 1;
}

struct FrontierStore::Round {
  std::vector<parallelizer::Query> queries;
  std::vector<std::pair<std::size_t, int>> owners;  // entry, signature
};

FrontierStore::Round FrontierStore::make_round(std::size_t from) const {
  const auto& lengths = signatures_.by_length();
  Round round;
  for (std::size_t e = asked_; e < entries_.size(); ++e) {
    const Nanoseconds slowest(entries_[e].slowest);
    for (std::size_t length = from; length < std::min(lengths.size(), from + kLengthsPerRound); ++length) {
      for (const int id : lengths[length]) {
        if (!is_worth_asking(entries_[e], id)) continue;
        round.queries.push_back({signatures_.entry(id).signature, entries_[e].shape, entries_[e].samples,
                                 limits_.max_in_flight, limits_.allow, limits_.demands,
                                 is_typical_block(id) ? Nanoseconds::max() : slowest});
        round.owners.emplace_back(e, id);
      }
    }
  }
  return round;
}

void FrontierStore::ask() {
  for (std::size_t from = 1; from < signatures_.by_length().size(); from += kLengthsPerRound) {
    const Round round = make_round(from);
    if (round.queries.empty()) break;
    for (std::size_t p = 0; p < parallelizers_.size(); ++p) {
      std::vector<parallelizer::Outcome> outcomes = parallelizers_[p]->solve(round.queries);
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        tallies_[p].add(outcomes[i]);
        record(entries_[round.owners[i].first], round.owners[i].second, outcomes[i], static_cast<int>(p));
      }
    }
    queries_ += static_cast<std::int64_t>(round.queries.size() * parallelizers_.size());
  }
  asked_ = entries_.size();
}

bool FrontierStore::is_worth_asking(const ShapePlans& entry, int signature) const {
  const SignatureTable::Entry& slice = signatures_.entry(signature);
  if (!parallelizer::admits(limits_.demands, model_, slice.signature)) return false;
  const auto dead = [&](int first, int last) {
    return entry.dead[static_cast<std::size_t>(signatures_.id(first, last))] != 0;
  };
  // Only slices at least a round shorter are known to be dead; within the first round everything is asked for.
  const parallelizer::Demands& demands = limits_.demands;
  const bool inherited = !demands.whole_modules && !demands.whole_stage_experts && demands.tp_at_ends == 0;
  if (inherited && slice.last - slice.first > static_cast<int>(kLengthsPerRound)) {
    const int shorter =
        (slice.last - slice.first - 1) / static_cast<int>(kLengthsPerRound) * static_cast<int>(kLengthsPerRound);
    if (dead(slice.first, slice.first + shorter) || dead(slice.last - shorter, slice.last)) return false;
  }
  if (is_typical_block(signature)) return true;  // the split of mixed stages needs its time, however slow
  double least = 0;
  for (const auto& [type, count] : slice.signature.runs) {
    least += count * cost::least_gpu_seconds(model_, model_.types[static_cast<std::size_t>(type)], entry.shape.device,
                                             limits_.profiles);
  }
  const double seconds = least * entry.samples / entry.shape.gpus();
  return seconds * 1e9 <= static_cast<double>(entry.slowest);
}

bool FrontierStore::is_typical_block(int signature) const {
  const std::vector<int>& single = signatures_.by_length()[1];
  const model::SliceSignature& slice = signatures_.entry(signature).signature;
  const bool inner = !slice.embedding && !slice.head;
  return slice.block_count() == 1 && (inner || single.size() <= 2);
}

void FrontierStore::record(ShapePlans& entry, int signature, parallelizer::Outcome& outcome, int author) {
  const bool open = leaves_open(outcome);
  add_plans(entry, signature, outcome.plans, author);
  const bool short_of_memory = outcome.status == parallelizer::OutcomeStatus::kInfeasible &&
                               outcome.shortage > Bytes(0) && signatures_.entry(signature).signature.block_count() == 1;
  if (short_of_memory && (entry.shortage == Bytes(0) || outcome.shortage < entry.shortage)) {
    entry.shortage = outcome.shortage;
  }
  if (open || !entry.plans[static_cast<std::size_t>(signature)].empty())
    entry.dead[static_cast<std::size_t>(signature)] = 0;
}

void FrontierStore::add_plans(ShapePlans& entry, int signature, std::vector<parallelizer::PartialPlan>& plans,
                              int author) {
  const auto is_too_slow = [&](const parallelizer::PartialPlan& plan) { return time_of(plan) > entry.slowest; };
  if (is_typical_block(signature)) {
    for (const parallelizer::PartialPlan& plan : plans) {
      const auto time = static_cast<double>(time_of(plan));
      if (entry.one_block == 0 || time < entry.one_block) entry.one_block = time;
    }
  }
  std::vector<StoredPlan>& kept = entry.plans[static_cast<std::size_t>(signature)];
  const auto wanted = plans.size() - static_cast<std::size_t>(std::count_if(plans.begin(), plans.end(), is_too_slow));
  kept.reserve(kept.size() + wanted);
  for (parallelizer::PartialPlan& plan : plans) {
    if (is_too_slow(plan)) continue;
    kept.push_back({plan.cost, plan.strategy, author, -1, plan.n_max});
    if (!plan.opaque.empty()) {
      kept.back().opaque = static_cast<std::int32_t>(opaque_.size());
      opaque_.push_back(std::move(plan.opaque));
    }
  }
  partial_plans_ += static_cast<std::int64_t>(wanted);
  plans = {};  // a round of answers is large: let go of what has been taken over
}

parallelizer::PartialPlan FrontierStore::partial_plan(const StoredPlan& plan) const {
  const std::string& author = parallelizers_[static_cast<std::size_t>(plan.author)]->info().name;
  const std::string opaque = plan.opaque < 0 ? std::string() : opaque_[static_cast<std::size_t>(plan.opaque)];
  return {plan.strategy, plan.cost, plan.n_max, author, opaque};
}

Bytes FrontierStore::shortage() const {
  Bytes smallest{0};
  for (const ShapePlans& entry : entries_) {
    if (entry.shortage == Bytes(0)) continue;
    if (smallest == Bytes(0) || entry.shortage < smallest) smallest = entry.shortage;
  }
  return smallest;
}

}  // namespace tangram::compose
