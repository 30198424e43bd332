// Readers of what tangram.model/1 says of modules. Goes in: sections of the file. Comes out: the graph of a blueprint;
// mistakes go to the readers' sinks.
#pragma once

#include <optional>
#include <vector>

#include "blueprint.hpp"

namespace tangram::model {

/// `modules` and `edges` of an explicit architecture, whose chain and extra parameters are known.
void read_modules(io::ObjectReader& reader, Blueprint& blueprint);

/// `edges` between modules that are known.
void read_edges(io::ObjectReader& reader, ModuleGraph& graph);

/// What a module says of its connector.
[[nodiscard]] std::optional<Connector> read_connector(io::ObjectReader& module);

/// Where the file says something of a module.
struct ModuleSection {
  io::ObjectReader reader;
  int module = 0;
};
/// Whether connectors fit what they join. The edges are known.
void check_connectors(const std::vector<ModuleSection>& sections, const Blueprint& blueprint);

/// The `constraints` of `training`, or those of the same form: what is fixed of modules, by name.
[[nodiscard]] std::vector<NamedConstraint> read_constraints(io::ObjectReader& training);

/// The `lora` section of `training` or of a module.
[[nodiscard]] Adapters read_adapters(io::ObjectReader& lora);

/// The `data` section: items of a sample, encoder by encoder.
void read_data(io::ObjectReader& reader, Blueprint& blueprint);

}  // namespace tangram::model
