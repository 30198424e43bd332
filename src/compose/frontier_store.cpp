#include "frontier_store.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "staircases.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::compose {

namespace {

std::int64_t time_of(const parallelizer::PartialPlan& plan) { return (plan.cost.forward + plan.cost.backward).value(); }

// A failure, or plans of which none passed, says nothing about longer slices. A modelled parallelizer has none where
// all are too slow, as those of longer slices are too.
bool leaves_open(const parallelizer::Outcome& outcome, bool modelled) {
  using parallelizer::OutcomeStatus;
  if (outcome.status == OutcomeStatus::kFailed) return true;
  return outcome.status == OutcomeStatus::kOk && outcome.plans.empty() && !modelled;
}

// What tells apart signatures of one length; see model::SliceSignature.
using SliceKey = std::tuple<bool, bool, int, std::int64_t, std::int64_t>;  // ends, types, bytes of the cuts

// [cut] 0 at the ends of the model.
std::vector<std::int64_t> bytes_of_cuts(const model::Model& model, const CutPoints& cuts) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(cuts.segments()) + 1, 0);
  for (int cut = 1; cut < cuts.segments(); ++cut)
    bytes[static_cast<std::size_t>(cut)] = cut_bytes(model, cuts.block(cut));
  return bytes;
}

// [segment] equal numbers where blocks are of the same types in the same order.
std::vector<int> kinds_of_segments(const model::Model& model, const CutPoints& cuts) {
  std::map<std::vector<int>, int> known;
  std::vector<int> kinds;
  for (int segment = 0; segment < cuts.segments(); ++segment) {
    const std::vector<int> types(model.blocks.begin() + cuts.block(segment),
                                 model.blocks.begin() + cuts.block(segment + 1));
    kinds.push_back(known.try_emplace(types, static_cast<int>(known.size())).first->second);
  }
  return kinds;
}

// Slices have the same types of blocks in the same order where those that are a segment shorter have, and the last
// segment is of the same kind. `kinds` [first]: equal numbers for equal slices of `length` - 1 segments, then of
// `length`.
void lengthen(std::vector<int>& kinds, const std::vector<int>& segments, int length) {
  std::map<std::pair<int, int>, int> known;
  for (std::size_t last = static_cast<std::size_t>(length); last <= segments.size(); ++last) {
    int& kind = kinds[last - static_cast<std::size_t>(length)];
    kind = known.try_emplace({kind, segments[last - 1]}, static_cast<int>(known.size())).first->second;
  }
}

// The longest range of equal numbers, [first, last).
std::pair<int, int> longest_run(const std::vector<int>& numbers) {
  std::pair<int, int> longest{0, 0};
  int first = 0;
  for (int last = 1; last <= static_cast<int>(numbers.size()); ++last) {
    if (tangram::at(numbers, last - 1) != tangram::at(numbers, first)) first = last - 1;
    if (last - first > longest.second - longest.first) longest = {first, last};
  }
  return longest;
}

}  // namespace

SignatureTable::SignatureTable(const model::Model& model, CutPoints cuts)
    : cuts_(std::move(cuts)), chunked_(model), segments_(cuts_.segments()) {
  ids_.assign(static_cast<std::size_t>(segments_ + 1) * static_cast<std::size_t>(segments_ + 1), -1);
  by_length_.resize(static_cast<std::size_t>(segments_) + 1);
  const std::vector<std::int64_t> bytes = bytes_of_cuts(model, cuts_);
  const std::vector<int> segments = kinds_of_segments(model, cuts_);
  std::vector<int> kinds(static_cast<std::size_t>(segments_), 0);  // [first] of slices of the length
  for (int length = 1; length <= segments_; ++length) {
    lengthen(kinds, segments, length);
    std::map<SliceKey, int> known;
    for (int first = 0; first + length <= segments_; ++first) {
      const int last = first + length;
      const SliceKey key{first == 0, last == segments_, kinds[static_cast<std::size_t>(first)],
                         bytes[static_cast<std::size_t>(first)], bytes[static_cast<std::size_t>(last)]};
      const auto [entry, created] = known.try_emplace(key, size());
      if (created) {
        entries_.push_back({model::signature(model, cuts_.block(first), cuts_.block(last)), first, last});
        by_length_[static_cast<std::size_t>(length)].push_back(entry->second);
      }
      ids_[at(first, last)] = entry->second;
    }
  }
  count_alike(segments);
}

