// `kubectl get nodes -o json`: a List of Nodes. Names and states of nodes and amounts of resources are Kubernetes' own;
// which GPUs they are stands in labels of NVIDIA's GPU feature discovery (nvidia.com/gpu.product, .memory in MiB,
// .replicas, .sharing-strategy) or of AMD's node labeller (amd.com/gpu.product-name).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "collector.hpp"
#include "tool_units.hpp"

namespace tangram::inventory {
namespace {

using io::NodeKind;

constexpr int kMostGpus = 1024;

struct Vendor {
  std::string_view resource;
  std::string_view product;  ///< label
};
constexpr std::array kVendors = {Vendor{"nvidia.com/gpu", "nvidia.com/gpu.product"},
                                 Vendor{"amd.com/gpu", "amd.com/gpu.product-name"}};

struct LabelName {
  std::string_view kubernetes;
  std::string_view ours;
};
// Where a node is: zones of clouds, switches as NVIDIA's Topograph names them.
constexpr std::array kPlaces = {LabelName{"topology.kubernetes.io/region", "region"},
                                LabelName{"topology.kubernetes.io/zone", "zone"},
                                LabelName{"network.topology.nvidia.com/accelerator", "accelerator"},
                                LabelName{"network.topology.nvidia.com/leaf", "leaf"},
                                LabelName{"network.topology.nvidia.com/spine", "spine"},
                                LabelName{"network.topology.nvidia.com/core", "core"}};

struct Problem {
  std::string_view name;
  std::string_view reason;
};
constexpr std::array kConditions = {
    Problem{"MemoryPressure", "short of memory"}, Problem{"DiskPressure", "short of disk"},
    Problem{"PIDPressure", "short of process ids"}, Problem{"NetworkUnavailable", "without network"}};
// A GPU node's own taints keep other work away; these say that it must not, or will soon not, be used.
constexpr std::array kTaints = {Problem{"node.kubernetes.io/unschedulable", "cordoned"},
                                Problem{"node.kubernetes.io/not-ready", "not ready"},
                                Problem{"node.kubernetes.io/unreachable", "unreachable"},
                                Problem{"node.kubernetes.io/out-of-service", "out of service"},
                                Problem{"node.cloudprovider.kubernetes.io/shutdown", "shut down"},
                                Problem{"node.cloudprovider.kubernetes.io/uninitialized", "not initialized"},
                                Problem{"ToBeDeletedByClusterAutoscaler", "about to be deleted"},
                                Problem{"karpenter.sh/disrupted", "about to be deleted"}};

template <std::size_t kSize>
std::string_view reason_in(const std::array<Problem, kSize>& problems, std::string_view name) {
  const auto found = std::ranges::find_if(problems, [&](const Problem& problem) { return problem.name == name; });
  return found != problems.end() ? found->reason : std::string_view();
}

class NodeReader {
 public:
  NodeReader(const io::Document& document, const io::Node& node, Collector& collector)
      : document_(document), node_(node), collector_(collector) {}

  void read() {
    const io::Node* metadata = required(node_, "metadata", NodeKind::kObject);
    const io::Node* status = required(node_, "status", NodeKind::kObject);
    const io::Node* name = metadata != nullptr ? required(*metadata, "name", NodeKind::kString) : nullptr;
    if (status == nullptr || name == nullptr) return;
    labels_ = optional(*metadata, "labels", NodeKind::kObject);
    if (!collector_.claim(document_, text_of(*name))) return;
    found_.name = name->text;
    collect_states(*status);
    if (broken_) return;
    if (!reasons_.empty()) return collector_.leave_out(found_.name, fmt::format("{}", fmt::join(reasons_, ", ")));
    for (const LabelName& place : kPlaces) {
      if (const io::Node* value = label(place.kubernetes))
        found_.labels[std::string(place.ours)] = printable(value->text);
    }
    collect_gpus(*status);
    if (broken_) return;
    if (!reasons_.empty()) return collector_.leave_out(found_.name, reasons_.front());
    collector_.add(std::move(found_));
  }

