#include "block_rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "tangram/base/at.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/relax/state_memory.hpp"

namespace tangram::relax {

namespace {

using cost::Degrees;

constexpr double kManySamples = 1 << 20;  // fixed costs do not count any more
constexpr double kLimitShare = 0.999;     // and neither does what rounding to waves of tiles takes

// Links of a class at their best: no island of any level has better ones.
struct Network {
  cluster::Link best{BytesPerSecond(0), Nanoseconds::max()};  // between members of a stage
  double crossing = 0;                                        // bytes/s of a member with anything else

  void see(const cluster::Link& link) {
    best.bandwidth = std::max(best.bandwidth, link.bandwidth);
    best.latency = std::min(best.latency, link.latency);
  }
};

bool is_alike(const cluster::IslandClass& a, const cluster::IslandClass& b) {
  return a.device.name == b.device.name && a.gpus_per_member == b.gpus_per_member;
}

Network network_of(const cluster::IslandHierarchy& hierarchy, const cluster::IslandClass& island_class) {
  Network network;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    for (const cluster::IslandClass& c : level.classes) {
      if (!is_alike(c, island_class)) continue;
      network.see(c.between_members);
      network.see(c.between_islands);
      for (const cluster::IslandClass& other : level.classes) {
        network.crossing = std::max(network.crossing, level.link(c.id, other.id).bandwidth.value());
      }
      if (c.member_count() > 1) continue;
      const double inner = cluster::bandwidth_among(c.device, c.inside_member, 2).value() * c.gpus_per_member;
      network.crossing = std::max(network.crossing, inner);
    }
  }
  network.crossing = std::max(network.crossing, network.best.bandwidth.value()) * cost::kNetworkShare;
  return network;
}

// The smallest shape of a multiple of so many GPUs, or none in the class: a part of a member, or whole members, of
// which tensor parallelism divides each.
std::optional<cluster::DeviceShape> smallest_shape(const cluster::IslandClass& island_class, const Network& network,
                                                   int gpus, int tp) {
  const int member = island_class.gpus_per_member;
  cluster::DeviceShape shape{island_class.device, 1, gpus, island_class.inside_member, network.best};
  if (gpus <= member) return shape;
  if (member % tp != 0) return std::nullopt;
  const int whole = std::lcm(gpus, member);
  if (whole > island_class.gpu_count()) return std::nullopt;
  shape.nodes = whole / member;
  shape.per_node = member;
  return shape;
}

// Block rates of one item on one class.
class Walker {
 public:
  Walker(const model::Model& model, const cluster::IslandClass& island_class, const Network& network, std::size_t item,
         bool measured_links, bool measured_memory, const BoundTuning& tuning, std::vector<BlockRate>& out)
      : model_(model),
        class_(island_class),
        network_(network),
        item_(item),
        measured_links_(measured_links),
        measured_memory_(measured_memory),
        tuning_(tuning),
        out_(out) {
    alone_.head = is_head();
    if (!is_head()) alone_.runs = {{static_cast<int>(item), 1}};
  }

  void run() {
    const model::Techniques& allow = model_.job.allow;
    for (int tp = 1; tp <= class_.gpus_per_member; ++tp) {
      if (tp > 1 && !allow.tp) break;
      for (int cp = 1; tp * cp <= class_.gpu_count() && context_fits(cp); cp *= 2) {
        const Degrees degrees{.tp = tp, .cp = cp, .dp = 1, .ep = 1, .etp = 1, .sequence_parallel = false};
        add_expert_layouts(degrees);
        if (tp == 1 || !allow.sp) continue;
        Degrees sharded = degrees;
        sharded.sequence_parallel = true;
        add_expert_layouts(sharded);
      }
    }
  }

 private:
  [[nodiscard]] bool is_head() const { return item_ == model_.types.size(); }

  [[nodiscard]] bool context_fits(int cp) const {
    std::int64_t tokens = 0;
    for (const model::BlockType& type : model_.types) tokens = std::max(tokens, type.tokens);
    return cp == 1 || (model_.job.allow.cp && tokens >= 2LL * cp);
  }

  void add_expert_layouts(Degrees degrees) {
    const int experts = is_head() ? 0 : model_.types[item_].feed_forward.experts;
    if (experts == 0) return add(degrees);
    const int tp = degrees.tp;
    for (const int etp : {1, tp}) {
      degrees.etp = etp;
      for (degrees.ep = 1; degrees.ep <= experts; ++degrees.ep) {
        if (degrees.ep > 1 && !model_.job.allow.ep) break;
        if (experts % degrees.ep == 0) add(degrees);
      }
      if (tp == 1) break;
    }
  }

