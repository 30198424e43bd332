// A multimodal model as a graph of modules: encoders that feed a language model, generators that it feeds. Each is a
// range of blocks of the model's chain. Goes in: what a model file or a Hugging Face config says of them. Comes out:
// tokens into and out of each, the connectors between them, and which of them are trained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/units.hpp"
#include "tangram/model/adapters.hpp"
#include "tangram/model/block_range.hpp"
#include "tangram/model/module_constraint.hpp"

namespace tangram::model {

/// What backward works out for some parameters and their input. A module needs gradients of its parameters where it is
/// trained, and of its input where it, its adapters, its connector or a module upstream is.
struct Gradients {
  bool weights = true;
  bool inputs = true;
  [[nodiscard]] bool any() const { return weights || inputs; }
  /// Products of backward for each product with weights of forward: 0, 1 or 2.
  [[nodiscard]] int products() const { return (weights ? 1 : 0) + (inputs ? 1 : 0); }
  /// The same for a product of two activations, both of which need their gradient.
  [[nodiscard]] int attention_products() const { return any() ? 2 : 0; }
  bool operator==(const Gradients&) const = default;
};

enum class ConnectorKind : std::uint8_t {
  kMlp,        ///< token by token (LLaVA, Liu et al., arXiv 2310.03744)
  kMerger,     ///< neighbouring tokens side by side become one (Qwen2-VL, arXiv 2409.12191; InternVL's pixel shuffle)
  kPool,       ///< their average does (Gemma 3, arXiv 2503.19786)
  kResampler,  ///< learned queries attend to them (Qwen-VL, arXiv 2308.12966)
};

/// What turns tokens of one module into tokens of another. It runs in the stage that holds the last block of its
/// encoder, or the first of its generator.
struct Connector {
  ConnectorKind kind = ConnectorKind::kMlp;
  std::vector<std::int64_t> widths;  ///< of its linear layers, input first; of a resampler: input, queries, output
  bool bias = true;
  std::int64_t norm = 0;  ///< width of a norm in front; 0: none
  bool norm_bias = false;
  std::int64_t queries = 0;           ///< learned ones of a resampler, for each item
  std::int64_t extra_parameters = 0;  ///< in no product: separator tokens and alike
  bool trainable = true;
  // What follows from the graph; a block's connector has it, a module's has not.
  int copies = 1;  ///< of linear layers and norm: one more for each deeper entry into its target
  Gradients gradients;
  std::int64_t tokens_in = 0;   ///< of one sample
  std::int64_t tokens_out = 0;  ///< of one sample

  bool operator==(const Connector&) const = default;
};

/// Parameters of a connector, split by how tensor parallelism shards them.
struct ConnectorParameters {
  std::int64_t sharded = 0;     ///< matrices, and queries of a resampler
  std::int64_t replicated = 0;  ///< biases, norms, extra parameters
  [[nodiscard]] std::int64_t total() const { return sharded + replicated; }
};
[[nodiscard]] ConnectorParameters parameters(const Connector& connector);

/// Matrix products of a connector for one sample, rows x in with in x out. A resampler's attention is apart.
struct ConnectorProduct {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};
[[nodiscard]] std::vector<ConnectorProduct> products(const Connector& connector);

/// Forward FLOPs of one sample; the resampler's attention included.
[[nodiscard]] Flops forward_flops(const Connector& connector);

/// How many items (images, tiles, seconds of audio) a sample has. Planning takes the mean; the rest says how far
/// samples differ.
struct Items {
  std::string of = "image";
  double mean = 1;
  double p95 = 0;   ///< 0: not said
  double max = 0;   ///< 0: not said
  double none = 0;  ///< share of samples without any
  bool operator==(const Items&) const = default;
};

enum class ModuleKind : std::uint8_t { kEncoder, kLanguage, kGenerator };

struct Module {
  std::string name;
  ModuleKind kind = ModuleKind::kLanguage;
  BlockRange blocks;
  std::int64_t tokens_in = 0;  ///< of an item; of the language model and generators: of a sample
  std::int64_t tokens_out = 0;
  Items items;                        ///< encoders alone
  std::int64_t patch_parameters = 0;  ///< what embeds its input; part of the model's extra_embedding_parameters
  std::optional<Connector> connector;
  bool trainable = true;  ///< the blocks and what embeds their input; the connector says it of itself
  ModuleConstraint constraint;
  Adapters adapters;  ///< beside matrices of its blocks, which are not trained then

  /// Tokens of one sample, a whole number of them at least.
  [[nodiscard]] std::int64_t sample_tokens_in() const;
  [[nodiscard]] std::int64_t sample_tokens_out() const;
  [[nodiscard]] bool operator==(const Module&) const = default;
};

/// Output of one module into another. Deepstack (Meng et al., arXiv 2406.04334) taps inner layers, too.
struct Edge {
  int from = 0;                  ///< of ModuleGraph::modules
  int to = 0;                    ///< the same
  std::vector<int> from_layers;  ///< layers of `from`, counted from 0, whose outputs go further in
  std::vector<int> into_layers;  ///< layers of `to` behind which they are added
  bool operator==(const Edge&) const = default;
};

/// Modules in the order of the chain: encoders, the language model, generators. Edges form a tree into the language
/// model and one out of it: each encoder has one target, each generator one source. Empty: the file says no more than
/// a chain of blocks.
struct ModuleGraph {
  std::vector<Module> modules;
  std::vector<Edge> edges;

  [[nodiscard]] bool empty() const { return modules.empty(); }
  [[nodiscard]] const Module* find(std::string_view name) const;
  [[nodiscard]] const Module& language() const;  ///< of a graph that is not empty
  /// The edge out of an encoder, or into a generator; null for the language model.
  [[nodiscard]] const Edge* edge_of(int module) const;
  bool operator==(const ModuleGraph&) const = default;
};

/// What is not trained, as `freeze` names it: "vision", "vision.connector"; modules with adapters are left out.
[[nodiscard]] std::vector<std::string> frozen_parts(const ModuleGraph& graph);
/// Of the modules that have one.
[[nodiscard]] std::vector<NamedConstraint> constraints(const ModuleGraph& graph);

[[nodiscard]] std::string_view to_string(ModuleKind kind);
[[nodiscard]] std::string_view to_string(ConnectorKind kind);

}  // namespace tangram::model