 private:
  void add_error(Diagnostic diagnostic) {
    broken_ = true;
    collector_.add_error(std::move(diagnostic));
  }

  const io::Node* optional(const io::Node& object, std::string_view key, NodeKind kind) {
    const io::Node* value = object.find(key);
    if (value == nullptr || value->kind == NodeKind::kNull || value->kind == kind) {
      return value != nullptr && value->kind == kind ? value : nullptr;
    }
    add_error(
        error_at(document_, *value, "wrong-type",
                 fmt::format("\"{}\": expected {}, got {}", key, io::to_string(kind), io::to_string(value->kind))));
    return nullptr;
  }

  const io::Node* required(const io::Node& object, std::string_view key, NodeKind kind) {
    if (object.kind != NodeKind::kObject) {
      add_error(error_at(document_, object, "wrong-type",
                         fmt::format("expected an object, got {}", io::to_string(object.kind))));
    } else if (object.find(key) == nullptr) {
      add_error(error_at(document_, object, "missing-key", fmt::format("a node without \"{}\"", key),
                         "give what kubectl get nodes -o json prints, whole"));
    }
    return optional(object, key, kind);
  }

  /// Null where it is not there, or empty.
  const io::Node* label(std::string_view key) {
    const io::Node* value = labels_ != nullptr ? optional(*labels_, key, NodeKind::kString) : nullptr;
    return value != nullptr && !value->text.empty() ? value : nullptr;
  }

  void add_reason(std::string_view reason) {
    if (!reason.empty() && std::ranges::count(reasons_, reason) == 0) reasons_.emplace_back(reason);
  }

  void collect_states(const io::Node& status) {
    if (const io::Node* spec = optional(node_, "spec", NodeKind::kObject)) {
      const io::Node* cordoned = optional(*spec, "unschedulable", NodeKind::kBoolean);
      if (cordoned != nullptr && cordoned->boolean) add_reason("cordoned");
      collect_taints(*spec);
    }
    bool ready = false;
    const io::Node* conditions = required(status, "conditions", NodeKind::kArray);
    if (conditions == nullptr) return;
    for (const io::Node& condition : conditions->items) {
      const io::Node* type = required(condition, "type", NodeKind::kString);
      const io::Node* value = required(condition, "status", NodeKind::kString);
      if (type == nullptr || value == nullptr) continue;
      if (type->text == "Ready") ready = value->text == "True";
      if (value->text == "True") add_reason(reason_in(kConditions, type->text));
    }
    if (!ready) add_reason("not ready");
  }

  void collect_taints(const io::Node& spec) {
    const io::Node* taints = optional(spec, "taints", NodeKind::kArray);
    if (taints == nullptr) return;
    for (const io::Node& taint : taints->items) {
      if (const io::Node* key = required(taint, "key", NodeKind::kString)) add_reason(reason_in(kTaints, key->text));
    }
  }

  /// A whole number of GPUs; 0 where the resource is not there.
  int amount(const io::Node* resources, std::string_view key) {
    const io::Node* value = resources != nullptr ? resources->find(key) : nullptr;
    if (value == nullptr) return 0;
    const int count = small_number(value->text);  // a number keeps its text
    if ((value->kind == NodeKind::kString || value->kind == NodeKind::kInteger) && count >= 0 && count <= kMostGpus) {
      return count;
    }
    add_error(error_at(document_, *value, "bad-amount", fmt::format("\"{}\": expected a number of GPUs", key),
                       fmt::format("a node has 0 to {}", kMostGpus)));
    return 0;
  }

