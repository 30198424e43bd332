#include "tangram/kernels/synth.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layer_kernels.hpp"
#include "phase_limits.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::kernels {

std::string_view to_string(PhaseKind kind) { return kind == PhaseKind::kPrefill ? "prefill" : "decode"; }

namespace {

constexpr int kLongestPattern = 8;  // layers that take turns: windows and full attention, dense and experts

/// Blocks [first, first + period) and `times` - 1 more stretches like them.
struct Section {
  int first = 0;
  int period = 1;
  int times = 1;
};

int times_repeated(const std::vector<int>& blocks, int first, int period) {
  const int count = static_cast<int>(blocks.size());
  int end = first + period;
  if (end > count) return 0;
  while (end < count && at(blocks, end) == at(blocks, end - period)) ++end;
  return (end - first) / period;
}

/// The chain of blocks as repeats: from the front, whatever covers most blocks, the shortest period of several.
std::vector<Section> sections_of(const std::vector<int>& blocks) {
  std::vector<Section> sections;
  for (int first = 0; first < static_cast<int>(blocks.size());) {
    Section best{first, 1, 1};
    for (int period = 1; period <= kLongestPattern; ++period) {
      const int times = times_repeated(blocks, first, period);
      if (times >= 2 && times * period > best.times * best.period) best = {first, period, times};
    }
    sections.push_back(best);
    first += best.times * best.period;
  }
  return sections;
}

class Synthesis {
 public:
  Synthesis(const model::Model& model, std::span<const cluster::GpuType> gpus, const KernelCosts& costs)
      : model_(model), builder_(gpus, costs) {}

  void add_phase(const PhaseLoad& load) {
    step_ = step_of(load);
    builder_.begin_phase({std::string(to_string(load.kind)), load.requests, step_.tokens, load.context, 0, 0, {}});
    builder_.begin_layer(-1, 1);
    add_embedding();
    for (const Section& section : sections_of(model_.blocks)) add_section(section);
    builder_.begin_layer(-1, 1);
    add_head();
  }

  KernelGraph finished() && { return std::move(builder_).finished(); }

 private:
  [[nodiscard]] StepShape step_of(const PhaseLoad& load) const {
    StepShape step;
    step.kind = load.kind;
    step.requests = load.requests;
    step.context = load.context;
    step.tokens = load.kind == PhaseKind::kPrefill ? load.requests * load.context : load.requests;
    step.precision = model_.job.precision;
    step.activation = step.precision == DType::kFp8 ? DType::kBf16 : step.precision;
    step.rotary = model_.learned_positions == 0;
    return step;
  }

  void add_section(const Section& section) {
    if (section.times > 1) builder_.begin_repeat(section.times);
    for (int block = section.first; block < section.first + section.period; ++block) {
      builder_.begin_layer(block, section.times);
      for (const KernelSpec& kernel : layer_kernels(model_.block(block), step_)) builder_.add(kernel);
    }
    if (section.times > 1) builder_.end_repeat();
  }

  [[nodiscard]] std::int64_t embedding_width() const {
    return model_.embedding_projection > 0 ? model_.embedding_projection : model_.hidden;
  }

  [[nodiscard]] Use table(std::string name) const {
    return weight(std::move(name), product({model_.vocabulary, embedding_width()}), step_);
  }

  void add_embedding() {
    constexpr std::int64_t kTokenBytes = 8;  // tokens are 64-bit integers in every framework
    const bool projected = model_.embedding_projection > 0;
    const Use embedded = activation(projected ? "embedded" : "hidden", embedding_width(), step_);
    const Use tokens{"tokens", product({step_.tokens, kTokenBytes}), BufferKind::kInput};
    Use rows = table("embedding.weight");
    rows.exact = false;  // those of the tokens
    KernelSpec lookup = stream_kernel("embedding", Part::kEmbedding, {tokens}, {embedded}, {});
    lookup.shape.front() += embedded.bytes;
    lookup.reads.push_back(std::move(rows));
    if (model_.learned_positions > 0) {
      Use positions = weight("positions.weight", product({model_.learned_positions, model_.hidden}), step_);
      positions.exact = false;
      lookup.shape.front() += embedded.bytes;
      lookup.reads.push_back(std::move(positions));
    }
    builder_.add(lookup);
    if (!projected) return;
    KernelSpec projection =
        gemm_kernel("project_in", Part::kEmbedding, step_.tokens, model_.hidden, embedding_width(), embedded,
                    weight("project_in.weight", product({model_.hidden, embedding_width()}), step_), step_);
    projection.writes = {activation("hidden", model_.hidden, step_)};
    builder_.add(projection);
  }

