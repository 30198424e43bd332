// `nvidia-smi -q -x` and `nvidia-smi topo -m` of hosts. Neither prints the host's name: files are called after it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "collector.hpp"
#include "host_bus.hpp"
#include "tool_units.hpp"
#include "topology_matrix.hpp"
#include "xml.hpp"

namespace tangram::inventory {
namespace {

/// "logs/n1.example.org.xml" is n1.example.org.
std::string host_of(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  for (const std::string_view ending : {".xml", ".txt", ".log", ".topo", ".query"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

struct Host {
  std::optional<io::Document> query;
  std::optional<io::Document> topology;
};

io::Document document_of(const profiles::SourceFile& file) {
  io::Document document;
  document.file = file.path == "-" ? "<stdin>" : file.path;
  document.text = file.text;
  return document;
}

/// The driver's own refusal, which it prints in place of a report.
bool is_refusal(std::string_view text) {
  return text.starts_with("NVIDIA-SMI has failed") || text.starts_with("Unable to determine the device handle") ||
         text.starts_with("Failed to initialize NVML") || text.starts_with("No devices were found");
}

class HostReader {
 public:
  HostReader(std::string name, const io::Document& query, Collector& collector) : query_(query), collector_(collector) {
    found_.name = std::move(name);
  }

  void read(const io::Document* topology) {
    const auto root = parse_xml(query_);
    if (!root) return collector_.add_error(root.error());
    if (root->name.value != "nvidia_smi_log") {
      return collector_.add_error(error_at(query_, root->name, "wrong-root",
                                           fmt::format("expected nvidia_smi_log, got {}", printable(root->name.value)),
                                           "give what nvidia-smi -q -x prints"));
    }
    for (const XmlElement& element : root->children) {
      if (element.name.value == "gpu") take_gpu(element);
    }
    check_count(*root);
    if (topology != nullptr) take_topology(*topology);
    if (broken_) return;
    if (!sliced_.empty()) return collector_.leave_out(found_.name, "its GPUs are cut into slices (MIG)");
    found_.host_bus = slower_bus(found_.gpus, slot_gigabytes_);
    collector_.add(std::move(found_));
  }

 private:
  void add_error(Diagnostic diagnostic) {
    broken_ = true;
    collector_.add_error(std::move(diagnostic));
  }

  void take_gpu(const XmlElement& gpu) {
    const int index = listed_++;
    const XmlElement* name = gpu.find("product_name");
    if (name == nullptr || name->content.value.empty()) {
      return add_error(error_at(query_, name != nullptr ? name->name : gpu.name, "missing-key",
                                "a GPU without its product_name", "give what nvidia-smi -q -x prints, whole"));
    }
    if (const std::string why = failure(gpu, *name); !why.empty()) {
      return collector_.leave_out(fmt::format("{}, GPU {}", found_.name, index), why);
    }
    if (content(gpu, {"mig_mode", "current_mig"}) == "Enabled") sliced_.push_back(index);
    const std::optional<Bytes> memory = memory_of(gpu);
    if (!memory) return;
    const cluster::GpuType* device = collector_.gpus().find(query_, name->content, *memory);
    if (device == nullptr) {
      broken_ = true;
      return;
    }
    Collector::add_gpus(found_, *device, 1);
    indices_[device].push_back(index);
    take_slot(gpu);
  }

  static std::string content(const XmlElement& gpu, std::initializer_list<std::string_view> path) {
    const XmlElement* element = gpu.find(path);
    return element != nullptr ? element->content.value : std::string();
  }

  /// Why a GPU cannot be used; empty: it can.
  static std::string failure(const XmlElement& gpu, const XmlElement& name) {
    if (name.content.value.find("ERR!") != std::string::npos) return "the driver cannot reach it";
    if (content(gpu, {"remapped_rows", "remapped_row_failure"}) == "Yes") return "rows of its memory failed for good";
    const std::string action = content(gpu, {"gpu_recovery_action"});
    if (!action.empty() && action != "None" && action != "N/A")
      return fmt::format("it asks for: {}", printable(action));
    return {};
  }

  /// 0 where the report does not say; nothing after a report of a mistake.
  std::optional<Bytes> memory_of(const XmlElement& gpu) {
    const XmlElement* total = gpu.find({"fb_memory_usage", "total"});
    if (total == nullptr || total->content.value == "N/A") return Bytes(0);
    std::string_view text = total->content.value;
    if (text.ends_with(" MiB")) text.remove_suffix(4);
    const int mebibytes = small_number(text);
    if (mebibytes > 0) return Bytes(static_cast<std::int64_t>(mebibytes * kMebibyte));
    add_error(error_at(query_, total->content.value.empty() ? total->name : total->content, "bad-amount",
                       "expected the memory of a GPU, as in 81920 MiB"));
    return std::nullopt;
  }

  /// Idle GPUs lower the current rate: what slot and GPU can do together counts.
  void take_slot(const XmlElement& gpu) {
    const XmlElement* pcie = gpu.find({"pci", "pci_gpu_link_info"});
    if (pcie == nullptr) return;
    std::string width = content(*pcie, {"link_widths", "max_link_width"});
    if (width.ends_with('x')) width.pop_back();
    const double rate = pcie_gigabytes(small_number(content(*pcie, {"pcie_gen", "max_link_gen"})), small_number(width));
    if (rate > 0 && (slot_gigabytes_ == 0 || rate < slot_gigabytes_)) slot_gigabytes_ = rate;
  }

  void check_count(const XmlElement& root) {
    const XmlElement* attached = root.find("attached_gpus");
    if (attached == nullptr || small_number(attached->content.value) == listed_) return;
    add_error(error_at(query_, attached->content.value.empty() ? attached->name : attached->content, "wrong-count",
                       fmt::format("the file describes {}", listed_), "give what nvidia-smi -q -x prints, whole"));
  }

  void take_topology(const io::Document& topology) {
    const auto matrix = parse_topology(topology);
    if (!matrix) {
      broken_ = true;
      return collector_.add_error(matrix.error());
    }
    if (matrix->gpus != listed_) {
      return add_error(error_at(topology, Text{}, "wrong-count",
                                fmt::format("{} GPUs, but {} in {}", matrix->gpus, listed_, query_.file),
                                "give both reports of the same host"));
    }
    found_.cards = matrix->cards;
    for (FoundGpus& gpus : found_.gpus) {
      const int joined = matrix->joined(indices_[gpus.device]);
      gpus.joined = gpus.count % joined == 0 ? joined : 1;
    }
  }

  const io::Document& query_;
  Collector& collector_;
  FoundNode found_;
  std::map<const cluster::GpuType*, std::vector<int>> indices_;
  std::vector<int> sliced_;
  double slot_gigabytes_ = 0;
  int listed_ = 0;
  bool broken_ = false;
};

std::map<std::string, Host> hosts_of(const Request& request, Collector& collector) {
  std::map<std::string, Host> hosts;
  for (const profiles::SourceFile& file : request.files) {
    const std::string name = host_of(file.path);
    io::Document document = document_of(file);
    const Text whole{name, 0, 0};
    if (is_refusal(trimmed(document.text))) {
      const std::string_view text = trimmed(document.text);
      if (collector.claim(document, whole)) collector.leave_out(name, printable(text.substr(0, text.find('\n'))));
      continue;
    }
    auto& place = trimmed(document.text).starts_with('<') ? hosts[name].query : hosts[name].topology;
    if (place) {
      collector.add_error(error_at(document, Text{}, "duplicate-node",
                                   fmt::format("\"{}\" is reported twice", printable(name)),
                                   fmt::format("{} is of the same host", place->file)));
    } else {
      place = std::move(document);
    }
  }
  return hosts;
}

}  // namespace

Expected<Inventory> from_nvidia_smi(const Request& request, std::span<const cluster::GpuType> devices) {
  Collector collector(request, devices, "nvidia-smi");
  for (const auto& [name, host] : hosts_of(request, collector)) {
    const std::optional<io::Document>& any = host.query ? host.query : host.topology;
    if (!any || !collector.claim(*any, Text{name, 0, 0})) continue;
    if (!host.query && any->text.find("GPU0") == std::string::npos) {
      collector.add_error(error_at(*any, Text{}, "unknown-report", "this is no report of nvidia-smi",
                                   "give what nvidia-smi -q -x prints (HOST.xml), and nvidia-smi topo -m (HOST.txt)"));
      continue;
    }
    if (!host.query) {
      collector.add_error(error_at(*any, Text{}, "missing-report",
                                   fmt::format("nothing tells which GPUs \"{}\" has", name),
                                   fmt::format("give {}.xml too: nvidia-smi -q -x", name)));
      continue;
    }
    HostReader(name, *host.query, collector).read(host.topology ? &*host.topology : nullptr);
  }
  return collector.finish();
}

}  // namespace tangram::inventory
