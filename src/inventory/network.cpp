// What the user says of the network, which neither Slurm nor Kubernetes reports.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "places.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/inventory/inventory.hpp"
#include "tool_units.hpp"

namespace tangram::inventory {
namespace {

constexpr int kMostCards = 256;  // as cluster.json
constexpr double kMostGigabits = 1e6;

tl::unexpected<Diagnostics> refuse(const std::string& text, const std::string& why, std::string hint) {
  return fail(
      problem(ErrorKind::kUsage, "bad-value", fmt::format("--network {}: {}", printable(text), why), std::move(hint)));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, std::string otherwise) {
  const auto near = closest(word, known);
  return near ? fmt::format("did you mean \"{}\"?", *near) : std::move(otherwise);
}

const std::vector<std::string> kKinds = {"infiniband", "roce", "efa", "slingshot", "ethernet"};
constexpr auto kForm = "as in 8x400Gbit,infiniband";

/// "400Gbit", also "400Gbit/s"; 0 for anything else.
double gigabits(std::string_view text) {
  for (const std::string_view end : {"/s", "Gbit"}) {
    if (text.ends_with(end)) {
      text.remove_suffix(end.size());
    } else if (end == "Gbit") {
      return 0;
    }
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value > 0 && value <= kMostGigabits ? value : 0;
}

}  // namespace

Expected<NetworkChoice> parse_network(const std::string& text, std::span<const cluster::GpuType> devices) {
  NetworkChoice choice;
  std::string_view rest = text;
  if (const std::size_t equals = rest.find('='); equals != std::string_view::npos) {
    choice.type = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    std::vector<std::string> names;
    for (const cluster::GpuType& device : devices) names.push_back(device.name);
    if (std::ranges::count(names, choice.type) == 0) {
      return refuse(text, fmt::format("there is no GPU type \"{}\"", printable(choice.type)),
                    did_you_mean(choice.type, names, "give its name in the catalogue"));
    }
  }
  const std::size_t comma = rest.find(',');
  if (comma == std::string_view::npos) return refuse(text, "the kind is missing", kForm);
  choice.network.kind = rest.substr(comma + 1);
  if (std::ranges::count(kKinds, choice.network.kind) == 0) {
    return refuse(text, fmt::format("there is no kind of network \"{}\"", printable(choice.network.kind)),
                  did_you_mean(choice.network.kind, kKinds, fmt::format("kinds: {}", fmt::join(kKinds, ", "))));
  }
  rest = rest.substr(0, comma);
  if (const std::size_t times = rest.find('x'); times != std::string_view::npos) {
    choice.network.cards = small_number(rest.substr(0, times));
    rest.remove_prefix(times + 1);
    if (choice.network.cards < 1 || choice.network.cards > kMostCards) {
      return refuse(text, fmt::format("a node has 1 to {} cards", kMostCards), kForm);
    }
  }
  const double rate = gigabits(rest);
  if (!(rate > 0)) return refuse(text, fmt::format("\"{}\" is no rate", printable(rest)), kForm);
  choice.network.per_card = BytesPerSecond(rate * kGigabit);
  return choice;
}

void apply_network(Inventory& inventory, const std::vector<NetworkChoice>& choices) {
  for (FoundNode& node : inventory.nodes) {
    if (node.network) continue;
    for (const NetworkChoice& choice : choices) {
      const auto of_type = [&](const FoundGpus& gpus) { return gpus.device->name == choice.type; };
      if (!choice.type.empty() && std::ranges::none_of(node.gpus, of_type)) continue;
      node.network = choice.network;
      if (choice.network.cards == 0) node.network->cards = std::max(1, node.cards);
    }
  }
}

}  // namespace tangram::inventory