  void add(Degrees degrees) {
    const int gpus = std::lcm(degrees.tp * degrees.cp, degrees.ep * degrees.etp);
    const auto shape = smallest_shape(class_, network_, gpus, degrees.tp);
    if (!shape) return;
    degrees.dp = shape->gpus() / (degrees.tp * degrees.cp);
    if (!cost::why_unsupported(model_, alone_, degrees, degrees.dp).empty()) return;
    BlockRate block_rate = with_sync(degrees);
    const BlockRate many = timed(block_rate, degrees, *shape, kManySamples);
    block_rate.forward_limit = many.forward / kManySamples * kLimitShare;
    block_rate.backward_limit = many.backward / kManySamples * kLimitShare;
    for (std::int64_t samples = 1; samples <= model_.job.global_batch;) {
      const std::int64_t next = samples < tuning_.exact_samples
                                    ? samples + 1
                                    : static_cast<std::int64_t>(static_cast<double>(samples) * tuning_.sample_step) + 1;
      if (!fits(degrees, static_cast<double>(samples))) break;
      block_rate.samples = samples;
      block_rate.last = std::min(next - 1, model_.job.global_batch);
      out_.push_back(timed(with_memory(block_rate, degrees), degrees, *shape, static_cast<double>(samples)));
      samples = next;
    }
  }

  [[nodiscard]] BlockRate timed(BlockRate block_rate, const Degrees& degrees, const cluster::DeviceShape& shape,
                                double samples) const {
    if (is_head()) {
      add_time(block_rate, cost::head_time(model_, degrees, samples, shape));
      return block_rate;
    }
    const model::BlockType& block = model_.types[item_];
    add_time(block_rate, cost::block_time(block, model_.job, degrees, samples, shape));
    if (block.connector) add_time(block_rate, cost::connector_time(block, model_.job, degrees, samples, shape));
    return block_rate;
  }

  // Measured exchanges may be faster than the model's.
  void add_time(BlockRate& block_rate, const cost::BlockTime& time) const {
    const cost::Passes exchanges = measured_links_ ? cost::Passes{} : time.communication;
    block_rate.forward += time.compute.forward + exchanges.forward;
    block_rate.backward += time.compute.backward + exchanges.backward;
  }

  // One block alone, with one microbatch in flight: parameters and gradients are whole while it runs at every ZeRO
  // stage, and so are its activations at every mode of recompute.
  [[nodiscard]] bool fits(const Degrees& degrees, double samples) const {
    if (is_head() || measured_memory_) return true;
    const model::BlockType& block = model_.types[item_];
    const cost::LocalParameters local = cost::local_held_parameters(block, model_.job, degrees);
    const cost::ActivationBytes activation = cost::block_activation(block, model_.job, degrees, samples, format());
    const cost::LocalParameters trained = cost::local_trained_parameters(block, degrees);
    const double state = (local.shared + local.expert) * cost::least_parameter_bytes(model_.job) +
                         (trained.shared + trained.expert) * static_cast<double>(model_.job.gradient_bytes);
    return state + activation.none + activation.working <= class_.device.usable().as_double();
  }

  // What stays of a block on a GPU whatever is sharded and recomputed. A range of samples keeps what its first does.
  [[nodiscard]] BlockRate with_memory(BlockRate block_rate, const Degrees& degrees) const {
    if (is_head() || measured_memory_) return block_rate;
    const model::BlockType& block = model_.types[item_];
    const model::Job& job = model_.job;
    const auto samples = static_cast<double>(block_rate.samples);
    const cost::ActivationBytes activation = cost::block_activation(block, job, degrees, samples, format());
    const double held = model::held_parameters(model_, {.runs = {{static_cast<int>(item_), 1}}});
    block_rate.held = state_bytes(job, held, model::trained_parameters(block).total());
    block_rate.kept = std::min({activation.none, activation.selective, activation.full});
    block_rate.room = class_.device.usable().as_double() - activation.working;
    return block_rate;
  }

  [[nodiscard]] DType format() const { return cost::matrix_format(class_.device, model_.job.precision); }

