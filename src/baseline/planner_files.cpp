#include "tangram/baseline/planner_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tangram/base/at.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::baseline {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kGB = 1024.0 * 1024.0 * 1024.0;
constexpr double kMB = 1024.0 * 1024.0;
constexpr double kMetisRate = 1024.0 * 1024.0 * 1000.0;  // bytes/s of its GB/s
constexpr double kLeastResidue = 1e-3;                   // milliseconds; it drops plans where there is none
constexpr const char* kZone = "tangram";
constexpr int kMostSailorTensor = 4;  // its tables of a stage's parameters end there: beyond, every stage would fit
constexpr std::array kSailorKnows{"A100-40", "V100-16", "GH-96"};  // of all others its memory table says 0

/// "A100" of "A100-80GB-SXM": what these programs call it.
std::string family(const GpuKind& kind) { return kind.name.substr(0, kind.name.find('-')); }

/// "A100-40" of "A100-40GB-SXM".
std::string sailor_name(const GpuKind& kind) {
  return fmt::format("{}-{:.0f}", family(kind), kind.device.memory.as_double() / kGB);
}

std::string text(const Json& json) { return io::write_canonical(json); }

Json per_unit(const GridPoint& point, double UnitProfile::* what, double factor) {
  Json list = Json::array();
  for (const UnitProfile& unit : point.units) list.push_back(unit.*what * factor);
  return list;
}

class MetisFiles {
 public:
  MetisFiles(const cluster::Fleet& fleet, const PlannerInput& input, PlannerFiles& out)
      : fleet_(fleet), input_(input), out_(out) {}

  void write() {
    hosts();
    for (const auto& [key, point] : input_.grid) {
      const auto& [kind, tp, samples] = key;
      const std::string name = family(at(input_.kinds, kind));
      const std::string path = fmt::format("metis/profile/DeviceType.{}_tp{}_bs{}.json", name, tp, samples);
      if (written_.insert(path).second) out_.files.push_back({path, profile(point)});
    }
    if (input_.batch & (input_.batch - 1)) out_.notes.emplace_back("metis: the batch is no power of two, and it stops");
    if (input_.gpus() & (input_.gpus() - 1)) {
      out_.notes.push_back(
          fmt::format("metis: {} GPUs are no power of two, and it stops: leave hosts out", input_.gpus()));
    }
  }

 private:
  void hosts() {
    std::string hostfile;
    Json cluster = Json::object();
    std::set<std::string> types;
    for (const GpuKind& kind : input_.kinds) {
      if (!types.insert(family(kind)).second) {
        out_.notes.push_back(
            fmt::format("metis: two GPU types are called {}; it reads the profile of the first", family(kind)));
      }
      for (const auto& [node, gpus] : kind.nodes) {
        const std::string& host = fleet_.nodes[node].name;
        hostfile += fmt::format("{} slots={}\n", host, gpus);
        cluster[host] = {{"instance_type", family(kind)},
                         {"inter_bandwidth", kind.outside / kMetisRate},
                         {"intra_bandwidth", kind.inside / kMetisRate},
                         {"memory", kind.device.memory.as_double() / kGB}};
        if (gpus > 9) out_.notes.push_back(fmt::format("metis: it reads one digit of the {} slots of {}", gpus, host));
      }
    }
    out_.files.push_back({"metis/hostfile", hostfile});
    out_.files.push_back({"metis/clusterfile.json", text(cluster)});
  }

  [[nodiscard]] std::string profile(const GridPoint& point) const {
    double all = 0;
    double parameters = 0;
    Json memory = Json::array();
    for (const UnitProfile& unit : point.units) {
      all += unit.seconds() * 1e3;
      parameters += unit.parameters;
      memory.push_back((unit.state + unit.activation) / kMB);
    }
    Json times = Json::array();
    for (const UnitProfile& unit : point.units) times.push_back(unit.seconds() * 1e3);
    const Json json{{"model",
                     {{"model_name", input_.model.name},
                      {"num_layers", input_.units()},
                      {"parameters",
                       {{"total_parameters_bytes", parameters},
                        {"parameters_per_layer_bytes", per_unit(point, &UnitProfile::parameters, 1)}}}}},
                    {"execution_time",
                     {{"total_time_ms", all + kLeastResidue + point.optimizer * 1e3},
                      {"forward_backward_time_ms", all + kLeastResidue},
                      {"batch_generator_time_ms", 0},
                      {"layernorm_grads_all_reduce_time_ms", 0},
                      {"embedding_grads_all_reduce_time_ms", 0},
                      {"optimizer_time_ms", point.optimizer * 1e3},
                      {"layer_compute_total_ms", times}}},
                    {"execution_memory", {{"layer_memory_total_mb", memory}}}};
    return text(json);
  }

  const cluster::Fleet& fleet_;
  const PlannerInput& input_;
  PlannerFiles& out_;
  std::set<std::string> written_;
};

class SailorFiles {
 public:
  SailorFiles(const PlannerInput& input, PlannerFiles& out) : input_(input), out_(out) {}

