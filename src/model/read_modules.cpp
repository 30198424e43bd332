// Modules, connectors, edges and the `data` section of tangram.model/1; their keys are described in read_model.cpp.
#include "read_modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "graph.hpp"
#include "tangram/base/at.hpp"

namespace tangram::model {

namespace {

using NormChoice = std::optional<bool>;  // whether it has a bias; none: there is no norm

std::vector<std::int64_t> read_integers(io::ObjectReader& reader, std::string_view key, io::IntegerRange range) {
  std::vector<std::int64_t> values;
  const io::Node* list = reader.raw(key);
  if (list == nullptr) return values;
  const auto refuse = [&](const io::Node& at, const std::string& pointer) {
    reader.error_at(at, pointer, "wrong-type",
                    fmt::format("\"{}\" must be a list of integers between {} and {}", key, range.min, range.max));
  };
  const std::string pointer = fmt::format("{}/{}", reader.pointer(), key);
  if (list->kind != io::NodeKind::kArray) {
    refuse(*list, pointer);
    return values;
  }
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const io::Node& item = list->items[i];
    const bool valid = item.kind == io::NodeKind::kInteger && item.integer >= range.min && item.integer <= range.max;
    if (!valid) refuse(item, fmt::format("{}/{}", pointer, i));
    if (valid) values.push_back(item.integer);
  }
  return values;
}

std::vector<int> read_layers(io::ObjectReader& reader, std::string_view key, io::IntegerRange range) {
  std::vector<int> layers;
  for (const std::int64_t layer : read_integers(reader, key, range)) layers.push_back(static_cast<int>(layer));
  return layers;
}

void check_widths(io::ObjectReader& reader, const Connector& connector) {
  const bool resampler = connector.kind == ConnectorKind::kResampler;
  if (resampler ? connector.widths.size() == 3 : connector.widths.size() >= 2) return;
  const std::string what = resampler ? "a resampler has three widths: input, queries and output"
                                     : "a connector has two widths at least: input and output";
  reader.error_at("widths", reader.has("widths") ? "inconsistent-value" : "missing-key", what,
                  "as in widths: [1024, 4096, 4096]");
}

void check_layers(io::ObjectReader& reader, const ModuleGraph& graph, const Edge& edge) {
  if (edge.from_layers.size() != edge.into_layers.size()) {
    reader.error_at(
        "into_layers", "inconsistent-value",
        fmt::format("{} layers are tapped, but they go into {}", edge.from_layers.size(), edge.into_layers.size()),
        "\"from_layers\" and \"into_layers\" go in pairs");
  }
  const auto check = [&](std::string_view key, const std::vector<int>& layers, const Module& module) {
    for (const int layer : layers) {
      if (layer < module.blocks.count()) continue;
      reader.error_at(
          key, "out-of-range",
          fmt::format("\"{}\" has no layer {}: it has {}, counted from 0", module.name, layer, module.blocks.count()));
    }
  };
  check("from_layers", edge.from_layers, at(graph.modules, edge.from));
  check("into_layers", edge.into_layers, at(graph.modules, edge.to));
}

std::optional<int> read_end(io::ObjectReader& reader, std::string_view key, const ModuleGraph& graph) {
  const std::string name = reader.string(key);
  const Module* module = graph.find(name);
  if (module != nullptr) return static_cast<int>(module - graph.modules.data());
  if (name.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const Module& known : graph.modules) names.push_back(known.name);
  reader.error_at(key, "unknown-name", fmt::format("there is no module \"{}\"", name),
                  fmt::format("modules are {}", fmt::join(names, ", ")));
  return std::nullopt;
}

/// Encoders feed encoders behind them and the language model, which feeds generators.
bool can_join(const ModuleGraph& graph, const Edge& edge) {
  const ModuleKind from = at(graph.modules, edge.from).kind;
  const ModuleKind to = at(graph.modules, edge.to).kind;
  if (from == ModuleKind::kEncoder) {
    return to == ModuleKind::kLanguage || (to == ModuleKind::kEncoder && edge.from < edge.to);
  }
  return from == ModuleKind::kLanguage && to == ModuleKind::kGenerator;
}

void read_edge(io::ObjectReader& reader, ModuleGraph& graph) {
  const std::optional<int> from = read_end(reader, "from", graph);
  const std::optional<int> to = read_end(reader, "to", graph);
  Edge edge;
  edge.from_layers = read_layers(reader, "from_layers", io::integer_limit("from_layers"));
  edge.into_layers = read_layers(reader, "into_layers", io::integer_limit("into_layers"));
  reader.finish();
  if (!from || !to) return;
  edge.from = *from;
  edge.to = *to;
  if (!can_join(graph, edge)) {
    reader.error_at(
        "to", "inconsistent-value",
        fmt::format("\"{}\" cannot feed \"{}\"", at(graph.modules, edge.from).name, at(graph.modules, edge.to).name),
        "encoders feed encoders behind them or the language model, which feeds generators");
    return;
  }
  check_layers(reader, graph, edge);
  graph.edges.push_back(std::move(edge));
}

/// One edge out of each encoder, one into each generator.
void check_edges(io::ObjectReader& reader, const ModuleGraph& graph) {
  for (int m = 0; m < std::ssize(graph.modules); ++m) {
    const Module& module = at(graph.modules, m);
    if (module.kind == ModuleKind::kLanguage) continue;
    const bool encodes = module.kind == ModuleKind::kEncoder;
    const auto count = std::ranges::count(graph.edges, m, encodes ? &Edge::from : &Edge::to);
    if (count == 1) continue;
    reader.error_at("edges", "inconsistent-value",
                    fmt::format("the {} \"{}\" has {} edges {}", to_string(module.kind), module.name, count,
                                encodes ? "out of it" : "into it"),
                    "it has one");
  }
}

ModuleConstraint read_constraint(io::ObjectReader& reader) {
  ModuleConstraint constraint;
  for (const auto& [name, value] : kFixedDegrees) {
    if (reader.has(name)) constraint.*value = static_cast<int>(reader.integer(name, io::integer_limit("tp")));
  }
  constraint.gpus = reader.strings_if("gpus");
  reader.finish();
  return constraint;
}

Module read_module(io::ObjectReader& reader, int first) {
  Module module;
  module.name = reader.string("name");
  module.kind = reader.choice<ModuleKind>(
      "kind",
      {{"encoder", ModuleKind::kEncoder}, {"language", ModuleKind::kLanguage}, {"generator", ModuleKind::kGenerator}});
  module.blocks = {first, first + static_cast<int>(reader.integer("blocks", kLayers))};
  module.trainable = reader.boolean_or("trainable", true);
  if (auto constraint = reader.object_if("constraint")) module.constraint = read_constraint(*constraint);
  if (module.kind == ModuleKind::kEncoder) {
    module.tokens_in = reader.integer("tokens_in", kTokens);
    module.tokens_out = reader.integer_or("tokens_out", module.tokens_in, kTokens);
    module.patch_parameters = reader.integer_or("patch_parameters", 0, io::integer_limit("patch_parameters"));
  }
  if (module.kind != ModuleKind::kLanguage) {
    module.connector = read_connector(reader);
  } else if (auto lora = reader.object_if("lora")) {
    module.adapters = read_adapters(*lora);
  }
  reader.finish();
  return module;
}

void check_order(io::ObjectReader& reader, const std::vector<Module>& modules) {
  const auto languages = std::ranges::count(modules, ModuleKind::kLanguage, &Module::kind);
  if (languages != 1 || !std::ranges::is_sorted(modules, {}, &Module::kind)) {
    reader.error_at("modules", "inconsistent-value",
                    languages == 1 ? "modules are not in the order of the chain"
                                   : fmt::format("there are {} language models", languages),
                    "encoders come first, then one language model, then generators");
  }
}

void check_chain(io::ObjectReader& reader, const Blueprint& blueprint, const std::vector<Module>& modules) {
  const auto blocks = std::ssize(blueprint.chain);
  if (!modules.empty() && modules.back().blocks.last != blocks) {
    reader.error_at("modules", "inconsistent-value",
                    fmt::format("modules have {} blocks, \"blocks\" has {}", modules.back().blocks.last, blocks));
  }
  std::int64_t patches = 0;
  for (const Module& module : modules) patches += module.patch_parameters;
  if (patches > blueprint.frame.extra_embedding_parameters) {
    reader.error_at("extra_embedding_parameters", "inconsistent-value",
                    fmt::format("modules have {} patch parameters, which are among {} extra embedding parameters",
                                patches, blueprint.frame.extra_embedding_parameters));
  }
}

std::int64_t width_before(const Blueprint& blueprint, const Module& module) {
  return at(blueprint.chain, module.blocks.last - 1).hidden;
}

/// Tokens of an encoder that become one.
std::int64_t merged_tokens(const Blueprint& blueprint, const Module& encoder) {
  const bool merges = encoder.connector && encoder.connector->kind == ConnectorKind::kMerger;
  return merges ? encoder.connector->widths.front() / width_before(blueprint, encoder) : 1;
}

void check_tokens(io::ObjectReader& reader, const Blueprint& blueprint, const Module& module) {
  const std::int64_t merged = merged_tokens(blueprint, module);
  if (module.kind != ModuleKind::kEncoder || module.tokens_out * merged <= module.tokens_in) return;
  reader.error_at("tokens_out", "inconsistent-value",
                  merged > 1 ? fmt::format("{} tokens out of {} tokens in, of which {} become one", module.tokens_out,
                                           module.tokens_in, merged)
                             : fmt::format("{} tokens out of {} tokens in", module.tokens_out, module.tokens_in),
                  fmt::format("use at most {}", module.tokens_in / merged));
}

void check_connector(const ModuleSection& section, const Blueprint& blueprint) {
  const ModuleGraph& graph = blueprint.frame.graph;
  const Module& module = at(graph.modules, section.module);
  const Edge* edge = graph.edge_of(section.module);
  io::ObjectReader reader = section.reader;
  auto inner = module.connector ? reader.object_if("connector") : std::nullopt;
  if (!inner || edge == nullptr) return check_tokens(reader, blueprint, module);
  const std::int64_t in = width_before(blueprint, at(graph.modules, edge->from));
  const std::int64_t out = at(blueprint.chain, at(graph.modules, edge->to).blocks.first).hidden;
  const Connector& connector = *module.connector;
  const bool merger = connector.kind == ConnectorKind::kMerger;
  const std::int64_t front = connector.widths.front();
  if (merger ? front % in != 0 : front != in) {
    inner->error_at("widths", "inconsistent-value",
                    fmt::format("the connector's input is {} wide, what it reads {}", front, in),
                    merger ? "the input of a merger is that of several tokens side by side" : "");
  } else if (connector.widths.back() != out) {
    inner->error_at("widths", "inconsistent-value",
                    fmt::format("the connector's output is {} wide, \"{}\" {}", connector.widths.back(),
                                at(graph.modules, edge->to).name, out));
  } else {
    check_tokens(reader, blueprint, module);
  }
}

/// Tokens of an item, instead of those that the architecture says.
void read_item_tokens(io::ObjectReader& reader, const Blueprint& blueprint, Module& module) {
  const std::size_t mistakes = reader.sink().size();
  const std::int64_t before = module.tokens_in;
  module.tokens_in = reader.integer_or("tokens_in", before, kTokens);
  if (reader.has("tokens_in") && !reader.has("tokens_out") && module.tokens_out != before) {
    reader.error_at("tokens_in", "missing-key", "missing key \"tokens_out\": tokens become fewer in this module",
                    fmt::format("of {} come {}", before, module.tokens_out));
  }
  const std::int64_t same = module.tokens_out == before ? module.tokens_in : module.tokens_out;
  module.tokens_out = reader.integer_or("tokens_out", same, kTokens);
  if (reader.sink().size() == mistakes) check_tokens(reader, blueprint, module);
}

void check_spread(io::ObjectReader& reader, const Items& items) {
  const auto check = [&](std::string_view key, double value, std::string_view least_key, double least) {
    if (value == 0 || value >= least) return;
    reader.error_at(key, "inconsistent-value",
                    fmt::format("\"{}\" ({}) is less than \"{}\" ({})", key, value, least_key, least));
  };
  check("max", items.max, "mean", items.mean);
  check("max", items.max, "p95", items.p95);
}

void read_items(io::ObjectReader& reader, const Blueprint& blueprint, Module& module) {
  Items& items = module.items;
  items.of = reader.string_or("items", items.of);
  items.mean = reader.number_or("mean", items.mean, io::number_limit("mean"));
  items.p95 = reader.number_or("p95", 0, io::number_limit("p95"));
  items.max = reader.number_or("max", 0, io::number_limit("max"));
  items.none = reader.number_or("none", 0, io::number_limit("none"));
  check_spread(reader, items);
  read_item_tokens(reader, blueprint, module);
  reader.finish();
}

/// What samples have of this encoder is said.
void forget_assumption(Blueprint& blueprint, std::size_t encoder) {
  if (encoder < blueprint.assumed_items.size()) blueprint.assumed_items[encoder].clear();
}

}  // namespace

