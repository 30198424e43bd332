#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "command.hpp"
#include "inputs.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct IslandsArguments {
  std::string cluster;
};

Parameters parameters_of(IslandsArguments& a) { return {{{"CLUSTER", "cluster.json", &a.cluster}}, {}}; }

template <class T>
std::int64_t ssize(const std::vector<T>& list) {
  return static_cast<std::int64_t>(list.size());
}

/// Indented, and wrapped to the page.
std::string paragraph(const Terminal& terminal, const std::string& text, std::size_t indent) {
  std::string out;
  for (const std::string& line : wrapped(text, terminal.text_width() - indent))
    out += std::string(indent, ' ') + line + "\n";
  return out;
}

std::string bandwidth_text(BytesPerSecond bandwidth) {
  const double gb = bandwidth.value() / 1e9;
  return fmt::format("{:.{}f} GB/s", gb, gb >= 100 ? 0 : gb >= 10 ? 1 : 2);
}

Json link_json(const cluster::Link& link) {
  return {{"bandwidth_gb_s", link.bandwidth.value() / 1e9}, {"latency_us", link.latency.as_double() / 1e3}};
}

/// "gpu01 to gpu08 (GPUs 0-7)": nodes whose members hold the same GPUs are listed together.
std::string members_text(const cluster::Fleet& fleet, const cluster::Island& island) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;  // GPU numbers, nodes
  for (const cluster::IslandMember& member : island.members) {
    std::vector<int> gpus(static_cast<std::size_t>(member.count));
    std::iota(gpus.begin(), gpus.end(), member.first_gpu);
    const std::string numbers = compact_ranges(gpus);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == numbers; });
    if (group == groups.end()) group = groups.insert(groups.end(), {numbers, {}});
    group->second.push_back(fleet.nodes[member.node].name);
  }
  std::vector<std::string> texts;
  texts.reserve(groups.size());
  for (const auto& [numbers, nodes] : groups)
    texts.push_back(fmt::format("{} (GPUs {})", compact_names(nodes), numbers));
  return fmt::format("{}", fmt::join(texts, "; "));
}

int gpus_of(const cluster::Island& island) {
  int sum = 0;
  for (const cluster::IslandMember& member : island.members) sum += member.count;
  return sum;
}

std::string class_table(const cluster::IslandLevel& level, const Terminal& terminal) {
  Table table({{"class", false, 20},
               {"GPUs", true},
               {"islands", true},
               {"members x GPUs", true},
               {"inside member"},
               {"between members"}});
  for (const cluster::IslandClass& c : level.classes) {
    table.add({{c.alias, Style::kBold},
               {thousands(c.gpu_count())},
               {thousands(static_cast<std::int64_t>(c.islands.size()))},
               {fmt::format("{} x {}", c.members_per_island, c.gpus_per_member)},
               {c.gpus_per_member > 1 ? bandwidth_text(c.inside_member.bandwidth) : "-"},
               {c.members_per_island > 1 ? bandwidth_text(c.between_members.bandwidth) : "-"}});
  }
  return table.render(terminal);
}

constexpr std::size_t kShownIslands = 12;  // of a class; the rest is counted (--json has all)

std::string island_list(const cluster::Fleet& fleet, const cluster::IslandLevel& level, const Terminal& terminal) {
  std::string out;
  for (const cluster::IslandClass& c : level.classes) {
    out += terminal.styled(c.alias, Style::kBold) + "\n";
    for (std::size_t i = 0; i < c.islands.size() && i < kShownIslands; ++i) {
      const cluster::Island& island = at(level.islands, c.islands[i]);
      out += paragraph(terminal, fmt::format("island {}: {}", island.id, members_text(fleet, island)), 2);
      const bool repeated = i > 0 && at(level.islands, c.islands[i - 1]).reason == island.reason;
      if (!island.reason.empty() && !repeated) out += paragraph(terminal, island.reason, 4);
    }
    if (c.islands.size() > kShownIslands) {
      out += fmt::format("  and {} more islands of this class\n",
                         thousands(static_cast<std::int64_t>(c.islands.size() - kShownIslands)));
    }
  }
  return out;
}

std::string links_text(const cluster::IslandLevel& level) {
  std::string out;
  const auto count = static_cast<int>(level.classes.size());
  for (int a = 0; a < count; ++a) {
    for (int b = a; b < count; ++b) {
      const cluster::IslandClass& first = at(level.classes, a);
      const cluster::IslandClass& second = at(level.classes, b);
      if (a == b && first.islands.size() < 2) continue;
      const cluster::Link& link = a == b ? first.between_islands : level.link(a, b);
      out += fmt::format("  {} to {}: {}, {:.1f} us\n", first.alias, a == b ? "its other islands" : second.alias,
                         bandwidth_text(link.bandwidth), link.latency.as_double() / 1e3);
    }
  }
  return out.empty() ? out : "links, per member, at worst\n" + out;
}

