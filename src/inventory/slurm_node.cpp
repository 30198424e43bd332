#include "slurm_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tangram::inventory {
namespace {

constexpr int kMostGpus = 1024;  // of one node; more is a slip

struct State {
  std::string_view word;
  std::string_view reason;  ///< why a node in it is left out; empty: it can be used
};

// Base states and flags of scontrol(1); the flags that follow a state as one character are of sinfo(1).
constexpr std::array kStates = {
    State{"IDLE", ""},
    State{"ALLOCATED", ""},
    State{"MIXED", ""},
    State{"COMPLETING", ""},
    State{"PLANNED", ""},
    State{"RESERVED", ""},
    State{"CLOUD", ""},
    State{"DYNAMIC_NORM", ""},
    State{"DYNAMIC_FUTURE", ""},
    State{"PERFCTRS", ""},
    State{"UNDRAIN", ""},
    State{"RESUME", ""},
    State{"BLOCKED", ""},
    State{"DRAIN", "drained"},
    State{"DRAINED", "drained"},
    State{"DRAINING", "draining"},
    State{"DOWN", "down"},
    State{"ERROR", "in error"},
    State{"FAIL", "failing"},
    State{"FAILING", "failing"},
    State{"FUTURE", "not there yet"},
    State{"UNKNOWN", "in an unknown state"},
    State{"INVALID", "registered with less than configured"},
    State{"INVALID_REG", "registered with less than configured"},
    State{"MAINTENANCE", "in maintenance"},
    State{"MAINT", "in maintenance"},
    State{"NOT_RESPONDING", "not responding"},
    State{"NO_RESPOND", "not responding"},
    State{"POWERED_DOWN", "powered down"},
    State{"POWER_DOWN", "powering down"},
    State{"POWERING_DOWN", "powering down"},
    State{"POWER_DRAIN", "powering down"},
    State{"POWERING_UP", "powering up"},
    State{"POWER_UP", "powering up"},
    State{"REBOOT", "about to reboot"},
    State{"REBOOT_REQUESTED", "about to reboot"},
    State{"REBOOT_ISSUED", "rebooting"},
    State{"REBOOT^", "rebooting"},
    State{"REBOOT@", "about to reboot"},
    State{"*", "not responding"},
    State{"~", "powered down"},
    State{"#", "powering up"},
    State{"%", "powering down"},
    State{"!", "powering down"},
    State{"$", "in maintenance"},
    State{"@", "about to reboot"},
    State{"^", "rebooting"},
    State{"-", ""},
};

const State* find_state(std::string_view word) {
  const auto found = std::ranges::find_if(kStates, [&](const State& state) { return state.word == word; });
  return found != kStates.end() ? &*found : nullptr;
}

std::string reason_of(std::string_view word) {
  const State* state = find_state(word);
  return state != nullptr ? std::string(state->reason)
                          : fmt::format("in a state that is not known, \"{}\"", printable(word));
}

/// Why a node in these states is left out; empty: it is not.
std::string reason_of(const SlurmNode& slurm) {
  std::vector<std::string> reasons;
  const auto add = [&](std::string reason) {
    if (!reason.empty() && std::ranges::count(reasons, reason) == 0) reasons.push_back(std::move(reason));
  };
  for (const Text& state : slurm.states) {
    std::string word = state.value;
    std::ranges::transform(word, word.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    const bool marked = find_state(word) == nullptr && !word.empty() && find_state(word.substr(word.size() - 1));
    if (marked) add(reason_of(word.substr(word.size() - 1)));
    add(reason_of(marked ? word.substr(0, word.size() - 1) : word));
  }
  std::string text = fmt::format("{}", fmt::join(reasons, ", "));
  if (!text.empty() && !slurm.reason.empty()) text += fmt::format(" ({})", printable(slurm.reason));
  return text;
}

/// "gpu:a100:8(S:0,2),nvme:1" at commas outside parentheses.
std::vector<Text> split_gres(const Text& gres) {
  std::vector<Text> parts;
  std::size_t first = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= gres.value.size(); ++i) {
    const char c = i < gres.value.size() ? gres.value[i] : ',';
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (i < gres.value.size() && (c != ',' || depth > 0)) continue;
    if (i > first) parts.push_back(gres.part(first, i - first));
    first = i + 1;
  }
  return parts;
}

/// "nvidia_a100_1g.5gb": a slice of a GPU.
bool is_slice(std::string_view type) {
  const std::size_t g = type.find("g.");
  return g != std::string_view::npos && g > 0 && type[g - 1] >= '0' && type[g - 1] <= '9' && type.ends_with("gb");
}

struct Gpus {
  Text type;  ///< "gpu" where the report gives no type
  int count = 0;
};

std::optional<Gpus> parse_gpus(const io::Document& document, const Text& entry, Collector& collector) {
  const std::string_view body = std::string_view(entry.value).substr(0, entry.value.find('('));
  std::vector<Text> fields;
  for (std::size_t first = 0; first <= body.size();) {
    const std::size_t end = std::min(body.find(':', first), body.size());
    fields.push_back(entry.part(first, end - first));
    first = end + 1;
  }
  constexpr auto kHint = "GPUs are gpu:TYPE:COUNT, as in gpu:a100:8";
  if (fields.size() > 3) {
    collector.add_error(error_at(document, entry, "bad-gres", "too many fields", kHint));
    return std::nullopt;
  }
  const Text& last = fields.back();
  const int count = fields.size() == 1 ? 1 : small_number(last.value);
  if (fields.size() == 2 && count < 0) {  // "gpu:a100" is one
    return Gpus{last, 1};
  }
  if (count < 0 || count > kMostGpus) {
    collector.add_error(
        error_at(document, last, "bad-gres", fmt::format("\"{}\" is no number of GPUs", printable(last.value)), kHint));
    return std::nullopt;
  }
  return Gpus{fields.size() == 3 ? fields[1] : fields[0], count};
}

}  // namespace

void take_slurm_node(const io::Document& document, const SlurmNode& slurm, Collector& collector) {
  if (!collector.claim(document, slurm.name)) return;
  if (std::string reason = reason_of(slurm); !reason.empty()) {
    return collector.leave_out(slurm.name.value, std::move(reason));
  }
  FoundNode node;
  node.name = slurm.name.value;
  if (slurm.partitions.size() == 1 && !slurm.partitions.front().empty())
    node.labels["partition"] = printable(slurm.partitions.front());
  for (const Text& entry : split_gres(slurm.gres)) {
    if (entry.value != "gpu" && !entry.value.starts_with("gpu:")) continue;
    const auto gpus = parse_gpus(document, entry, collector);
    if (!gpus) return;
    if (is_slice(gpus->type.value)) return collector.leave_out(node.name, "its GPUs are cut into slices (MIG)");
    if (gpus->count == 0) continue;
    const cluster::GpuType* device = collector.gpus().find(document, gpus->type);
    if (device == nullptr) return;
    Collector::add_gpus(node, *device, gpus->count);
  }
  collector.add(std::move(node));
}

}  // namespace tangram::inventory
