#include "tangram/evolve/resharding.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "holdings.hpp"
#include "tangram/cost/communication.hpp"

namespace tangram::evolve {

namespace {

/// Which GPUs a fleet has; all of them where no fleet is given.
class Present {
 public:
  explicit Present(const cluster::Fleet* fleet) : any_(fleet == nullptr) {
    if (any_) return;
    for (const cluster::Node& node : fleet->nodes) {
      for (const cluster::DeviceGroup& group : node.groups) gpus_[node.name] += group.count;
    }
  }
  [[nodiscard]] bool has(const Gpu& gpu) const {
    if (any_) return true;
    const auto found = gpus_.find(gpu.first);
    return found != gpus_.end() && gpu.second < found->second;
  }

 private:
  bool any_;
  std::map<std::string, int> gpus_;
};

Interval common(const Interval& a, const Interval& b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// What a host has of one tensor.
struct Source {
  std::string host;
  Interval interval;
  auto operator<=>(const Source&) const = default;
};

class ReshardingPlanner {
 public:
  ReshardingPlanner(const model::Job& job, const cluster::Fleet* fleet, Resharding& result)
      : job_(job), present_(fleet), result_(result) {}

  /// Brings every holding of `wanted` together from what the GPUs of `held` have.
  void move(const Tensor& tensor, const std::vector<Holding>& held, const std::vector<Holding>& wanted) {
    optimizer_ = tensor.optimizer;
    own_.clear();
    sources_.clear();
    for (const Holding& holding : held) {
      if (!present_.has(holding.gpu)) continue;
      own_[holding.gpu] = holding.interval;
      sources_.push_back({holding.gpu.first, holding.interval});
    }
    std::ranges::sort(sources_);
    sources_.erase(std::ranges::unique(sources_).begin(), sources_.end());
    for (const Holding& holding : wanted) fill(holding);
  }

  void finish() {
    for (const auto& [hosts, state] : transfers_) {
      (hosts.first == hosts.second ? result_.within : result_.between) += state;
      result_.transfers.push_back({hosts.first, hosts.second, state});
    }
  }

 private:
  void fill(const Holding& holding) {
    Interval kept{holding.interval.begin, holding.interval.begin};
    if (const auto own = own_.find(holding.gpu); own != own_.end()) {
      const Interval shared = common(own->second, holding.interval);
      if (shared.size() > 0) kept = shared;
    }
    count(result_.kept, kept.size());
    fetch(holding.gpu.first, {holding.interval.begin, kept.begin});
    fetch(holding.gpu.first, {kept.end, holding.interval.end});
  }

  /// From left to right, each piece from who has it longest: the own host first, then the host that sends least so far.
  void fetch(const std::string& host, Interval missing) {
    while (missing.size() > 0) {
      const Source* best = nullptr;
      for (const Source& source : sources_) {
        if (source.interval.begin > missing.begin || source.interval.end <= missing.begin) continue;
        if (best == nullptr || preference(source, host) < preference(*best, host)) best = &source;
      }
      const std::int64_t end = std::min(missing.end, best != nullptr ? best->interval.end : next_begin(missing));
      const std::int64_t parameters = end - missing.begin;
      if (best == nullptr) {
        count(result_.checkpoint, parameters);
      } else {
        count(transfers_[{best->host, host}], parameters);
        if (best->host != host) sent_[best->host] += bytes_of(parameters);
      }
      missing.begin = end;
    }
  }

  [[nodiscard]] std::tuple<bool, Bytes, std::int64_t> preference(const Source& source, const std::string& host) const {
    const auto sent = sent_.find(source.host);
    return {source.host != host, sent == sent_.end() ? Bytes(0) : sent->second, -source.interval.end};
  }

  /// Where the next piece begins that somebody has.
  [[nodiscard]] std::int64_t next_begin(const Interval& missing) const {
    std::int64_t next = missing.end;
    for (const Source& source : sources_) {
      if (source.interval.begin > missing.begin) next = std::min(next, source.interval.begin);
    }
    return next;
  }

  [[nodiscard]] Bytes bytes_of(std::int64_t parameters) const {
    return Bytes(parameters * (optimizer_ ? job_.optimizer.state_bytes_per_parameter : job_.parameter_bytes));
  }
  void count(State& state, std::int64_t parameters) const {
    (optimizer_ ? state.optimizer : state.parameters) += bytes_of(parameters);
  }

  const model::Job& job_;
  Present present_;
  Resharding& result_;
  bool optimizer_ = false;
  std::map<Gpu, Interval> own_;
  std::vector<Source> sources_;
  std::map<std::string, Bytes> sent_;
  std::map<std::pair<std::string, std::string>, State> transfers_;
};

}  // namespace

Resharding resharding(const plan::LaunchPlan& before, const plan::LaunchPlan& after, const cluster::Fleet* fleet) {
  std::set<int> cuts = cuts_of(before);
  cuts.merge(cuts_of(after));
  const Holdings held = holdings_of(before, cuts);
  Resharding result;
  ReshardingPlanner planner(after.model.job, fleet, result);
  for (const auto& [tensor, wanted] : holdings_of(after, cuts)) {
    const auto found = held.find(tensor);
    planner.move(tensor, found == held.end() ? std::vector<Holding>{} : found->second, wanted);
  }
  planner.finish();
  return result;
}

Nanoseconds resharding_time(const Resharding& resharding, const cluster::Fleet& fleet) {
  std::map<std::string, std::size_t> nodes;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) nodes[fleet.nodes[n].name] = n;
  std::vector<Bytes> in(fleet.nodes.size());
  std::vector<Bytes> out(fleet.nodes.size());
  double longest = 0;
  const auto take = [&](Bytes bytes, const cluster::Link& link, double share) {
    if (link.bandwidth.value() <= 0) return;
    longest = std::max(longest, bytes.as_double() / (link.bandwidth.value() * share));
  };
  for (const HostTransfer& transfer : resharding.transfers) {
    const auto from = nodes.find(transfer.from);
    const auto to = nodes.find(transfer.to);
    if (from == nodes.end() || to == nodes.end()) continue;
    const Bytes bytes = transfer.state.total();
    if (from == to) {
      take(bytes, fleet.nodes[to->second].groups.front().link, 1);
      continue;
    }
    out[from->second] += bytes;
    in[to->second] += bytes;
    take(bytes, fleet.between(from->second, to->second), cost::kNetworkShare);
  }
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    take(std::max(in[n], out[n]), fleet.nodes[n].network, cost::kNetworkShare);
  }
  return ceil_to_nanoseconds(longest);
}

}  // namespace tangram::evolve