void SignatureTable::count_alike(const std::vector<int>& kinds) {
  const auto [begin, end] = longest_run(kinds);
  alike_ = end - begin;
  alike_in_.assign(entries_.size(), 0);
  for (int first = 0; first < segments_; ++first) {
    for (int last = first + 1; last <= segments_; ++last) {
      int& most = alike_in_[static_cast<std::size_t>(id(first, last))];
      most = std::max(most, std::min(last, end) - std::max(first, begin));
    }
  }
}

namespace {

// By the least that blocks and head take: what comes on top is in proportion.
std::vector<std::int64_t> work_before(const model::Model& model, const std::vector<double>& least_seconds,
                                      double of_head) {
  std::vector<double> seconds;
  for (const int type : model.blocks) seconds.push_back(least_seconds[static_cast<std::size_t>(type)]);
  seconds.back() += of_head;
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  static constexpr double kParts = 1 << 30;
  std::vector<std::int64_t> before{0};
  for (const double part : seconds) {
    const auto work = all > 0 ? static_cast<std::int64_t>(part / all * kParts) : 0;
    before.push_back(before.back() + std::max<std::int64_t>(1, work));
  }
  return before;
}

}  // namespace

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
  entry.asked.assign(signatures_.by_length().size(), 0);
  entry.dead.assign(static_cast<std::size_t>(signatures_.size()), 1);
  for (const model::BlockType& type : model_.types) {
    entry.least_seconds.push_back(cost::least_gpu_seconds(model_, type, shape.device, limits_.profiles));
  }
  entry.work_before =
      work_before(model_, entry.least_seconds, cost::least_gpu_seconds_head(model_, shape.device, limits_.profiles));
  entries_.push_back(std::move(entry));
  return static_cast<int>(entries_.size()) - 1;
}

struct FrontierStore::Round {
  std::vector<parallelizer::Query> queries;
  std::vector<std::pair<std::size_t, int>> owners;  // entry, signature
};

FrontierStore::Round FrontierStore::make_round(std::span<const int> entries, std::span<const int> lengths,
                                               const std::vector<std::vector<char>>& wanted) {
  Round round;
  for (const int index : entries) {
    ShapePlans& entry = entries_[static_cast<std::size_t>(index)];
    const Nanoseconds slowest(entry.slowest);
    for (const int length : lengths) {
      if (entry.asked[static_cast<std::size_t>(length)] != 0) continue;
      for (const int id : signatures_.by_length()[static_cast<std::size_t>(length)]) {
        if (!is_worth_asking(entry, id)) continue;
        if (!wanted.empty() && wanted[static_cast<std::size_t>(index)][static_cast<std::size_t>(id)] == 0) {
          entry.dead[static_cast<std::size_t>(id)] = 0;  // nothing is known of it
          continue;
        }
        round.queries.push_back({signatures_.entry(id).signature, entry.shape, entry.samples, limits_.max_in_flight,
                                 limits_.allow, limits_.demands,
                                 is_typical_segment(id) ? Nanoseconds::max() : slowest});
        round.owners.emplace_back(static_cast<std::size_t>(index), id);
      }
    }
  }
  return round;
}

void FrontierStore::ask_segments(std::span<const int> entries) { ask_rounds(entries, std::array{1}, {}); }

void FrontierStore::ask(std::span<const int> entries, std::span<const int> lengths,
                        const std::vector<std::vector<char>>& wanted) {
  ask_rounds(entries, lengths, wanted);
  if (limits_.deadline.has_passed()) return;
  tbb::parallel_for(std::size_t{0}, entries.size(),
                    [&](std::size_t i) { fill_staircases(entries_[static_cast<std::size_t>(entries[i])]); });
}

