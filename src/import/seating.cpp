#include "seating.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tangram/base/spelling.hpp"
#include "tangram/profiles/gpu_names.hpp"

namespace tangram::importing {

namespace {

struct Chair {
  plan::GpuSlot gpu;
  const std::string* device = nullptr;
  int host = 0;  ///< position in the order of hosts
  bool taken = false;
};

/// Files shorten names, as "A100" of "A100-80GB-SXM", or have their own.
bool is_called(const std::string& device, const std::string& name) {
  const auto same = [](char a, char b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return lower(a) == lower(b);
  };
  const bool begins = name.size() <= device.size() && std::equal(name.begin(), name.end(), device.begin(), same);
  return begins || profiles::may_mean(name, device);
}

bool fits(const Wish& wish, const Chair& chair) {
  return !chair.taken && (wish.node < 0 || wish.node == chair.host) &&
         (wish.device.empty() || is_called(*chair.device, wish.device));
}

std::string text_of(const Wish& wish) {
  std::string text = wish.device.empty() ? "GPU" : wish.device;
  if (wish.node >= 0) text += fmt::format(" of node {}", wish.node);
  return text;
}

/// The device of GPU `number` of a node, as the runtime numbers them: groups count on.
const cluster::GpuType* device_at(const cluster::Node& node, int number) {
  for (const cluster::DeviceGroup& group : node.groups) {
    if (number < group.count) return &group.device;
    number -= group.count;
  }
  return nullptr;
}

std::vector<Chair> chairs_of_fleet(const cluster::Fleet& fleet) {
  std::vector<Chair> chairs;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    int number = 0;
    for (const cluster::DeviceGroup& group : fleet.nodes[n].groups) {
      for (int i = 0; i < group.count; ++i) {
        chairs.push_back({{n, number++, 0}, &group.device.name, static_cast<int>(n), false});
      }
    }
  }
  return chairs;
}

/// GPUs as the files name them, each of which has to be in the fleet once.
Expected<std::vector<Chair>> chairs_of_files(const std::vector<Seat>& seats, const cluster::Fleet& fleet) {
  std::map<std::string, std::size_t> nodes;
  std::vector<std::string> names;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    nodes.emplace(fleet.nodes[n].name, n);
    names.push_back(fleet.nodes[n].name);
  }
  std::vector<Chair> chairs;
  std::map<std::string, int> hosts;
  std::set<std::pair<std::size_t, int>> seen;
  Diagnostics wrong;
  for (const Seat& seat : seats) {
    const auto node = nodes.find(seat.host);
    const bool fresh = !hosts.contains(seat.host);
    const int host = hosts.try_emplace(seat.host, static_cast<int>(hosts.size())).first->second;
    if (node == nodes.end()) {
      const auto near = closest(seat.host, names);
      if (fresh) {
        wrong.push_back(at(seat.place, "unknown-host", fmt::format("the cluster has no host \"{}\"", seat.host),
                           near ? fmt::format("did you mean \"{}\"?", *near) : ""));
      }
      continue;
    }
    const cluster::GpuType* device = device_at(fleet.nodes[node->second], seat.gpu);
    if (device == nullptr) {
      wrong.push_back(
          at(seat.place, "unknown-gpu", fmt::format("the cluster's {} has no GPU {}", seat.host, seat.gpu)));
    } else if (!seen.emplace(node->second, seat.gpu).second) {
      wrong.push_back(at(seat.place, "gpu-twice", fmt::format("GPU {} of {} has a rank already", seat.gpu, seat.host)));
    } else {
      chairs.push_back({{node->second, seat.gpu, 0}, &device->name, host, false});
    }
  }
  if (!wrong.empty()) return fail(std::move(wrong));
  return chairs;
}

/// The GPUs type by type, those of each as they were; types that are not named are left out.
Expected<std::vector<Chair>> by_type(const std::vector<Chair>& chairs, const std::vector<DeviceName>& types) {
  std::vector<Chair> sorted;
  Diagnostics wrong;
  for (const DeviceName& type : types) {
    const std::size_t before = sorted.size();
    std::ranges::copy_if(chairs, std::back_inserter(sorted),
                         [&](const Chair& chair) { return is_called(*chair.device, type.name); });
    if (sorted.size() > before) continue;
    wrong.push_back(at(type.place, "unknown-gpu-type", fmt::format("the cluster has no GPU of type {}", type.name)));
  }
  if (!wrong.empty()) return fail(std::move(wrong));
  return sorted;
}