  /// Only the last token of each request goes on.
  void add_head() {
    constexpr std::int64_t kLogitBytes = 4;  // sampling computes in fp32
    StepShape last = step_;
    last.tokens = step_.requests;
    Use hidden = activation("hidden", model_.hidden, step_);
    hidden.exact = step_.tokens == last.tokens;
    Use states = activation("last_hidden", model_.hidden, last);
    std::vector<Use> reads{std::move(hidden)};
    if (model_.final_norm) {
      const std::int64_t size = model_.final_norm_bias ? 2 * model_.hidden : model_.hidden;
      reads.push_back(weight("final_norm.weight", size, step_));
    }
    KernelSpec norm = stream_kernel("final_norm", Part::kHead, std::move(reads), {states}, {});
    norm.shape = {2 * states.bytes};
    builder_.add(norm);
    if (model_.embedding_projection > 0) {
      KernelSpec projection =
          gemm_kernel("project_out", Part::kHead, last.tokens, embedding_width(), model_.hidden, states,
                      weight("project_out.weight", product({model_.hidden, embedding_width()}), step_), step_);
      states = activation("projected_hidden", embedding_width(), last);
      projection.writes = {states};
      builder_.add(projection);
    }
    KernelSpec head = gemm_kernel("head", Part::kHead, last.tokens, model_.vocabulary, embedding_width(), states,
                                  table(model_.tied_embeddings ? "embedding.weight" : "head.weight"), step_);
    const Use logits{"logits", product({last.tokens, model_.vocabulary, kLogitBytes}), BufferKind::kActivation,
                     Growth::kRequest};
    head.writes = {logits};
    builder_.add(head);
    const Use sampled{"sampled", product({last.tokens, 8}), BufferKind::kOutput, Growth::kRequest};
    KernelSpec sample = stream_kernel("sample", Part::kHead, {logits}, {sampled}, {});
    sample.shape.front() += 2 * logits.bytes;  // probabilities are written and read again
    sample.pinned = Pin::kHost;
    builder_.add(sample);
  }

  const model::Model& model_;
  GraphBuilder builder_;
  StepShape step_;
};

Diagnostic refused(std::string code, std::string message, std::string hint) {
  return problem(ErrorKind::kInput, std::move(code), std::move(message), std::move(hint));
}

/// What of the layer is made into no kernels; empty: all of it is.
std::string_view beyond_kernels(const model::BlockType& type) {
  if (type.recurrence && type.recurrence->kind != model::RecurrenceKind::kMamba2) return beyond_transformer(type);
  if (type.attends() && type.attention.output_gate) return "a gate on its attention";
  return type.feed_forward.latent_hidden > 0 ? "experts in a latent width" : "";
}

std::optional<Diagnostic> mistake_in(const model::Model& model, std::span<const PhaseLoad> loads) {
  const auto encodes = [](const model::BlockType& type) { return !type.attention.causal; };
  if (std::ranges::any_of(model.types, encodes) || !model.graph.empty()) {
    return refused("unsupported-model", fmt::format("{} has encoders", model.name),
                   "kernel graphs are made of text models; record one of this model instead");
  }
  if (model.job.precision == DType::kFp4) {
    return refused("unsupported-model",
                   fmt::format("weights of {} in 4 bits have no kernels that were measured", model.name),
                   "give its file precision: fp8 or bf16");
  }
  for (const model::BlockType& type : model.types) {
    const std::string_view other = beyond_kernels(type);
    if (other.empty()) continue;
    return refused("unsupported-model", fmt::format("layers of {} have {}", model.name, other),
                   "kernel graphs are made of transformer and Mamba-2 layers; record one of this model instead");
  }
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const PhaseLoad& load = loads[i];
    if (load.requests < 1 || load.requests > kPhaseRequests.max || load.context < 1 ||
        load.context > kPhaseContext.max || load.requests > kPhaseTokens.max / load.context) {
      return refused("out-of-range", fmt::format("{} requests of {} tokens are no step", load.requests, load.context),
                     fmt::format("at least 1 of both; at most {} requests, {} tokens of each and {} in all",
                                 kPhaseRequests.max, kPhaseContext.max, kPhaseTokens.max));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (loads[j].kind == load.kind) return refused("duplicate-phase", "two phases of one kind", "give each once");
    }
  }
  return std::nullopt;
}

}  // namespace

Expected<KernelGraph> synthesize(const model::Model& model, std::span<const PhaseLoad> loads,
                                 std::span<const cluster::GpuType> gpus, const KernelCosts& costs) {
  if (auto mistake = mistake_in(model, loads)) return fail(std::move(*mistake));
  Synthesis synthesis(model, gpus, costs);
  for (const PhaseLoad& load : loads) synthesis.add_phase(load);
  KernelGraph graph = std::move(synthesis).finished();
  constexpr io::IntegerRange kBytes = io::integer_limit("bytes");
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.bytes.value() <= kBytes.max) continue;
    return fail(refused("out-of-range", fmt::format("buffer {} would have more than a PiB", buffer.id),
                        "fewer requests, or a shorter context"));
  }
  graph.sources.push_back({"model", model.name, model.digest});
  return graph;
}

}  // namespace tangram::kernels
