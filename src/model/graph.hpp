// What a graph of modules means for the blocks of the chain.
#pragma once

#include <string>
#include <vector>

#include "blueprint.hpp"

namespace tangram::model {

/// Whether something is said of a module's tokens beside those of its blocks.
[[nodiscard]] bool says_tokens(const Module& module);

/// Whether a graph says more than the chain of blocks by itself: connectors, tokens that become fewer, items, frozen
/// modules, constraints, generators, edges other than of each encoder into the language model.
[[nodiscard]] bool says_more(const ModuleGraph& graph);

/// The modules of a chain of which nothing else is said: encoder blocks of one name each, then the language model.
[[nodiscard]] ModuleGraph graph_of_chain(const std::vector<BlockType>& chain);

/// The edges where none are given: every encoder into the language model, and that into every generator.
[[nodiscard]] std::vector<Edge> usual_edges(const std::vector<Module>& modules);

/// Freezes modules by name, and connectors as "vision.connector". Why one of them cannot be, or why nothing is left to
/// train; the key is that of `training`.
[[nodiscard]] std::vector<Conflict> freeze(Blueprint& blueprint, const std::vector<std::string>& names);

/// Sets what a job fixes of modules, by name. Why one cannot be; the key is that of `training`.
[[nodiscard]] std::vector<Conflict> constrain(Blueprint& blueprint, const std::vector<NamedConstraint>& wanted);

/// Puts adapters beside matrices of the language model, which is frozen then; without targets beside all that can have
/// them.
void put_adapters(ModuleGraph& graph, const std::vector<BlockType>& chain, Adapters adapters);

/// The same of a blueprint; nothing where their rank is 0. Why one of them cannot be; the key is that of `training`.
[[nodiscard]] std::vector<Conflict> adapt(Blueprint& blueprint, Adapters adapters);

/// Tokens, windows, connectors, gradients, adapters and constraints of the blocks. Items attend to themselves alone.
void apply_graph(const ModuleGraph& graph, std::vector<BlockType>& chain);

/// Of each module's blocks.
[[nodiscard]] std::vector<Gradients> module_gradients(const ModuleGraph& graph);

}  // namespace tangram::model