  void collect_gpus(const io::Node& status) {
    const io::Node* allocatable = optional(status, "allocatable", NodeKind::kObject);
    const io::Node* capacity = optional(status, "capacity", NodeKind::kObject);
    if (broken_) return;
    // A kubelet that has just joined, or cannot tell: the other nodes are none the worse.
    if (allocatable == nullptr) return add_reason("it does not report what is allocatable");
    for (const io::Member& resource : allocatable->members) {
      if (resource.key.starts_with("nvidia.com/mig-") && amount(allocatable, resource.key) > 0) {
        add_reason("its GPUs are cut into slices (MIG)");
      }
    }
    for (const Vendor& vendor : kVendors) {
      const int usable = amount(allocatable, vendor.resource);
      const int all = amount(capacity, vendor.resource);
      if (broken_) return;
      if (usable > 0) add_gpus(vendor, usable);
      if (usable < all) {
        if (usable == 0) add_reason(fmt::format("none of its {} GPUs is allocatable", all));
        if (usable > 0) collector_.note(fmt::format("{}: {} of {} GPUs are allocatable", found_.name, usable, all));
      }
    }
  }

  void add_gpus(const Vendor& vendor, int count) {
    const io::Node* product = label(vendor.product);
    if (product == nullptr) {
      return add_error(
          error_at(document_, labels_ != nullptr ? *labels_ : node_, "missing-label",
                   fmt::format("\"{}\" has {} GPUs, but no label \"{}\"", found_.name, count, vendor.product),
                   "run GPU feature discovery (AMD: the node labeller) in the cluster"));
    }
    if (product->text.find("-MIG-") != std::string::npos) return add_reason("its GPUs are cut into slices (MIG)");
    const io::Node* replicas = label("nvidia.com/gpu.replicas");
    const int shared = replicas != nullptr ? small_number(replicas->text) : 1;
    if (product->text.ends_with("-SHARED") || shared > 1) return add_reason("its GPUs are shared by several pods");
    const cluster::GpuType* device = collector_.gpus().find(document_, text_of(*product), memory());
    if (device == nullptr) {
      broken_ = true;
    } else {
      Collector::add_gpus(found_, *device, count);
    }
  }

  Bytes memory() {
    const io::Node* mebibytes = label("nvidia.com/gpu.memory");
    if (mebibytes == nullptr) return Bytes(0);
    const int value = small_number(mebibytes->text);
    if (value <= 0) {
      add_error(error_at(document_, text_of(*mebibytes), "bad-amount", "expected MiB of one GPU, as in 81559"));
      return Bytes(0);
    }
    return Bytes(static_cast<std::int64_t>(value * kMebibyte));
  }

  const io::Document& document_;
  const io::Node& node_;
  Collector& collector_;
  const io::Node* labels_ = nullptr;
  FoundNode found_;
  std::vector<std::string> reasons_;
  bool broken_ = false;
};

void read_nodes(const io::Document& document, Collector& collector) {
  const io::Node& root = document.root;
  const io::Node* kind = root.find("kind");
  if (kind != nullptr && kind->text == "Node") return NodeReader(document, root, collector).read();
  const io::Node* items = root.find("items");
  if (items == nullptr || items->kind != NodeKind::kArray) {
    return collector.add_error(error_at(document, items != nullptr ? *items : root, "missing-key",
                                        "no list of \"items\" in it", "give what kubectl get nodes -o json prints"));
  }
  for (const io::Node& item : items->items) {
    const io::Node* own = item.find("kind");
    if (item.kind == NodeKind::kObject && (own == nullptr || own->text == "Node")) {
      NodeReader(document, item, collector).read();
    } else {
      collector.add_error(error_at(document, own != nullptr ? *own : item, "wrong-type", "this is no Node",
                                   "give what kubectl get nodes -o json prints"));
    }
  }
}

}  // namespace

Expected<Inventory> from_kubernetes(const Request& request, std::span<const cluster::GpuType> devices) {
  Collector collector(request, devices, "kubernetes");
  for (const profiles::SourceFile& file : request.files) {
    const auto document = io::parse_json(file.text, file.path);
    if (document) {
      read_nodes(*document, collector);
    } else {
      collector.add_error(document.error());
    }
  }
  return collector.finish();
}

}  // namespace tangram::inventory