std::optional<Connector> read_connector(io::ObjectReader& module) {
  auto reader = module.object_if("connector");
  if (!reader) return std::nullopt;
  Connector out;
  out.kind = reader->choice_or<ConnectorKind>("kind", ConnectorKind::kMlp,
                                              {{"mlp", ConnectorKind::kMlp},
                                               {"merger", ConnectorKind::kMerger},
                                               {"pool", ConnectorKind::kPool},
                                               {"resampler", ConnectorKind::kResampler}});
  const std::size_t before = reader->sink().size();
  out.widths = read_integers(*reader, "widths", io::integer_limit("widths"));
  if (reader->sink().size() == before) check_widths(*reader, out);
  out.widths.resize(std::max<std::size_t>(out.widths.size(), out.kind == ConnectorKind::kResampler ? 3 : 2), 1);
  out.bias = reader->boolean_or("bias", true);
  const NormChoice norm = reader->choice_or<NormChoice>(
      "norm", std::nullopt, {{"none", std::nullopt}, {"rmsnorm", false}, {"layernorm", true}});
  const auto width = reader->integer_if("norm_width", io::integer_limit("norm_width"));
  if (norm) out.norm = width.value_or(out.widths.front());
  out.norm_bias = norm.value_or(false);
  if (width && !norm) {
    reader->error_at("norm_width", "inconsistent-value", "\"norm_width\" without \"norm\"",
                     "say norm: rmsnorm or layernorm");
  }
  if (out.kind == ConnectorKind::kResampler) out.queries = reader->integer("queries", io::integer_limit("queries"));
  out.extra_parameters = reader->integer_or("extra_parameters", 0, io::integer_limit("extra_parameters"));
  out.trainable = reader->boolean_or("trainable", true);
  reader->finish();
  return out;
}

