// A fleet as a person describes it, which no report knows of.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gpu_match.hpp"
#include "places.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/gpu_names.hpp"
#include "tangram/inventory/inventory.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::inventory {
namespace {

constexpr auto kNodesForm = "NODESxGPUSxTYPE, as in 4x8xH100-80GB-SXM";

struct Described {
  int nodes = 1;
  int gpus = 1;
  std::string type;
};

/// Cuts "8x" off the front; nothing where the text does not begin so.
std::optional<int> take_number(std::string_view& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || text[digits] != 'x') return std::nullopt;
  const int number = small_number(text.substr(0, digits));
  text.remove_prefix(digits + 1);
  return number;
}

Diagnostic bad_nodes(const std::string& text, const std::string& why, std::string hint) {
  return problem(ErrorKind::kUsage, "bad-value", fmt::format("--nodes {}: {}", printable(text), why), std::move(hint));
}

std::optional<Diagnostic> beyond(const std::string& text, std::string_view what, int number, io::IntegerRange range) {
  if (number >= range.min && number <= range.max) return std::nullopt;
  return bad_nodes(text, fmt::format("{} are from {} to {}", what, range.min, range.max), std::string(range.why));
}

Expected<Described> parse_described(const std::string& text) {
  std::string_view rest = text;
  const auto first = take_number(rest);
  const auto second = take_number(rest);
  if (!first || rest.empty()) return fail(bad_nodes(text, "that is not a number of GPUs and a type", kNodesForm));
  const Described described{second ? *first : 1, second.value_or(*first), std::string(rest)};
  if (auto wrong = beyond(text, "nodes", described.nodes, io::integer_limit("hosts"))) return fail(*std::move(wrong));
  if (auto wrong = beyond(text, "GPUs of a node", described.gpus, io::integer_limit("gpus"))) {
    return fail(*std::move(wrong));
  }
  return described;
}

Expected<const cluster::GpuType*> find_type(const std::string& text, const std::string& type,
                                            std::span<const cluster::GpuType> devices) {
  const GpuMatch match = match_gpu(type, Bytes(0), devices);
  if (match.device != nullptr) return match.device;
  if (!match.candidates.empty()) {
    return fail(bad_nodes(text, fmt::format("\"{}\" may be {}", printable(type), fmt::join(match.candidates, ", ")),
                          "say which"));
  }
  return fail(bad_nodes(text, fmt::format("the catalogue has no GPU type \"{}\"", printable(type)),
                        cluster::suggested_gpu(type, devices, "tangram gpus lists them")));
}

/// "h100" of "H100-80GB-SXM", "rtx-4090" of "RTX-4090": what its nodes are called.
std::string short_name(const std::string& type) {
  const std::size_t digit = std::min(type.find_first_of("0123456789"), type.size());
  std::string name = type.substr(0, type.find('-', digit));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

}  // namespace

Expected<Inventory> described(const std::vector<std::string>& nodes, std::span<const cluster::GpuType> devices) {
  Inventory inventory{"my-fleet", {}, {}, {}};
  std::map<std::string, int> numbers;  // of the nodes of a name
  for (const std::string& text : nodes) {
    const auto parsed = parse_described(text);
    if (!parsed) return fail(parsed.error());
    const auto type = find_type(text, parsed->type, devices);
    if (!type) return fail(type.error());
    const std::string name = short_name((*type)->name);
    for (int node = 0; node < parsed->nodes; ++node) {
      FoundNode found;
      found.name = fmt::format("{}-{}", name, ++numbers[name]);
      found.gpus.push_back({*type, parsed->gpus, 0, std::nullopt});
      inventory.nodes.push_back(std::move(found));
    }
  }
  return inventory;
}

}  // namespace tangram::inventory
