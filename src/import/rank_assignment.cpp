#include "rank_assignment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "tangram/base/at.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/cluster/gpu_names.hpp"

namespace tangram::importing {

namespace {

struct CandidateGpu {
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
  return begins || cluster::may_mean(name, device);
}

bool fits(const GpuRequest& request, const CandidateGpu& candidate) {
  return !candidate.taken && (request.node < 0 || request.node == candidate.host) &&
         (request.device.empty() || is_called(*candidate.device, request.device));
}

std::string text_of(const GpuRequest& request) {
  std::string text = request.device.empty() ? "GPU" : request.device;
  if (request.node >= 0) text += fmt::format(" of node {}", request.node);
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

std::vector<CandidateGpu> candidates_of_fleet(const cluster::Fleet& fleet) {
  std::vector<CandidateGpu> candidates;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    int number = 0;
    for (const cluster::DeviceGroup& group : fleet.nodes[n].groups) {
      for (int i = 0; i < group.count; ++i) {
        candidates.push_back({{n, number++, 0}, &group.device.name, static_cast<int>(n), false});
      }
    }
  }
  return candidates;
}

/// GPUs as the files name them, each of which has to be in the fleet once.
Expected<std::vector<CandidateGpu>> candidates_of_files(const std::vector<RankGpu>& ranks,
                                                        const cluster::Fleet& fleet) {
  std::map<std::string, std::size_t> nodes;
  std::vector<std::string> names;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
    nodes.emplace(fleet.nodes[n].name, n);
    names.push_back(fleet.nodes[n].name);
  }
  std::vector<CandidateGpu> candidates;
  std::map<std::string, int> hosts;
  std::set<std::pair<std::size_t, int>> seen;
  Diagnostics wrong;
  for (const RankGpu& rank : ranks) {
    const auto node = nodes.find(rank.host);
    const bool fresh = !hosts.contains(rank.host);
    const int host = hosts.try_emplace(rank.host, static_cast<int>(hosts.size())).first->second;
    if (node == nodes.end()) {
      const auto near = closest(rank.host, names);
      if (fresh) {
        wrong.push_back(at(rank.place, "unknown-host", fmt::format("the cluster has no host \"{}\"", rank.host),
                           near ? fmt::format("did you mean \"{}\"?", *near) : ""));
      }
      continue;
    }
    const cluster::GpuType* device = device_at(fleet.nodes[node->second], rank.gpu);
    if (device == nullptr) {
      wrong.push_back(
          at(rank.place, "unknown-gpu", fmt::format("the cluster's {} has no GPU {}", rank.host, rank.gpu)));
    } else if (!seen.emplace(node->second, rank.gpu).second) {
      wrong.push_back(at(rank.place, "gpu-twice", fmt::format("GPU {} of {} has a rank already", rank.gpu, rank.host)));
    } else {
      candidates.push_back({{node->second, rank.gpu, 0}, &device->name, host, false});
    }
  }
  if (!wrong.empty()) return fail(std::move(wrong));
  return candidates;
}

/// The GPUs type by type, those of each as they were; types that are not named are left out.
Expected<std::vector<CandidateGpu>> by_type(const std::vector<CandidateGpu>& candidates,
                                            const std::vector<DeviceName>& types) {
  std::vector<CandidateGpu> sorted;
  Diagnostics wrong;
  for (const DeviceName& type : types) {
    const std::size_t before = sorted.size();
    std::ranges::copy_if(candidates, std::back_inserter(sorted),
                         [&](const CandidateGpu& candidate) { return is_called(*candidate.device, type.name); });
    if (sorted.size() > before) continue;
    wrong.push_back(at(type.place, "unknown-gpu-type", fmt::format("the cluster has no GPU of type {}", type.name)));
  }
  if (!wrong.empty()) return fail(std::move(wrong));
  return sorted;
}

/// The GPUs in the order that a job asks for; those behind its last one as they were. Too few are left to whoever asks
/// for the missing ones.
void put_in_order(const std::vector<int>& order, std::vector<CandidateGpu>& candidates) {
  if (order.size() > candidates.size()) return;
  std::vector<CandidateGpu> sorted;
  for (const int place : order) sorted.push_back(tangram::at(candidates, place));
  sorted.insert(sorted.end(), candidates.begin() + std::ssize(order), candidates.end());
  candidates = std::move(sorted);
}

Expected<std::vector<CandidateGpu>> candidates_of(const Job& job, const cluster::Fleet& fleet) {
  Expected<std::vector<CandidateGpu>> candidates = candidates_of_fleet(fleet);
  if (!job.ranks.empty()) candidates = candidates_of_files(job.ranks, fleet);
  if (candidates) put_in_order(job.gpu_order, *candidates);
  if (!candidates || job.device_order.empty()) return candidates;
  return by_type(*candidates, job.device_order);
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

class GpuAllocator {
 public:
  explicit GpuAllocator(std::vector<CandidateGpu> candidates) : candidates_(std::move(candidates)) {}

  Expected<ReplicaGpus> allocate(const Replica& replica, const Place& place) {
    ReplicaGpus gpus;
    for (const std::size_t candidate : choose(replica)) {
      candidates_[candidate].taken = true;
      gpus.push_back(candidates_[candidate].gpu);
    }
    while (first_free_ < candidates_.size() && candidates_[first_free_].taken) ++first_free_;
    if (gpus.size() == replica.gpus.size()) return gpus;
    const GpuRequest& missing = replica.gpus[gpus.size()];
    return fail(at(place, "too-few-gpus",
                   fmt::format("no {} is left: {} of {} GPUs are taken", text_of(missing), taken(), candidates_.size()),
                   "give the cluster that the job runs on, or its host file"));
  }

 private:
  /// One GPU for each request, as far as there are any.
  std::vector<std::size_t> choose(const Replica& replica) const {
    const bool constrained = std::ranges::any_of(
        replica.gpus, [](const GpuRequest& request) { return request.node >= 0 || !request.device.empty(); });
    if (!constrained) return from(replica, first_free_, candidates_.size());
    for (std::size_t first = 0; first < candidates_.size();) {
      std::size_t end = first;
      while (end < candidates_.size() && candidates_[end].host == candidates_[first].host) ++end;
      auto chosen = from(replica, first, end);
      if (chosen.size() == replica.gpus.size()) return chosen;
      first = end;
    }
    return from(replica, first_free_, candidates_.size());
  }

  std::vector<std::size_t> from(const Replica& replica, std::size_t first, std::size_t end) const {
    std::vector<std::size_t> chosen;
    for (const GpuRequest& request : replica.gpus) {
      std::size_t candidate = first;
      while (candidate < end &&
             (!fits(request, candidates_[candidate]) || std::ranges::find(chosen, candidate) != chosen.end()))
        ++candidate;
      if (candidate == end) return chosen;
      chosen.push_back(candidate);
    }
    return chosen;
  }

  std::int64_t taken() const { return std::ranges::count(candidates_, true, &CandidateGpu::taken); }

  std::vector<CandidateGpu> candidates_;
  std::size_t first_free_ = 0;
};

}  // namespace

std::size_t available_gpus(const Job& job, const cluster::Fleet& fleet) {
  return job.ranks.empty() ? static_cast<std::size_t>(fleet.gpu_count()) : job.ranks.size();
}

Expected<RankAssignment> assign_ranks(const Job& job, const cluster::Fleet& fleet) {
  auto candidates = candidates_of(job, fleet);
  if (!candidates) return fail(std::move(candidates.error()));
  GpuAllocator allocator(std::move(*candidates));
  RankAssignment assignment(job.pipelines.size());
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) assignment[p].resize(job.pipelines[p].stages.size());
  for (const auto& [p, depth] : stages_by_rank(job)) {
    const JobStage& stage = job.pipelines[p].stages[depth];
    for (const Replica& replica : stage.replicas) {
      auto gpus = allocator.allocate(replica, stage.place);
      if (!gpus) return fail(std::move(gpus.error()));
      assignment[p][depth].push_back(std::move(*gpus));
    }
  }
  return assignment;
}

}  // namespace tangram::importing