  // As cost::stage_cost has it where nothing is sharded.
  [[nodiscard]] double update_seconds(const Degrees& degrees) const {
    const model::Job& job = model_.job;
    const cost::LocalParameters local = cost::local_trained_parameters(model_.types[item_], degrees);
    const double bytes =
        static_cast<double>(2 * job.gradient_bytes + job.parameter_bytes) + 2 * model::resident_state_bytes(job);
    const double rate = cost::device_rates(class_.device, job).memory;
    return rate > 0 ? (local.shared + local.expert) * bytes / rate : 0;
  }

  [[nodiscard]] BlockRate with_sync(const Degrees& degrees) const {
    BlockRate block_rate;
    block_rate.item = item_;
    block_rate.gpus = degrees.tp * degrees.cp;
    if (is_head()) return block_rate;
    block_rate.update = update_seconds(degrees);
    if (measured_links_) return block_rate;
    const model::BlockParameters all = model::trained_parameters(model_.types[item_]);
    const double seconds = static_cast<double>(model_.job.gradient_bytes) / network_.crossing;
    const double member = class_.gpus_per_member;
    const double expert_span = std::max<double>(member, degrees.ep * degrees.etp);
    block_rate.dense_span = member;
    block_rate.expert_span = expert_span;
    block_rate.dense_sync = seconds * static_cast<double>(all.total() - all.expert);
    block_rate.expert_sync = seconds * static_cast<double>(all.expert) * member / expert_span;
    return block_rate;
  }

  const model::Model& model_;
  const cluster::IslandClass& class_;
  const Network& network_;
  std::size_t item_;
  model::SliceSignature alone_;  ///< the item: a stage of it has nothing else that its degrees have to suit
  bool measured_links_;
  bool measured_memory_;
  const BoundTuning& tuning_;
  std::vector<BlockRate>& out_;
};

BlockRate measured_rate(std::size_t item, double gpu_seconds, int gpus) {
  BlockRate block_rate;
  block_rate.item = item;
  block_rate.gpus = gpus;
  block_rate.last = std::numeric_limits<std::int64_t>::max();
  block_rate.backward = block_rate.backward_limit = gpu_seconds / gpus;
  return block_rate;
}

double measured_gpu_seconds(const model::Model& model, std::size_t item, const cluster::GpuType& device,
                            const cost::ProfileSet* profiles) {
  if (profiles == nullptr) return std::numeric_limits<double>::infinity();
  return item == model.types.size() ? profiles->least_head_gpu_seconds(model, device)
                                    : profiles->least_block_gpu_seconds(model.types[item], model.job, device);
}

bool has_measured_links(const cost::ProfileSet* profiles, const cluster::GpuType& device) {
  return profiles != nullptr && std::ranges::any_of(profiles->profiles(), [&](const cost::Profile& profile) {
           return !profile.collectives.empty() && cost::communicates_alike(profile.device, device);
         });
}

}  // namespace

double BlockRate::gpu_seconds(double share, double last_samples) const {
  const double limit = forward_limit + (1 - share) * backward_limit;
  return gpus * std::max(limit, (forward + (1 - share) * backward) / last_samples);
}

double BlockRate::crossing(double holders) const {
  const auto moved = [&](double span) { return 1 - 1 / std::max(1.0, holders / span); };
  return dense_sync * moved(dense_span) + expert_sync * moved(expert_span);
}

std::vector<std::vector<BlockRate>> block_rates_of(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                                   const cost::ProfileSet* profiles, const BoundTuning& tuning) {
  std::vector<std::vector<BlockRate>> block_rates;
  const std::vector<double> counts = item_counts(model);
  for (const cluster::IslandClass& c : hierarchy.levels.front().classes) {
    const Network network = network_of(hierarchy, c);
    const bool measured_links = has_measured_links(profiles, c.device);
    std::vector<BlockRate>& own = block_rates.emplace_back();
    if (!(cost::matrix_peak(c.device, model.job.precision).value() > 0)) continue;
    for (std::size_t item = 0; item < counts.size(); ++item) {
      if (counts[item] == 0) continue;
      const double measured = measured_gpu_seconds(model, item, c.device, profiles);
      const bool is_measured = std::isfinite(measured);
      if (is_measured) own.push_back(measured_rate(item, measured, c.gpu_count()));
      Walker(model, c, network, item, measured_links, is_measured, tuning, own).run();
    }
  }
  return block_rates;
}

std::vector<double> item_counts(const model::Model& model) {
  std::vector<double> counts(model.types.size() + 1, 0);
  for (const int type : model.blocks) ++at(counts, type);
  counts.back() = 1;
  return counts;
}

}  // namespace tangram::relax
