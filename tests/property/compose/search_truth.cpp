#include "search_truth.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "property/chain/brute_force.hpp"
#include "property/chain/closed_form.hpp"
#include "support/placing.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/cost/put_off.hpp"

namespace tangram::tests {

namespace {

using cluster::IslandClass;
using cluster::IslandLevel;
using cluster::Link;
using Part = SearchTruth::Part;
using Parts = SearchTruth::Parts;

bool is_power_of_two(std::int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

std::int64_t rounded_up(std::int64_t number, std::int64_t divisor) { return (number + divisor - 1) / divisor; }

int odd_part(int number) { return number % 2 == 0 ? odd_part(number / 2) : number; }

// Up to 7, and up to the GPUs of the largest class: fleets here are small.
bool is_listed_odd(const cluster::IslandHierarchy& hierarchy, int odd) {
  const auto has_as_many = [&](const IslandClass& c) { return c.gpu_count() >= odd; };
  return odd == 1 || (odd <= 7 && std::ranges::any_of(hierarchy.levels.back().classes, has_as_many));
}

// Any such number of replicas of which one gets GPUs.
bool is_listed_count(const cluster::IslandHierarchy& hierarchy, const IslandLevel& level, int replicas) {
  const auto gets_gpus = [&](const IslandClass& c) { return c.gpu_count() >= replicas; };
  return is_listed_odd(hierarchy, odd_part(replicas)) && std::ranges::any_of(level.classes, gets_gpus);
}

bool divides_simply(std::int64_t b, std::int64_t whole) {
  return whole % b == 0 && (b == whole || is_power_of_two(b) || (b % 3 == 0 && is_power_of_two(b / 3)));
}

// What a candidate becomes when it is as small as its number of microbatches lets it be.
bool is_listed_size(const cluster::IslandHierarchy& hierarchy, std::int64_t b, std::int64_t whole) {
  if (divides_simply(b, whole)) return true;
  for (std::int64_t candidate = 1; candidate <= whole; ++candidate) {
    if (rounded_up(whole, rounded_up(whole, candidate)) != b) continue;
    const int odd = odd_part(static_cast<int>(candidate));
    bool spared = false;
    for (std::int64_t e = 1; e <= whole; ++e) {
      spared |= divides_simply(e, whole) && 3 * e >= 2 * candidate && 2 * e <= 3 * candidate;
    }
    if (is_listed_odd(hierarchy, odd) && (odd > 1 || !spared)) return true;
  }
  return false;
}

const IslandClass& class_of(const IslandLevel& level, const Part& part) {
  return level.classes[static_cast<std::size_t>(part.island_class)];
}

// Parts of a member, members of an island, islands: small fleets are offered any number of each.
bool is_shape(const IslandClass& c, int gpus) {
  if (gpus < c.gpus_per_member) return true;
  if (gpus % c.gpus_per_member != 0) return false;
  const int members = gpus / c.gpus_per_member;
  return members < c.members_per_island || members % c.members_per_island == 0;
}

// A replica's share of the class never needs more than one member.
bool shares_are_of_members(const IslandClass& c, int replicas) {
  const int share = c.gpu_count() / replicas;
  return share > 0 && share <= c.gpus_per_member && c.gpus_per_member / share * c.member_count() >= replicas;
}

int members(const IslandLevel& level, const Part& part) {
  return std::max(1, part.gpus / class_of(level, part).gpus_per_member);
}

Link slower(const Link& a, const Link& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

// What lies between two members is shared like the smaller part's member. Where it is one of the members that is slow,
// and nothing between them, both parts have what is theirs of their own member's network.
double part_of_link(double whole, const IslandClass& from, int gpus, const IslandClass& to, int others) {
  const double mine = gpus < from.gpus_per_member ? static_cast<double>(gpus) / from.gpus_per_member : 1;
  const double theirs = others < to.gpus_per_member ? static_cast<double>(others) / to.gpus_per_member : 1;
  const double shared = whole * std::min(mine, theirs);
  const double network = from.between_members.bandwidth.value();
  const double other_network = to.between_members.bandwidth.value();
  if (whole < network && whole < other_network) return shared;
  return std::max(shared, std::min(whole, std::min(network * mine, other_network * theirs)));
}

Link link(const IslandLevel& level, const Part& a, const Part& b, bool in_one_member = false) {
  const IslandClass& from = class_of(level, a);
  const IslandClass& to = class_of(level, b);
  Link result = level.link(a.island_class, b.island_class);
  if (a.island_class == b.island_class) {
    if (from.member_count() == 1 || in_one_member) {
      // Both live in the one member; its links are per GPU, and the smaller side has the fewer.
      result = from.inside_member;
      result.bandwidth = BytesPerSecond(result.bandwidth.value() * std::min(a.gpus, b.gpus));
      return result;
    }
    result = from.islands.size() == 1 ? from.between_members : from.between_islands;
  }
  result.bandwidth = BytesPerSecond(part_of_link(result.bandwidth.value(), from, a.gpus, to, b.gpus));
  if (a.island_class != b.island_class || a.gpus > from.gpus_per_member - b.gpus) return result;
  // There is room for both in one member.
  Link inside = from.inside_member;
  inside.bandwidth = BytesPerSecond(inside.bandwidth.value() * std::min(a.gpus, b.gpus));
  return slower(result, inside);
}

// The slower part counts, also of a microbatch's forward pass and input gradient.
prune::Candidate joined(const prune::Candidate& x, const prune::Candidate& y) {
  prune::Candidate both;
  both.T = std::max(x.T, y.T);
  both.F = std::max(x.F, y.F);
  both.A = std::max(x.A, y.A);
  both.o = std::max(x.o, y.o);
  both.n_max = std::min(x.n_max, y.n_max);
  both.W = std::min(both.T - x.T + x.W, both.T - y.T + y.W);
  return both;
}

bool better(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) { return a && (!b || *a < *b); }

}  // namespace

std::vector<parallelizer::PartialPlan> SearchTruth::plans(std::size_t at, const Part& part, int first, int last) const {
  const cluster::DeviceShape shape = cluster::make_shape(class_of(level(at), part), part.gpus);
  return job_.parallelizer.plans(model::signature(model_, first, last), shape, part.samples);
}

SearchTruth::SearchTruth(const SearchCase& job, runtime::Semantics semantics, std::vector<int> cuts)
    : model_(*job.model), job_(job), semantics_(semantics), cuts_(std::move(cuts)) {
  if (!cuts_.empty()) return;
  cuts_.resize(static_cast<std::size_t>(model_.block_count()) + 1);
  std::iota(cuts_.begin(), cuts_.end(), 0);
}

bool SearchTruth::is_between_cuts(int first, int last) const {
  return std::ranges::binary_search(cuts_, first) && std::ranges::binary_search(cuts_, last);
}

// Fastest time of all between two cuts in a row but what is at the ends of the model; of those where there are no
// others.
std::int64_t SearchTruth::one_segment(std::size_t at, const Part& part) const {
  const std::size_t segments = cuts_.size() - 1;
  const std::size_t from = segments > 2 ? 1 : 0;
  const std::size_t to = segments > 2 ? segments - 1 : segments;
  std::int64_t fastest = 0;
  for (std::size_t i = from; i < to; ++i) {
    for (const parallelizer::PartialPlan& plan : plans(at, part, cuts_[i], cuts_[i + 1])) {
      const std::int64_t time = (plan.cost.forward + plan.cost.backward).value();
      if (fastest == 0 || time < fastest) fastest = time;
    }
  }
  return fastest;
}

// Samples in proportion to speed, rounded half up to eighths of the microbatch.
std::optional<Parts> SearchTruth::mixed(std::size_t at, Part a, Part b) const {
  const std::int64_t time_a = one_segment(at, a);
  const std::int64_t time_b = one_segment(at, b);
  if (time_a == 0 || time_b == 0 || time_a > 8 * time_b || time_b > 8 * time_a) return std::nullopt;
  const int whole = a.samples;
  const int step = std::max(1, whole / 8);
  const std::int64_t sum = (time_a + time_b) * step;
  a.samples = static_cast<int>((2 * time_b * whole + sum) / (2 * sum)) * step;
  b.samples = whole - a.samples;
  if (a.samples <= 0 || b.samples <= 0) return std::nullopt;
  return Parts{a, b};
}

// GPUs of a class that a replica may use.
int SearchTruth::share(const Space& space, int k) const {
  const IslandClass& c = level(space.at).classes[static_cast<std::size_t>(k)];
  const bool within = std::ranges::find(space.reach.classes, k) != space.reach.classes.end();
  if (!within) return 0;
  const bool together = with_replicas(space, k);
  if (!space.reach.in_one_member && !together) return c.gpu_count() / space.replicas;
  const int members = together ? 1 : c.member_count();
  const int on_a_member = (space.replicas + members - 1) / members;
  return c.gpus_per_member / on_a_member;
}

// Whether one member of the class holds what all replicas have of it.
bool SearchTruth::with_replicas(const Space& space, int k) {
  return std::ranges::find(space.reach.with_replicas, k) != space.reach.with_replicas.end();
}

bool SearchTruth::in_one_member(const Space& space, int k) const {
  return space.reach.in_one_member || with_replicas(space, k) ||
         shares_are_of_members(level(space.at).classes[static_cast<std::size_t>(k)], space.replicas);
}

std::vector<Parts> SearchTruth::options(const Space& space, const compose::SearchOptions& options) const {
  std::vector<Parts> result;
  const std::size_t at = space.at;
  const int classes = static_cast<int>(level(at).classes.size());
  for (int k = 0; k < classes; ++k) {
    const IslandClass& c = level(at).classes[static_cast<std::size_t>(k)];
    for (int gpus = 1; gpus <= share(space, k); ++gpus) {
      if (!is_shape(c, gpus)) continue;
      const Part part{k, gpus, static_cast<int>(space.microbatch), gpus};
      result.push_back({part});
      const bool joins = c.member_count() > 1 && !in_one_member(space, k) && share(space, k) > 0;
      for (int run = gpus + 1; joins && run <= c.gpus_per_member; ++run) {
        result.push_back({part});
        result.back().front().run = run;
      }
    }
  }
  if (!model_.job.allow.mixed_stages || options.max_parts < 2) return result;
  const std::vector<Parts> singles = result;
  for (const Parts& a : singles) {
    for (const Parts& b : singles) {
      if (a.front().island_class >= b.front().island_class) continue;
      if (a.front().run > a.front().gpus || b.front().run > b.front().gpus) continue;
      if (const auto both = mixed(at, a.front(), b.front())) result.push_back(*both);
    }
  }
  return result;
}

// Replicas and parts of a mixed stage all hold the slice: each of them gets every other one's gradients. The other end
// of a tied embedding may be anywhere within reach.
Nanoseconds SearchTruth::crossing(const Space& space, const Parts& parts, int first, int last, Bytes volume) const {
  const IslandLevel& here = level(space.at);
  const int replicas = space.replicas;
  int narrowest = members(here, parts.front());
  for (const Part& part : parts) narrowest = std::min(narrowest, members(here, part));
  Nanoseconds total{0};
  const int holders = replicas * static_cast<int>(parts.size());
  if (holders > 1) {
    const auto inside = [&](const Part& part) { return with_replicas(space, part.island_class); };
    Link sync_group = link(here, parts.front(), parts.back(), inside(parts.front()));
    if (replicas > 1) {
      for (const Part& part : parts) sync_group = slower(sync_group, link(here, part, part, inside(part)));
    }
    total += cost::replica_sync(volume, holders, sync_group, narrowest);
  }
  const bool first_end = first == 0;
  const bool last_end = last == model_.block_count();
  if (model_.tied_embeddings && first_end != last_end) {
    const bool inside = space.reach.in_one_member;
    Link worst = link(here, parts.front(), parts.front(), inside);
    for (const Part& part : parts) {
      worst = slower(worst, link(here, part, part, inside));
      for (const int k : space.reach.classes) {
        const Part other{k, here.classes[static_cast<std::size_t>(k)].gpus_per_member, 0, 0};
        if (k != part.island_class) worst = slower(worst, link(here, part, other));
      }
    }
    const Bytes table(model_.vocabulary * model_.hidden * model_.job.gradient_bytes);
    total += cost::replica_sync(table, 2, worst, narrowest);
  }
  return total;
}

prune::Candidate SearchTruth::alone(const Space& space, const Parts& parts, int first, int last,
                                    const parallelizer::PartialPlan& plan) const {
  const Nanoseconds sync = plan.cost.gradient_sync + crossing(space, parts, first, last, plan.cost.gradient_volume);
  const Nanoseconds exposed = cost::exposed_sync(sync, plan.cost.backward);
  prune::Candidate stage;
  stage.F = plan.cost.forward.value();
  stage.T = stage.F + plan.cost.backward.value();
  stage.A = stage.T + exposed.value();
  stage.o = plan.cost.optimizer_step.value();
  stage.n_max = plan.n_max;
  if (space.chunks == 1) return stage;
  const std::int64_t beyond = stage.A - stage.T;
  stage.F = rounded_up(stage.F, space.chunks);
  stage.T = rounded_up(stage.T, space.chunks);
  stage.A = stage.T + beyond;
  stage.n_max *= space.chunks;
  return stage;
}

// A microbatch holds the larger of its activations and of what its weight gradients need.
std::optional<prune::Candidate> SearchTruth::halved(const Space& space, const Part& part, int first, int last,
                                                    const parallelizer::PartialPlan& plan,
                                                    prune::Candidate whole) const {
  const cluster::DeviceShape shape = cluster::make_shape(class_of(level(space.at), part), part.gpus);
  const auto units = cost::unit_costs(model_, shape, plan.strategy.degrees, part.samples);
  if (!units) return std::nullopt;
  const cost::PutOffCost own = cost::put_off_cost(model_, *units, model::signature(model_, first, last));
  whole.W = std::min(own.weight_gradient, plan.cost.backward).value();
  const Bytes each = std::max(own.held, plan.cost.activation);
  const Bytes room = shape.device.usable() - plan.cost.static_memory() - plan.cost.transient;
  if (each > Bytes(0)) whole.n_max = std::min(whole.n_max, room.value() / each.value());
  if (whole.W == 0 || whole.n_max < 1) return std::nullopt;
  return whole;
}

// Every plan, and for a mixed stage every pair of plans; nothing is pruned.
std::vector<prune::Candidate> SearchTruth::stages(const Space& space, const Parts& parts, int first, int last) const {
  std::vector<prune::Candidate> result;
  for (const Part& part : parts) {
    std::vector<prune::Candidate> own;
    for (const parallelizer::PartialPlan& plan : plans(space.at, part, first, last)) {
      own.push_back(alone(space, parts, first, last, plan));
      if (!space.put_off) continue;
      if (const auto without = halved(space, part, first, last, plan, own.back())) own.push_back(*without);
    }
    if (&part == &parts.front()) {
      result = own;
      continue;
    }
    std::vector<prune::Candidate> together;
    for (const prune::Candidate& x : result) {
      for (const prune::Candidate& y : own) {
        if ((x.W > 0) == (y.W > 0)) together.push_back(joined(x, y));
      }
    }
    result = together;
  }
  return result;
}

// Every part may have to send to every other: the dearest pair counts. A stage that shares its member with the next one
// must have a next one there.
chain::Price SearchTruth::boundary(const Space& space, const Parts& from, const Parts& to, int cut) const {
  const Bytes bytes(model::cut_bytes(model_, cut) * space.microbatch);
  const Part& end = from.front();
  const bool joined = end.run > end.gpus;
  const bool fits =
      to.size() == 1 && end.island_class == to.front().island_class && end.run - end.gpus == to.front().run;
  if (joined && !fits) return chain::Price::none();
  return way(space, from, to, joined, bytes);
}

chain::Price SearchTruth::way(const Space& space, const Parts& from, const Parts& to, bool joined, Bytes bytes) const {
  const std::size_t at = space.at;
  chain::Price dearest;
  for (const Part& a : from) {
    for (const Part& b : to) {
      const bool together = joined || in_one_member(space, a.island_class);
      const cost::BoundaryCost cost = cost::boundary_cost(bytes, link(level(at), a, b, together), members(level(at), a),
                                                          a.gpus, members(level(at), b), b.gpus);
      if (std::pair(cost.latency.value(), cost.occupancy.value()) > std::pair(dearest.latency, dearest.occupancy)) {
        dearest = {cost.latency.value(), cost.occupancy.value()};
      }
    }
  }
  return dearest;
}

// Whether R pipelines of these options have a place.
bool SearchTruth::can_be_placed(const Space& space, const std::vector<Parts>& all,
                                const std::vector<int>& options) const {
  const IslandLevel& here = level(space.at);
  std::vector<std::vector<int>> runs(here.classes.size());
  bool joined = false;
  for (const int option : options) {
    for (const Part& part : all[static_cast<std::size_t>(option)]) {
      if (!joined) runs[static_cast<std::size_t>(part.island_class)].push_back(part.run);
      joined = part.run > part.gpus;
    }
  }
  for (std::size_t k = 0; k < runs.size(); ++k) {
    if (in_one_member(space, static_cast<int>(k))) continue;  // units say it all
    std::vector<int> of_all;
    for (int r = 0; r < space.replicas; ++r) of_all.insert(of_all.end(), runs[k].begin(), runs[k].end());
    if (!test::can_place(here.classes[k], of_all)) return false;
  }
  return true;
}

std::optional<std::pair<int, int>> SearchTruth::alike() const {
  const std::vector<int>& types = model_.blocks;
  const int blocks = model_.block_count();
  std::pair<int, int> longest{0, 0};
  for (int first = 0; first < blocks; ++first) {
    int last = first;
    while (last < blocks && types[static_cast<std::size_t>(last)] == types[static_cast<std::size_t>(first)]) ++last;
    if (last - first > longest.second - longest.first) longest = {first, last};
  }
  const auto type = types[static_cast<std::size_t>(longest.first)];
  if (std::ranges::count(types, type) != longest.second - longest.first) return std::nullopt;
  return longest;
}

// What is unlike the rest lies in the first or last chunk of all, and chunks differ by no more than a block.
bool SearchTruth::can_be_stage(const Space& space, int first, int last) const {
  if (space.chunks == 1) return true;
  const auto run = alike();
  if (!run || last - first < space.chunks) return false;
  const int smallest = (last - first) / space.chunks;
  const int largest = static_cast<int>(rounded_up(last - first, space.chunks));
  const bool front = first >= run->first || (first == 0 && run->first <= smallest);
  const bool back = last <= run->second || (last == model_.block_count() && last - run->second <= largest);
  return front && back;
}

// Counted in passes of one chunk.
void SearchTruth::interleave(const Space& space, const std::vector<Parts>& all, chain::Program& program) const {
  if (space.chunks == 1) return;
  chain::Interleaving& interleaving = program.interleaving;
  interleaving.chunks = space.chunks;
  interleaving.sends_block = semantics_.transfers == runtime::Transfers::kForwardBlocking;
  for (std::int64_t group = 2; group <= program.microbatches; ++group) {
    for (std::int64_t stages = group; stages >= 2; --stages) {
      if (!runtime::interleaving_refusal(program.microbatches, stages, group).empty()) continue;
      interleaving.groups.push_back({group, stages});
      break;
    }
  }
  program.microbatches *= space.chunks;
  const auto run = alike();
  const int cut = run ? std::max(1, run->first) : 0;
  interleaving.around.assign(all.size(), all.size(), chain::Price::none());
  if (!run || cut == program.blocks) return;
  const Bytes bytes(model::cut_bytes(model_, cut) * space.microbatch);
  for (std::size_t from = 0; from < all.size(); ++from) {
    for (std::size_t to = 0; to < all.size(); ++to) {
      interleaving.around(from, to) = way(space, all[from], all[to], /*joined=*/false, bytes);
    }
  }
}

// Everything of one (level, R, b, reach, v), written down as a program for the enumeration of brute_force.cpp.
std::optional<std::int64_t> SearchTruth::best_of(const Space& space, const compose::SearchOptions& limits,
                                                 std::int64_t below) const {
  const std::size_t at = space.at;
  const int replicas = space.replicas;
  const std::vector<Parts> all = options(space, limits);
  chain::Program program;
  program.blocks = model_.block_count();
  program.classic_warmup = semantics_.warmup == runtime::Warmup::kClassic;
  program.blocking_transfers = semantics_.transfers == runtime::Transfers::kBlocking;
  program.microbatches = rounded_up(rounded_up(model_.job.global_batch, replicas), space.microbatch);
  for (int k = 0; k < static_cast<int>(level(at).classes.size()); ++k) program.inventory.push_back(share(space, k));
  if (limits.spend) {
    const bool counts_gpus = limits.spend->currency == compose::Currency::kGpus;
    for (const IslandClass& c : level(at).classes) {
      program.unit_spend.push_back(counts_gpus ? 1
                                               : static_cast<std::int64_t>(c.price_per_gpu_hour.value() * 1e6 + 0.5));
    }
    program.most_spend = limits.spend->most / replicas;
  }
  program.signature = {program.blocks + 1, program.blocks + 1, -1};
  std::vector<std::pair<int, int>> slices;
  for (int first = 0; first < program.blocks; ++first) {
    for (int last = first + 1; last <= program.blocks; ++last) {
      program.signature(first, last) = static_cast<int>(slices.size());
      slices.emplace_back(first, last);
    }
  }
  program.signatures = static_cast<int>(slices.size());
  for (const Parts& parts : all) {
    chain::Option option;
    option.key = program.keys++;
    for (const Part& part : parts) option.uses.push_back({part.island_class, part.gpus});
    program.options.push_back(option);
    std::vector<std::vector<prune::Candidate>> frontiers;
    for (const auto& [first, last] : slices) {
      const bool allowed = (model_.job.allow.pipeline || last - first == program.blocks) &&
                           is_between_cuts(first, last) && can_be_stage(space, first, last);
      frontiers.push_back(allowed ? stages(space, parts, first, last) : std::vector<prune::Candidate>{});
    }
    program.frontiers.add_row(frontiers);
  }
  for (int cut = 0; cut <= program.blocks; ++cut) {
    program.cut_kind.push_back(cut);
    Grid<chain::Price>& prices = program.prices.emplace_back(all.size(), all.size());
    if (cut == 0 || cut == program.blocks) continue;
    for (std::size_t from = 0; from < all.size(); ++from) {
      for (std::size_t to = 0; to < all.size(); ++to) prices(from, to) = boundary(space, all[from], all[to], cut);
    }
  }
  interleave(space, all, program);
  return brute_force(program, below,
                     [&](const std::vector<int>& options) { return can_be_placed(space, all, options); })
      .time;
}

// All classes, single members, and others where ends of an embedding are tied. Single members that hold a whole share
// are no space of their own, but one in which nothing is better.
// A member that has a GPU for each of several replicas may hold what they have of its class: any set of such classes.
std::vector<compose::Reach> SearchTruth::reaches(std::size_t at, int replicas) const {
  std::vector<compose::Reach> reaches = compose::reaches_of(level(at));
  if (!model_.job.allow.pipeline) reaches.resize(1);
  const auto first = reaches.front();
  if (!model_.tied_embeddings) {
    std::erase_if(reaches, [&](const compose::Reach& r) { return !r.in_one_member && !(r == first); });
  }
  const auto& classes = level(at).classes;
  for (unsigned set = 1; replicas > 1 && set < 1U << classes.size(); ++set) {
    compose::Reach reach{first.classes, false, {}};
    bool fits = true;
    for (const IslandClass& c : classes) {
      if ((set >> static_cast<unsigned>(c.id) & 1U) == 0) continue;
      fits = fits && c.member_count() > 1 && replicas <= c.gpus_per_member;
      reach.with_replicas.push_back(c.id);
    }
    if (!fits) continue;
    if (reach.with_replicas.size() == 1) reaches.push_back({reach.with_replicas, true, reach.with_replicas});
    reaches.push_back(std::move(reach));
  }
  return reaches;
}

std::optional<std::int64_t> SearchTruth::best(const compose::SearchOptions& limits) const {
  std::optional<std::int64_t> result;
  const std::int64_t batch = model_.job.global_batch;
  for (std::size_t at = 0; at < job_.hierarchy.levels.size(); ++at) {
    for (int replicas = 1; replicas <= std::min<std::int64_t>(batch, limits.max_replicas); ++replicas) {
      if (!is_listed_count(job_.hierarchy, level(at), replicas) || (replicas > 1 && !model_.job.allow.replicas))
        continue;
      const std::int64_t own = rounded_up(batch, replicas);
      for (std::int64_t b = 1; b <= own; ++b) {
        const std::int64_t fixed = model_.job.microbatch;
        if (fixed > 0 ? b != fixed : !is_listed_size(job_.hierarchy, b, own)) continue;
        for (const compose::Reach& reach : reaches(at, replicas)) {
          for (const int chunks : limits.constraints.chunks) {
            const auto time = best_of({at, replicas, b, reach, chunks, limits.constraints.put_off}, limits,
                                      result.value_or(INT64_MAX));
            if (better(time, result)) result = time;
          }
        }
      }
    }
  }
  return result;
}

// GPUs of the member from this part on, over the stages behind it that share it.
int SearchTruth::run_at(const compose::Composition& composition, const compose::StageChoice& stage,
                        const compose::PartChoice& part, const Space& space) const {
  if (in_one_member(space, part.island_class) || part.member == compose::PartChoice::kAnyMember) return part.gpus;
  int run = 0;
  for (const compose::StageChoice& other : composition.stages) {
    const compose::PartChoice& own = other.parts.front();
    const bool shares = other.parts.size() == 1 && own.island_class == part.island_class && own.member == part.member;
    if (other.first >= stage.first && shares) run += own.gpus;
  }
  return run;
}

std::set<std::int64_t> SearchTruth::prices(const compose::Composition& composition, bool put_off) const {
  const auto at = static_cast<std::size_t>(composition.level);
  std::set<std::int64_t> result;
  for (const compose::Reach& reach : reaches(at, composition.replicas)) {
    const auto time =
        price({at, composition.replicas, composition.microbatch, reach, composition.chunks, put_off}, composition);
    if (time) result.insert(*time);
  }
  return result;
}

std::optional<std::int64_t> SearchTruth::price(const Space& space, const compose::Composition& composition) const {
  const std::size_t at = space.at;
  const IslandLevel& here = level(at);
  const std::int64_t own_batch = rounded_up(model_.job.global_batch, composition.replicas);
  if (composition.samples != model_.job.global_batch) return {};
  if (rounded_up(own_batch, composition.microbatch) != composition.microbatches) return {};
  std::vector<int> used(here.classes.size(), 0);
  std::vector<prune::Candidate> chain;
  std::vector<chain::Price> hops;
  std::vector<Parts> all;
  std::vector<int> numbers;
  int next_block = 0;
  for (const compose::StageChoice& stage : composition.stages) {
    if (stage.first != next_block || stage.last <= stage.first) return {};
    if (!is_between_cuts(stage.first, stage.last) || !can_be_stage(space, stage.first, stage.last)) return {};
    next_block = stage.last;
    Parts parts;
    std::int64_t samples = 0;
    for (const compose::PartChoice& part : stage.parts) {
      parts.push_back({part.island_class, part.gpus, part.samples, run_at(composition, stage, part, space)});
      if (std::ranges::find(space.reach.classes, part.island_class) == space.reach.classes.end()) return {};
      samples += part.samples;
      used[static_cast<std::size_t>(part.island_class)] += part.gpus * composition.replicas;
      if (!is_shape(class_of(here, parts.back()), part.gpus)) return {};
    }
    if (samples != composition.microbatch) return {};
    std::optional<prune::Candidate> together;
    std::optional<prune::Candidate> apart;  // with weight gradients put off
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const auto offered = plans(at, parts[p], stage.first, stage.last);
      const auto same = std::find_if(offered.begin(), offered.end(), [&](const parallelizer::PartialPlan& plan) {
        return plan.opaque == stage.parts[p].plan.opaque && plan.cost == stage.parts[p].plan.cost &&
               plan.n_max == stage.parts[p].plan.n_max;
      });
      if (same == offered.end()) return {};
      const prune::Candidate own = alone(space, parts, stage.first, stage.last, *same);
      const auto without = halved(space, parts[p], stage.first, stage.last, *same, own);
      if (p == 0) {
        apart = without;
      } else if (apart) {
        apart = without ? std::optional(joined(*apart, *without)) : std::nullopt;
      }
      together = together ? joined(*together, own) : own;
    }
    if (space.put_off && apart && apart->n_max >= stage.in_flight) together = apart;
    if (!chain.empty()) hops.push_back(boundary(space, all.back(), parts, stage.first));
    chain.push_back(*together);
    numbers.push_back(static_cast<int>(all.size()));
    all.push_back(parts);
  }
  if (next_block != model_.block_count()) return {};
  for (std::size_t k = 0; k < used.size(); ++k) {
    if (used[k] > share(space, static_cast<int>(k)) * composition.replicas) return {};
  }
  if (!can_be_placed(space, all, numbers)) return {};
  return form(space, composition, std::move(chain), std::move(hops), all);
}

// The program of brute_force.cpp with the composition's stages as its only options.
std::optional<std::int64_t> SearchTruth::form(const Space& space, const compose::Composition& composition,
                                              std::vector<prune::Candidate> chain, std::vector<chain::Price> hops,
                                              const std::vector<Parts>& all) const {
  if (space.chunks == 1) {
    return semantics_.transfers == runtime::Transfers::kBlocking ? blocking_form(chain, hops, composition.microbatches)
                                                                 : closed_form(chain, hops, composition.microbatches);
  }
  chain::Program program;
  program.blocks = model_.block_count();
  program.microbatches = composition.microbatches;
  interleave(space, all, program);
  hops.push_back(program.interleaving.around(all.size() - 1, std::size_t{0}));
  const bool has_group = std::ranges::any_of(program.interleaving.groups, [&](const chain::MicrobatchGroup& group) {
    return group.microbatches == composition.group;
  });
  return has_group ? interleaved_form(chain, hops, program.interleaving, program.microbatches) : std::nullopt;
}

}  // namespace tangram::tests