std::string for_people(const cluster::Fleet& fleet, const cluster::IslandHierarchy& hierarchy,
                       const Terminal& terminal) {
  std::string out = fmt::format(
      "{}: {} on {}; GPUs of an island differ by at most {:g} %\n", fleet.name, counted(fleet.gpu_count(), "GPU"),
      counted(static_cast<std::int64_t>(fleet.nodes.size()), "node"), hierarchy.tolerance * 100);
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    out += fmt::format("\nlevel \"{}\": {} of {}", level.name,
                       counted(static_cast<std::int64_t>(level.islands.size()), "island"),
                       counted(static_cast<std::int64_t>(level.classes.size()), "class"));
    if (level.threshold > 0) {
      out += fmt::format(", joined by links of at least {}", bandwidth_text(BytesPerSecond(level.threshold)));
    }
    out += "\n" + class_table(level, terminal) + island_list(fleet, level, terminal) + links_text(level);
  }
  return out;
}

Json island_json(const cluster::Fleet& fleet, const cluster::IslandLevel& level, const cluster::Island& island) {
  Json json;
  json["id"] = island.id;
  json["class"] = at(level.classes, island.island_class).alias;
  json["gpus"] = gpus_of(island);
  json["reason"] = island.reason;
  json["members"] = Json::array();
  for (const cluster::IslandMember& member : island.members) {
    json["members"].push_back(
        {{"node", fleet.nodes[member.node].name}, {"first_gpu", member.first_gpu}, {"count", member.count}});
  }
  return json;
}

Json class_json(const cluster::IslandLevel& level, const cluster::IslandClass& c) {
  Json json;
  json["alias"] = c.alias;
  json["gpu_type"] = c.device.name;
  json["gpus"] = c.gpu_count();
  json["gpus_per_member"] = c.gpus_per_member;
  json["members_per_island"] = c.members_per_island;
  json["islands"] = c.islands;
  json["inside_member"] = link_json(c.inside_member);
  json["between_members"] = link_json(c.between_members);
  json["between_islands"] = link_json(c.between_islands);
  json["to_classes"] = Json::object();
  for (const cluster::IslandClass& other : level.classes) {
    if (other.id != c.id) json["to_classes"][other.alias] = link_json(level.link(c.id, other.id));
  }
  return json;
}

Json document_of(const cluster::Fleet& fleet, const cluster::IslandHierarchy& hierarchy) {
  Json json;
  json["schema"] = "tangram.islands/1";
  json["status"] = "ok";
  json["fleet"] = {{"name", fleet.name}, {"gpus", fleet.gpu_count()}, {"nodes", fleet.nodes.size()}};
  json["tolerance"] = hierarchy.tolerance;
  json["levels"] = Json::array();
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    Json entry;
    entry["name"] = level.name;
    entry["threshold_gb_s"] = level.threshold / 1e9;
    entry["classes"] = Json::array();
    for (const cluster::IslandClass& c : level.classes) entry["classes"].push_back(class_json(level, c));
    entry["islands"] = Json::array();
    for (const cluster::Island& island : level.islands) entry["islands"].push_back(island_json(fleet, level, island));
    json["levels"].push_back(std::move(entry));
  }
  return json;
}

ExitCode run_islands(const IslandsArguments& arguments, const Context& context) {
  const auto fleet = load_fleet(arguments.cluster, context.edits);
  if (!fleet) return report(context.terminal, context.json, fleet.error());
  report_assumptions(context, *fleet);
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(*fleet, context.settings.share("island-tolerance"));
  if (context.json) return print_result(context, "", document_of(*fleet, hierarchy));
  return print_text(context, for_people(*fleet, hierarchy, context.terminal));
}

}  // namespace

Command islands_command() {
  return {.name = "islands",
          .usage = "CLUSTER",
          .summary = "show which GPUs are alike, and why",
          .examples = R"(  tangram islands fleet.json
  tangram islands fleet.json --island-tolerance 5%
  tangram islands fleet.json --set 'node(a-07).compute=70%'
)",
          .details = R"(Groups GPUs that are alike in compute, memory and connectivity, for each level
of links.

Manual: tangram help islands-and-search
)",
          .bind = bound<IslandsArguments>(parameters_of, run_islands),
          .settings = {SettingGroup::kIslands},
          .edits_fleet = true};
}

}  // namespace tangram::app
