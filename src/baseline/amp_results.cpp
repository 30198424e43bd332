// A line of AMP: rank N: ((samples, {'mp_deg': tp, 'dp_deg': dp, 'pp_deg': pp}, rank map, [boundaries]), seconds).
// Ranks are filled in the order of the fleet; its layers have a cast behind the embedding, and norms and loss at the
// end.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

#include "amp_results.hpp"
#include "row.hpp"

namespace tangram::baseline {

namespace {

constexpr int kExtraLayers = 6;  // embedding, cast; cast, norm, head, loss

/// The first number at or behind a position; whatever is around it ("tensor(4)") is passed over.
std::optional<double> number_from(std::string_view text, std::size_t at) {
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find_first_of("0123456789", at);
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  if (std::from_chars(text.data() + at, text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<int> degree(std::string_view line, std::string_view key) {
  const auto value = number_from(line, line.find(key));
  if (!value || *value < 1 || *value > 1e6) return std::nullopt;
  return static_cast<int>(*value);
}

/// The numbers of the last brackets.
std::vector<int> boundaries_of(std::string_view line) {
  const std::size_t end = line.rfind(']');
  const std::size_t first = end == std::string_view::npos ? end : line.rfind('[', end);
  std::vector<int> cuts;
  if (first == std::string_view::npos) return cuts;
  std::string_view inside = line.substr(first + 1, end - first - 1);
  while (!inside.empty()) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const auto value = number_from(inside.substr(0, comma), 0);
    if (value && *value <= 1e6) cuts.push_back(static_cast<int>(*value));
    inside.remove_prefix(std::min(comma + 1, inside.size()));
  }
  return cuts;
}

/// Its layers in our units.
int unit_of(int layer, int layers, int blocks) {
  if (layer == 0) return 0;
  if (layer == layers) return blocks + 2;
  return layers == blocks + kExtraLayers ? std::clamp(layer - 1, 1, blocks + 1) : std::min(layer, blocks + 2);
}

std::optional<Draft> drafted(std::string_view line, const PlannerInput& input) {
  const auto samples = degree(line, "((");
  const auto tp = degree(line, "mp_deg");
  const auto dp = degree(line, "dp_deg");
  const auto pp = degree(line, "pp_deg");
  const auto cuts = boundaries_of(line);
  const auto seconds = number_from(line, line.rfind(','));
  if (!samples || !tp || !dp || !pp || !seconds || static_cast<int>(cuts.size()) != *pp + 1) return std::nullopt;
  if (input.batch % (std::int64_t{*samples} * *dp) != 0) return std::nullopt;
  std::vector<int> kinds(input.kinds.size());
  std::iota(kinds.begin(), kinds.end(), 0);
  const auto replicas = uniform_replicas(row_of(input, kinds), *pp, *dp, *tp, *samples);
  if (!replicas) return std::nullopt;
  Draft draft;
  draft.claimed = *seconds;
  draft.common = replica_degrees(input.model, *tp);
  DraftPipeline pipeline{std::int64_t{*samples} * *dp, input.batch / *samples / *dp, {}};
  for (std::size_t s = 0; s < replicas->size(); ++s) {
    pipeline.stages.push_back(
        {unit_of(cuts[s], cuts.back(), input.blocks), unit_of(cuts[s + 1], cuts.back(), input.blocks), (*replicas)[s]});
  }
  draft.pipelines.push_back(std::move(pipeline));
  return draft;
}

bool is_plan(std::string_view line) {
  return line.starts_with("rank ") && line.find("mp_deg") != std::string_view::npos;
}

Diagnostic wrong_line(const std::string& file, int number, std::string_view line) {
  Diagnostic d;
  d.code = "bad-amp-line";
  d.where = {file, number, 1};
  d.message = "this is no plan of AMP for this cluster and batch";
  d.hint = "rank N: ((samples, {mp_deg, dp_deg, pp_deg}, rank map, [first layer of each stage, end]), seconds)";
  d.source_line = std::string(line);
  return d;
}

/// Calls `each` with every line and its number, as long as it wants more.
template <class Each>
void for_lines(const std::string& text, const Each& each) {
  std::size_t first = 0;
  for (int number = 1; first < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', first), text.size());
    if (!each(number, std::string_view(text).substr(first, end - first))) return;
    first = end + 1;
  }
}

}  // namespace

bool is_amp_list(const std::string& text) {
  bool found = false;
  for_lines(text, [&](int, std::string_view line) { return !(found = is_plan(line)); });
  return found;
}

Expected<Proposals> read_amp(const std::string& text, const std::string& file, const PlannerInput& input) {
  Proposals proposals;
  Diagnostics wrong;
  for_lines(text, [&](int number, std::string_view line) {
    if (!is_plan(line)) return true;
    auto draft = drafted(line, input);
    if (!draft) wrong.push_back(wrong_line(file, number, line));
    if (draft) proposals.drafts.push_back(std::move(*draft));
    return wrong.empty();
  });
  if (!wrong.empty()) return fail(std::move(wrong));
  return proposals;
}

}  // namespace tangram::baseline