Expected<std::vector<Chair>> chairs_of(const Job& job, const cluster::Fleet& fleet) {
  Expected<std::vector<Chair>> chairs = chairs_of_fleet(fleet);
  if (!job.seats.empty()) chairs = chairs_of_files(job.seats, fleet);
  if (!chairs || job.device_order.empty()) return chairs;
  return by_type(*chairs, job.device_order);
}

/// Stages, as (pipeline, depth), in the order of their ranks.
std::vector<std::pair<std::size_t, std::size_t>> stages_by_rank(const Job& job) {
  std::vector<std::pair<std::size_t, std::size_t>> stages;
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) {
    for (std::size_t depth = 0; depth < job.pipelines[p].stages.size(); ++depth) stages.emplace_back(p, depth);
  }
  if (job.order == RankOrder::kPipelines) return stages;
  std::ranges::stable_sort(stages, {}, &std::pair<std::size_t, std::size_t>::second);
  return stages;
}

class Usher {
 public:
  explicit Usher(std::vector<Chair> chairs) : chairs_(std::move(chairs)) {}

  Expected<ReplicaGpus> take(const Replica& replica, const Place& place) {
    ReplicaGpus gpus;
    for (const std::size_t chair : choose(replica)) {
      chairs_[chair].taken = true;
      gpus.push_back(chairs_[chair].gpu);
    }
    while (first_free_ < chairs_.size() && chairs_[first_free_].taken) ++first_free_;
    if (gpus.size() == replica.gpus.size()) return gpus;
    const Wish& missing = replica.gpus[gpus.size()];
    return fail(at(place, "too-few-gpus",
                   fmt::format("no {} is left: {} of {} GPUs are taken", text_of(missing), taken(), chairs_.size()),
                   "give the cluster that the job runs on, or its host file"));
  }

 private:
  /// One chair for each wish, as far as there are any.
  std::vector<std::size_t> choose(const Replica& replica) const {
    const bool wishes =
        std::ranges::any_of(replica.gpus, [](const Wish& wish) { return wish.node >= 0 || !wish.device.empty(); });
    if (!wishes) return from(replica, first_free_, chairs_.size());
    for (std::size_t first = 0; first < chairs_.size();) {
      std::size_t end = first;
      while (end < chairs_.size() && chairs_[end].host == chairs_[first].host) ++end;
      auto chosen = from(replica, first, end);
      if (chosen.size() == replica.gpus.size()) return chosen;
      first = end;
    }
    return from(replica, first_free_, chairs_.size());
  }

  std::vector<std::size_t> from(const Replica& replica, std::size_t first, std::size_t end) const {
    std::vector<std::size_t> chosen;
    for (const Wish& wish : replica.gpus) {
      std::size_t chair = first;
      while (chair < end && (!fits(wish, chairs_[chair]) || std::ranges::find(chosen, chair) != chosen.end())) ++chair;
      if (chair == end) return chosen;
      chosen.push_back(chair);
    }
    return chosen;
  }

  std::int64_t taken() const { return std::ranges::count(chairs_, true, &Chair::taken); }

  std::vector<Chair> chairs_;
  std::size_t first_free_ = 0;
};

}  // namespace

std::size_t seat_count(const Job& job, const cluster::Fleet& fleet) {
  return job.seats.empty() ? static_cast<std::size_t>(fleet.gpu_count()) : job.seats.size();
}

Expected<Seating> seat(const Job& job, const cluster::Fleet& fleet) {
  auto chairs = chairs_of(job, fleet);
  if (!chairs) return fail(std::move(chairs.error()));
  Usher usher(std::move(*chairs));
  Seating seating(job.pipelines.size());
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) seating[p].resize(job.pipelines[p].stages.size());
  for (const auto& [p, depth] : stages_by_rank(job)) {
    const JobStage& stage = job.pipelines[p].stages[depth];
    for (const Replica& replica : stage.replicas) {
      auto gpus = usher.take(replica, stage.place);
      if (!gpus) return fail(std::move(gpus.error()));
      seating[p][depth].push_back(std::move(*gpus));
    }
  }
  return seating;
}

}  // namespace tangram::importing