void FrontierStore::ask_rounds(std::span<const int> entries, std::span<const int> lengths,
                               const std::vector<std::vector<char>>& wanted) {
  while (!lengths.empty()) {
    if (limits_.deadline.has_passed()) return;
    const auto end = std::ranges::lower_bound(lengths, lengths.front() + limits_.blocks_per_round);
    const std::span<const int> now = lengths.first(static_cast<std::size_t>(end - lengths.begin()));
    lengths = lengths.subspan(now.size());
    const Round round = make_round(entries, now, wanted);
    for (const int index : entries) {
      for (const int length : now) {
        entries_[static_cast<std::size_t>(index)].asked[static_cast<std::size_t>(length)] = 1;
      }
    }
    for (std::size_t p = 0; p < parallelizers_.size() && !round.queries.empty(); ++p) {
      std::vector<parallelizer::Outcome> outcomes = parallelizers_[p]->solve(round.queries);
      if (limits_.deadline.has_passed()) return;  // plugins may have given up
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        tallies_[p].add(outcomes[i]);
        record(entries_[round.owners[i].first], round.owners[i].second, outcomes[i], static_cast<int>(p));
      }
    }
    queries_ += static_cast<std::int64_t>(round.queries.size() * parallelizers_.size());
  }
}

void FrontierStore::fill_staircases(ShapePlans& entry) const {
  entry.staircases.resize(entry.plans.size());
  entry.stepped.resize(entry.asked.size());
  if (limits_.put_off) {
    entry.least_forward.resize(entry.plans.size());
    entry.least_passage.resize(entry.plans.size());
  }
  for (std::size_t length = 1; length < entry.asked.size(); ++length) {
    if (std::exchange(entry.stepped[length], entry.asked[length]) != 0) continue;
    for (const int id : signatures_.by_length()[length]) {
      if (limits_.put_off) put_off(entry, id);
      entry.staircases[static_cast<std::size_t>(id)] = entry.asked[length] != 0
                                                           ? staircase(entry.plans[static_cast<std::size_t>(id)])
                                                           : staircase_of_unknown(entry, signatures_.entry(id));
    }
  }
}

// The longest part that is known and leaves out two segments at least, and the rest. What a stage sends and receives
// takes memory beside its blocks, but at the ends of the model; two blocks' inputs take as much.
std::vector<prune::Candidate> FrontierStore::staircase_of_unknown(const ShapePlans& entry,
                                                                  const SignatureTable::Entry& slice) const {
  const auto [front, back] = parts_of_unknown(entry, slice);
  std::vector<prune::Candidate> steps =
      staircase_of_parts(entry.staircases[front], entry.staircases[back], limits_.max_in_flight);
  std::erase_if(steps, [&](const prune::Candidate& step) { return step.T > entry.slowest; });
  return steps;
}

std::pair<std::size_t, std::size_t> FrontierStore::parts_of_unknown(const ShapePlans& entry,
                                                                    const SignatureTable::Entry& slice) const {
  int cut = slice.last - 2;
  while (entry.asked[static_cast<std::size_t>(cut - slice.first)] == 0) --cut;
  return {static_cast<std::size_t>(signatures_.id(slice.first, cut)),
          static_cast<std::size_t>(signatures_.id(cut, slice.last))};
}

// What parallelizers leave out is no better in its forward pass, but may have more to put off: of slices that were not
// asked for, only that bounds a passage.
void FrontierStore::put_off(ShapePlans& entry, int signature) const {
  constexpr std::int64_t kRounding = 2;  // ns: rounded up once, and sums in another order
  const auto id = static_cast<std::size_t>(signature);
  const SignatureTable::Entry& slice = signatures_.entry(signature);
  if (entry.asked[static_cast<std::size_t>(slice.segments())] == 0) {
    const auto [front, back] = parts_of_unknown(entry, slice);
    const std::int64_t forward = entry.least_forward[front] + entry.least_forward[back] - kRounding;
    entry.least_forward[id] = entry.least_passage[id] = std::max<std::int64_t>(0, forward);
    return;
  }
  std::int64_t forward = INT64_MAX / 4;  // two may be added up
  std::int64_t passage = forward;
  for (StoredPlan& plan : entry.plans[id]) {
    put_off(entry, slice, plan);
    forward = std::min(forward, plan.cost.forward.value());
    passage = std::min(passage, (plan.cost.forward + plan.cost.backward - plan.weight_gradient).value());
  }
  entry.least_forward[id] = forward;
  entry.least_passage[id] = passage;
}