void read_edges(io::ObjectReader& reader, ModuleGraph& graph) {
  if (!reader.has("edges")) {
    graph.edges = usual_edges(graph.modules);
    return;
  }
  const std::size_t before = reader.sink().size();
  for (io::ObjectReader& edge : reader.objects("edges")) read_edge(edge, graph);
  if (reader.sink().size() == before) check_edges(reader, graph);
}

/// Whether the language model has what its adapters are to stand beside.
void check_adapters(const std::vector<ModuleSection>& sections, Blueprint& blueprint) {
  for (const ModuleSection& section : sections) {
    io::ObjectReader reader = section.reader;
    report(reader, adapt(blueprint, at(blueprint.frame.graph.modules, section.module).adapters));
  }
}

void read_modules(io::ObjectReader& reader, Blueprint& blueprint) {
  const std::size_t before = reader.sink().size();
  std::vector<ModuleSection> sections;
  std::vector<Module> modules;
  for (io::ObjectReader& item : reader.objects_if("modules")) {
    const bool known = std::ranges::any_of(modules, [&](const Module& m) {
      const io::Node* name = item.node().find("name");
      return name != nullptr && name->text == m.name;
    });
    modules.push_back(read_module(item, modules.empty() ? 0 : modules.back().blocks.last));
    sections.push_back({item, static_cast<int>(modules.size()) - 1});
    if (known) {
      item.error_at("name", "duplicate-name", fmt::format("two modules are called \"{}\"", modules.back().name));
    }
  }
  if (modules.empty() && reader.sink().size() == before) return;
  if (reader.sink().size() == before) check_order(reader, modules);
  if (reader.sink().size() == before) check_chain(reader, blueprint, modules);
  if (reader.sink().size() != before) {
    reader.ignore("edges");
    return;
  }
  blueprint.frame.graph.modules = std::move(modules);
  read_edges(reader, blueprint.frame.graph);
  if (reader.sink().size() == before) check_connectors(sections, blueprint);
  if (reader.sink().size() == before) check_adapters(sections, blueprint);
}