  void write() {
    Json cluster = Json::object();
    Json quotas = Json::object();
    for (std::size_t k = 0; k < input_.kinds.size(); ++k) {
      const GpuKind& kind = input_.kinds[k];
      const std::string name = sailor_name(kind);
      const std::string place = fmt::format("{}_{}", name, zone(kind));
      if (cluster.contains(place)) {
        out_.notes.push_back(fmt::format("sailor: two GPU types are called {}; the profile is of the first", place));
      }
      cluster[place] = cluster.value(place, 0) + kind.gpus;
      quotas[name][zone(kind)] = cluster[place];
      if (!types_.emplace(name, static_cast<int>(k)).second) continue;
      out_.files.push_back({fmt::format("sailor/profiles/{}/profile.json", name), profile(static_cast<int>(k))});
      if (std::ranges::find(kSailorKnows, name) == kSailorKnows.end()) {
        out_.notes.push_back(fmt::format("sailor: its memory table (planner_utils.cpp) has no {}: add {} GiB", name,
                                         name.substr(name.rfind('-') + 1)));
      }
    }
    out_.files.push_back({"sailor/cluster.json", text(cluster)});
    out_.files.push_back({"sailor/quotas.json", text(quotas)});
    out_.files.push_back({"sailor/training_config.json", training()});
    out_.files.push_back({"sailor/llm_info.json", sizes()});
    out_.files.push_back({"sailor/network.json", network()});
    out_.files.push_back({"sailor/communication_cost.json", traffic_prices()});
  }

 private:
  static std::string zone(const GpuKind& kind) { return kind.region.empty() ? kZone : kind.region; }

  [[nodiscard]] std::set<std::string> zones() const {
    std::set<std::string> names;
    for (const GpuKind& kind : input_.kinds) names.insert(zone(kind));
    return names;
  }

  /// Numbers of GPUs of a node that send or receive together. The program takes them for the degrees of tensor
  /// parallelism that there are.
  [[nodiscard]] std::vector<int> counts(int kind) const {
    std::vector<int> list;
    const int most = std::min(at(input_.kinds, kind).per_node, kMostSailorTensor);
    for (int gpus = 1; gpus <= most; gpus *= 2) list.push_back(gpus);
    return list;
  }

  /// Zone, type and number of the senders, then of the receivers: GB/s as a polynomial of the message's size, here a
  /// constant, and the most bytes/s. The program looks up any type in any zone.
  [[nodiscard]] std::string network() const {
    Json json = Json::object();
    for (const std::string& zone : zones()) {
      for (const auto& [name, kind] : types_) {
        for (const int gpus : counts(kind)) json[zone][name][std::to_string(gpus)] = receivers(kind, gpus);
      }
    }
    return text(json);
  }

  [[nodiscard]] Json receivers(int from, int gpus) const {
    Json json = Json::object();
    for (const std::string& zone : zones()) {
      for (const auto& [name, kind] : types_) {
        for (const int there : counts(kind)) {
          const double rate = 1 / input_.message(1, from, gpus, kind, there);
          json[zone][name][std::to_string(there)] = Json::array({Json::array({0, 0, rate / 1e9}), rate});
        }
      }
    }
    return json;
  }

  /// Dollars of a GB between zones. It plans for throughput, where these do not count.
  [[nodiscard]] std::string traffic_prices() const {
    Json json = Json::object();
    for (const std::string& from : zones()) {
      for (const std::string& to : zones()) json[from][to] = 0;
    }
    return text(json);
  }

  [[nodiscard]] std::string profile(int kind) const {
    Json json = Json::object();
    for (const auto& [key, point] : input_.grid) {
      const auto& [of, tp, samples] = key;
      if (of != kind) continue;
      Json& layers = json[std::to_string(samples)][std::to_string(tp)];
      for (std::size_t u = 0; u < point.units.size(); ++u) {
        layers[std::to_string(u)] = {point.units[u].forward, point.units[u].backward, point.optimizer};
      }
    }
    return text(json);
  }

  [[nodiscard]] std::string training() const {
    const model::Model& m = input_.model;
    return text({{"global_batch_size", input_.batch},
                 {"type", "gpt2"},
                 {"hidden_size", m.hidden},
                 {"sequence_length", m.job.sequence_length},
                 {"num_layers", input_.blocks},
                 {"vocab_size", m.vocabulary},
                 {"model", m.name},
                 {"optimizer", "Adam"},
                 {"heads", m.block(0).attention.heads},
                 {"num_all_layers", input_.units()}});
  }

  /// Values of one sample: parameters and saved activations on a GPU, outputs whole.
  [[nodiscard]] std::string sizes() const {
    Json degrees = Json::object();
    for (const int tp : input_.tensor_degrees()) {
      const GridPoint* point = nullptr;
      for (int k = 0; point == nullptr && k < static_cast<int>(input_.kinds.size()); ++k) point = input_.at(k, tp, 1);
      if (point == nullptr) continue;
      Json& layers = degrees[std::to_string(tp)];
      const double width = input_.parameter_bytes;
      for (std::size_t u = 0; u < point->units.size(); ++u) {
        const UnitProfile& unit = point->units[u];
        const double output = u + 1 == point->units.size() ? input_.activation_last : input_.activation;
        layers[std::to_string(u)] = {{"params_floats", unit.parameters},
                                     {"act_output_floats", output / width},
                                     {"act_input_floats", input_.activation / width},
                                     {"act_mem_floats", unit.activation / width},
                                     {"params_bytes", unit.parameters * width},
                                     {"act_output_bytes", output},
                                     {"act_input_bytes", input_.activation},
                                     {"act_mem_bytes", unit.activation}};
      }
    }
    return text({{input_.model.name, degrees}});
  }

  const PlannerInput& input_;
  PlannerFiles& out_;
  std::map<std::string, int> types_;  // first kind of each name
};

}  // namespace

PlannerFiles write_planner_files(const cluster::Fleet& fleet, const PlannerInput& input) {
  PlannerFiles out;
  MetisFiles(fleet, input, out).write();
  SailorFiles(input, out).write();
  return out;
}

}  // namespace tangram::baseline