void FrontierStore::put_off(ShapePlans& entry, const SignatureTable::Entry& slice, StoredPlan& plan) const {
  auto [known, is_new] = entry.put_off.try_emplace(plan.strategy.degrees);
  if (is_new) {
    const auto units = cost::unit_costs(model_, entry.shape, plan.strategy.degrees, entry.samples, limits_.profiles);
    if (!units) return;  // it has no price of its own
    known->second = cost::put_off_units(model_, *units);
  }
  if (known->second.seconds.empty()) return;
  const cost::PutOffCost own = cost::put_off_cost(known->second, slice.signature);
  const Bytes room = entry.shape.device.usable() - plan.cost.static_memory() - plan.cost.transient;
  plan.weight_gradient = std::min(own.weight_gradient, plan.cost.backward);
  plan.n_max_of_put_off = std::min(plan.n_max, cost::most_with_put_off(room, plan.cost.activation, own.held));
}

bool FrontierStore::is_worth_asking(const ShapePlans& entry, int signature) const {
  const SignatureTable::Entry& slice = signatures_.entry(signature);
  if (!parallelizer::admits(limits_.demands, model_, slice.signature)) return false;
  const auto dead = [&](int first, int last) {
    return entry.dead[static_cast<std::size_t>(signatures_.id(first, last))] != 0;
  };
  // What the rounds before have shown of a part holds for the whole.
  int shorter = slice.last - slice.first - 1;
  while (shorter > 0 && entry.asked[static_cast<std::size_t>(shorter)] == 0) --shorter;
  if (parallelizer::are_inherited(limits_.demands) && shorter > 0) {
    if (dead(slice.first, slice.first + shorter) || dead(slice.last - shorter, slice.last)) return false;
  }
  if (is_typical_segment(signature)) return true;  // the split of mixed stages needs its time, however slow
  double least = 0;
  for (const auto& [type, count] : slice.signature.runs) {
    least += count * entry.least_seconds[static_cast<std::size_t>(type)];
  }
  const double seconds = least * entry.samples / entry.shape.gpus();
  return seconds * 1e9 <= static_cast<double>(entry.slowest);
}

bool FrontierStore::is_typical_segment(int signature) const {
  const std::vector<int>& single = signatures_.by_length()[1];
  const SignatureTable::Entry& slice = signatures_.entry(signature);
  const bool inner = !slice.signature.embedding && !slice.signature.head;
  return slice.segments() == 1 && (inner || single.size() <= 2);
}

void FrontierStore::record(ShapePlans& entry, int signature, parallelizer::Outcome& outcome, int author) {
  const bool open = leaves_open(outcome, parallelizers_[static_cast<std::size_t>(author)]->info().modelled);
  add_plans(entry, signature, outcome.plans, author);
  const bool short_of_memory = outcome.status == parallelizer::OutcomeStatus::kInfeasible &&
                               outcome.shortage > Bytes(0) && signatures_.entry(signature).segments() == 1;
  if (short_of_memory && (entry.shortage == Bytes(0) || outcome.shortage < entry.shortage)) {
    entry.shortage = outcome.shortage;
  }
  if (open || !entry.plans[static_cast<std::size_t>(signature)].empty())
    entry.dead[static_cast<std::size_t>(signature)] = 0;
}

void FrontierStore::add_plans(ShapePlans& entry, int signature, std::vector<parallelizer::PartialPlan>& plans,
                              int author) {
  const auto is_too_slow = [&](const parallelizer::PartialPlan& plan) { return time_of(plan) > entry.slowest; };
  if (is_typical_segment(signature)) {
    for (const parallelizer::PartialPlan& plan : plans) {
      const auto time = static_cast<double>(time_of(plan));
      if (entry.one_segment == 0 || time < entry.one_segment) entry.one_segment = time;
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