void check_connectors(const std::vector<ModuleSection>& sections, const Blueprint& blueprint) {
  for (const ModuleSection& section : sections) check_connector(section, blueprint);
}

std::vector<std::string> assumptions(const Blueprint& blueprint) {
  std::vector<std::string> all = blueprint.assumed;
  std::ranges::remove_copy(blueprint.assumed_items, std::back_inserter(all), std::string());
  return all;
}

std::vector<NamedConstraint> read_constraints(io::ObjectReader& training) {
  std::vector<NamedConstraint> all;
  for (auto& [name, constraint] : training.object_members("constraints")) {
    all.push_back({name, read_constraint(constraint)});
  }
  return all;
}

void read_data(io::ObjectReader& reader, Blueprint& blueprint) {
  ModuleGraph& graph = blueprint.frame.graph;
  for (auto& [name, items] : reader.object_members("data")) {
    const auto module = std::ranges::find(graph.modules, name, &Module::name);
    if (module != graph.modules.end() && module->kind == ModuleKind::kEncoder) {
      read_items(items, blueprint, *module);
      forget_assumption(blueprint, static_cast<std::size_t>(module - graph.modules.begin()));
      continue;
    }
    std::vector<std::string> names;
    for (const Module& known : graph.modules) {
      if (known.kind == ModuleKind::kEncoder) names.push_back(known.name);
    }
    items.error_at("", "unknown-name", fmt::format("there is no encoder \"{}\"", name),
                   names.empty() ? "the model has none" : fmt::format("encoders are {}", fmt::join(names, ", ")));
  }
}

}  // namespace tangram::model
