#include "graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tangram/base/at.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::model {

namespace {

constexpr std::string_view kConnectorSuffix = ".connector";

std::int64_t of_sample(double items, std::int64_t tokens) {
  return std::max<std::int64_t>(1, std::llround(items * static_cast<double>(tokens)));
}

/// Whether gradients pass through a module: it or its adapters are trained, or something upstream is.
class Training {
 public:
  explicit Training(const ModuleGraph& graph) : graph_(graph) {}

  [[nodiscard]] bool passes(int module) const {
    const Module& own = at(graph_.modules, module);
    return own.trainable || own.adapters.any() || is_upstream(module);
  }

 private:
  [[nodiscard]] bool is_upstream(int module) const {
    return std::ranges::any_of(graph_.edges, [&](const Edge& edge) {
      return edge.to == module && (passes(edge.from) || trains_connector(edge));
    });
  }

  [[nodiscard]] bool trains_connector(const Edge& edge) const {
    const Module& target = at(graph_.modules, edge.to);
    const Module& owner = target.kind == ModuleKind::kGenerator ? target : at(graph_.modules, edge.from);
    return owner.connector && owner.connector->trainable;
  }

  const ModuleGraph& graph_;
};

std::string connector_name(const Module& module) { return module.name + std::string(kConnectorSuffix); }

bool trains_anything(const ModuleGraph& graph) {
  return std::ranges::any_of(graph.modules, [](const Module& module) {
    return module.trainable || module.adapters.any() || (module.connector && module.connector->trainable);
  });
}

std::vector<std::string> names_to_freeze(const ModuleGraph& graph) {
  std::vector<std::string> names;
  for (const Module& module : graph.modules) {
    names.push_back(module.name);
    if (module.connector) names.push_back(connector_name(module));
  }
  return names;
}

bool freeze_one(ModuleGraph& graph, std::string_view name) {
  const bool connector = name.ends_with(kConnectorSuffix);
  if (connector) name.remove_suffix(kConnectorSuffix.size());
  for (Module& module : graph.modules) {
    if (module.name != name || (connector && !module.connector)) continue;
    (connector ? module.connector->trainable : module.trainable) = false;
    return true;
  }
  return false;
}

std::string freeze_hint(const ModuleGraph& graph, const std::string& name) {
  const std::vector<std::string> names = names_to_freeze(graph);
  if (const auto near = closest(name, names)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("there are {}", fmt::join(names, ", "));
}

std::string module_hint(const ModuleGraph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (const Module& module : graph.modules) names.push_back(module.name);
  if (const auto near = closest(name, names)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("there are {}", fmt::join(names, ", "));
}

/// The name that blocks of a type had before variants of it were numbered: "vision" of "vision-2".
std::string_view unnumbered(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string_view::npos && end > 0 && end + 1 < name.size() && name[end] == '-';
  return numbered ? name.substr(0, end) : name;
}

/// Of a module's adapters those that a block has matrices for.
Adapters fitting(Adapters adapters, const BlockType& block) {
  const AdapterTargets known = adaptable_targets(block);
  for (const auto& [name, target] : kAdapterTargets) {
    if (!known.has(target)) adapters.targets = adapters.targets.without(target);
  }
  return adapters.any() ? adapters : Adapters{};
}

/// What adapters can stand beside in a module.
AdapterTargets targets_of(const Module& module, const std::vector<BlockType>& chain) {
  AdapterTargets targets;
  for (int i = module.blocks.first; i < module.blocks.last; ++i) {
    targets = targets.with(adaptable_targets(at(chain, i)));
  }
  return targets;
}

std::string targets_hint(const AdapterTargets& known) {
  if (known.empty()) return "adapters stand beside matrices of attention and of feed-forwards without routing";
  return fmt::format("there are {}", fmt::join(names_of(known), ", "));
}

Connector connector_of(const Module& module, const Edge* edge, const Gradients& inputs) {
  Connector connector = *module.connector;
  if (edge != nullptr) connector.copies += static_cast<int>(edge->into_layers.size());
  connector.gradients = {connector.trainable, inputs.any()};
  connector.tokens_in = module.sample_tokens_in();
  connector.tokens_out = module.sample_tokens_out();
  return connector;
}

}  // namespace

std::int64_t Module::sample_tokens_in() const { return of_sample(items.mean, tokens_in); }
std::int64_t Module::sample_tokens_out() const { return of_sample(items.mean, tokens_out); }

const Module* ModuleGraph::find(std::string_view name) const {
  const auto found = std::ranges::find_if(modules, [&](const Module& module) { return module.name == name; });
  return found == modules.end() ? nullptr : &*found;
}

const Module& ModuleGraph::language() const {
  return *std::ranges::find(modules, ModuleKind::kLanguage, &Module::kind);
}

const Edge* ModuleGraph::edge_of(int module) const {
  const ModuleKind kind = at(modules, module).kind;
  if (kind == ModuleKind::kLanguage) return nullptr;
  const auto found = std::ranges::find(edges, module, kind == ModuleKind::kEncoder ? &Edge::from : &Edge::to);
  return found == edges.end() ? nullptr : &*found;
}

std::vector<std::string> frozen_parts(const ModuleGraph& graph) {
  std::vector<std::string> names;
  for (const Module& module : graph.modules) {
    if (!module.trainable && !module.adapters.any()) names.push_back(module.name);
    if (module.connector && !module.connector->trainable) names.push_back(connector_name(module));
  }
  return names;
}

std::vector<NamedConstraint> constraints(const ModuleGraph& graph) {
  std::vector<NamedConstraint> found;
  for (const Module& module : graph.modules) {
    if (module.constraint != ModuleConstraint{}) found.push_back({module.name, module.constraint});
  }
  return found;
}

std::string_view to_string(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kEncoder: return "encoder";
    case ModuleKind::kLanguage: return "language";
    case ModuleKind::kGenerator: return "generator";
  }
  return "language";
}

Gradients Model::end_gradients() const {
  if (graph.empty()) return {};
  const std::vector<Gradients> all = module_gradients(graph);
  return at(all, &graph.language() - graph.modules.data());
}

bool says_tokens(const Module& module) {
  return module.connector || module.tokens_in != module.tokens_out || module.items != Items{};
}

bool says_more(const ModuleGraph& graph) {
  const bool modules = std::ranges::any_of(graph.modules, [](const Module& module) {
    return module.kind == ModuleKind::kGenerator || !module.trainable || module.constraint != ModuleConstraint{} ||
           says_tokens(module);
  });
  return modules || graph.edges != usual_edges(graph.modules);
}

ModuleGraph graph_of_chain(const std::vector<BlockType>& chain) {
  const auto causal = std::ranges::find_if(chain, [](const BlockType& block) { return block.attention.causal; });
  const auto encoders = causal == chain.end() ? chain.begin() : causal;
  ModuleGraph graph;
  for (auto first = chain.begin(); first != encoders;) {
    const std::string_view name = unnumbered(first->name);
    const auto last = std::find_if(first, encoders, [&](const BlockType& b) { return unnumbered(b.name) != name; });
    Module module;
    module.name = name;
    module.kind = ModuleKind::kEncoder;
    module.blocks = {static_cast<int>(first - chain.begin()), static_cast<int>(last - chain.begin())};
    module.tokens_in = module.tokens_out = first->tokens;
    graph.modules.push_back(std::move(module));
    first = last;
  }
  Module language;
  language.name = "language";
  language.blocks = {static_cast<int>(encoders - chain.begin()), static_cast<int>(chain.size())};
  graph.modules.push_back(std::move(language));
  graph.edges = usual_edges(graph.modules);
  return graph;
}

std::vector<Edge> usual_edges(const std::vector<Module>& modules) {
  const auto language = std::ranges::find(modules, ModuleKind::kLanguage, &Module::kind) - modules.begin();
  std::vector<Edge> edges;
  for (int i = 0; i < std::ssize(modules); ++i) {
    const int center = static_cast<int>(language);
    if (at(modules, i).kind == ModuleKind::kEncoder) edges.push_back({i, center, {}, {}});
    if (at(modules, i).kind == ModuleKind::kGenerator) edges.push_back({center, i, {}, {}});
  }
  return edges;
}

std::vector<Conflict> freeze(Blueprint& blueprint, const std::vector<std::string>& names) {
  ModuleGraph& graph = blueprint.frame.graph;
  std::vector<Conflict> found;
  if (graph.empty() && !names.empty()) graph = graph_of_chain(blueprint.chain);
  for (const std::string& name : names) {
    if (freeze_one(graph, name)) continue;
    found.push_back({"freeze", fmt::format("no module to freeze is called \"{}\"", name), freeze_hint(graph, name)});
  }
  if (found.empty() && !graph.empty() && !trains_anything(graph)) {
    found.push_back({"freeze", "every module is frozen: nothing would be trained", "leave one of them to be trained"});
  }
  return found;
}

std::vector<Conflict> constrain(Blueprint& blueprint, const std::vector<NamedConstraint>& wanted) {
  ModuleGraph& graph = blueprint.frame.graph;
  std::vector<Conflict> found;
  if (graph.empty() && !wanted.empty()) graph = graph_of_chain(blueprint.chain);
  for (const auto& [name, constraint] : wanted) {
    const auto module = std::ranges::find(graph.modules, name, &Module::name);
    if (module != graph.modules.end()) {
      module->constraint = constraint;
    } else {
      found.push_back({"constraints", fmt::format("no module is called \"{}\"", name), module_hint(graph, name)});
    }
  }
  return found;
}

void put_adapters(ModuleGraph& graph, const std::vector<BlockType>& chain, Adapters adapters) {
  if (graph.empty()) graph = graph_of_chain(chain);
  Module& language = *std::ranges::find(graph.modules, ModuleKind::kLanguage, &Module::kind);
  if (adapters.targets.empty()) adapters.targets = targets_of(language, chain);
  language.adapters = adapters;
  language.trainable = false;
}

std::vector<Conflict> adapt(Blueprint& blueprint, Adapters adapters) {
  if (adapters.rank == 0) return {};
  put_adapters(blueprint.frame.graph, blueprint.chain, adapters);
  const AdapterTargets known = targets_of(blueprint.frame.graph.language(), blueprint.chain);
  std::vector<Conflict> found;
  for (const auto& [name, target] : kAdapterTargets) {
    if (!adapters.targets.has(target) || known.has(target)) continue;
    found.push_back({"lora", fmt::format("no layer of the language model has a \"{}\"", name), targets_hint(known)});
  }
  if (known.empty()) found.push_back({"lora", "no layer has matrices for adapters", targets_hint(known)});
  return found;
}

std::vector<Gradients> module_gradients(const ModuleGraph& graph) {
  const Training training(graph);
  std::vector<Gradients> all;
  for (int i = 0; i < std::ssize(graph.modules); ++i) {
    all.push_back({at(graph.modules, i).trainable, training.passes(i)});
  }
  return all;
}

void apply_graph(const ModuleGraph& graph, std::vector<BlockType>& chain) {
  const std::vector<Gradients> gradients = module_gradients(graph);
  for (int m = 0; m < std::ssize(graph.modules); ++m) {
    const Module& module = at(graph.modules, m);
    const bool encodes = module.kind == ModuleKind::kEncoder;
    for (int i = module.blocks.first; i < module.blocks.last; ++i) {
      BlockType& block = at(chain, i);
      block.gradients = at(gradients, m);
      block.constraint = module.constraint;
      block.adapters = fitting(module.adapters, block);
      if (!encodes) continue;
      block.tokens = module.sample_tokens_in();
      std::int64_t& window = block.attention.sliding_window;
      if (window == 0 || window > module.tokens_in) window = module.tokens_in;
    }
    if (!module.connector) continue;
    const Edge* edge = graph.edge_of(m);
    const int source = encodes || edge == nullptr ? m : edge->from;
    at(chain, encodes ? module.blocks.last - 1 : module.blocks.first).connector =
        connector_of(module, edge, at(gradients, source));
  }
}

}  // namespace tangram::model
