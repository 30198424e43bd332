#include "mamba_kernels.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace tangram::kernels {
namespace {

using Count = std::int64_t;

constexpr Count kStateBytes = 4;

class MambaKernels {
 public:
  MambaKernels(const model::BlockType& block, const StepShape& step)
      : hidden_(block.hidden), r_(*block.recurrence), step_(step) {}

  std::vector<KernelSpec> run() && {
    add_projection();
    add_convolution();
    if (step_.kind == PhaseKind::kDecode) {
      add_state_update();
    } else {
      add_chunks();
    }
    add_gated_norm();
    return std::move(kernels_);
  }

 private:
  [[nodiscard]] Use act(std::string name, Count columns) const { return activation(std::move(name), columns, step_); }
  [[nodiscard]] Use weights(std::string name, Count parameters) const {
    return weight(std::move(name), parameters, step_);
  }
  /// Some columns of the projection, which lie between others.
  [[nodiscard]] Use projected() const {
    Use use = act("projected", r_.projected());
    use.exact = false;
    return use;
  }
  [[nodiscard]] Use convolved() const { return act("convolved", r_.convolved()); }
  [[nodiscard]] Use scanned() const { return act("scanned", r_.inner()); }
  /// Step sizes and their sums along a chunk.
  [[nodiscard]] Use decays() const { return act_of("decays", {2, step_.tokens, r_.heads, kStateBytes}); }
  [[nodiscard]] Use chunk_states() const {
    return act_of("chunk_states", {chunks(), r_.inner(), r_.key_dim, kStateBytes});
  }
  [[nodiscard]] Use scores() const {
    return act_of("chunk_scores", {chunks(), r_.groups, chunk(), chunk(), kStateBytes});
  }
  [[nodiscard]] Use state() const {
    return {"state", product({step_.requests, r_.inner(), r_.key_dim, kStateBytes}), BufferKind::kKv, Growth::kRequest};
  }
  [[nodiscard]] Use convolution_state() const {
    const Count kept = std::max<Count>(1, r_.convolution - 1);
    return {"convolution_state", product({step_.requests, r_.convolved(), kept, step_.activation_bytes()}),
            BufferKind::kKv, Growth::kRequest};
  }
  [[nodiscard]] static Use act_of(std::string name, std::initializer_list<Count> factors) {
    return {std::move(name), product(factors)};
  }

  [[nodiscard]] Count chunk() const { return std::min(r_.chunk, step_.context); }
  [[nodiscard]] Count chunks() const { return step_.requests * ((step_.context + chunk() - 1) / chunk()); }
  /// Of all tokens.
  [[nodiscard]] Count bytes_of_columns(Count columns) const { return act("", columns).bytes; }
  [[nodiscard]] Count key_bytes() const { return bytes_of_columns(Count{r_.groups} * r_.key_dim); }
  [[nodiscard]] Count value_bytes() const { return bytes_of_columns(r_.inner()); }

  void add_projection() {
    const Count bias = r_.projection_bias ? r_.projected() : 0;
    KernelSpec kernel =
        gemm_kernel("in_proj", Part::kAttention, step_.tokens, r_.projected(), hidden_, act("normed", hidden_),
                    weights("in_proj.weight", product({r_.projected(), hidden_}) + bias), step_);
    kernel.writes = {act("projected", r_.projected())};
    kernels_.push_back(std::move(kernel));
  }

  /// A kernel that moves `bytes`: less than all that it touches, of which some are parts of columns.
  void add_stream(std::string name, Count bytes, std::vector<Use> reads, std::vector<Use> writes,
                  std::vector<Use> updates) {
    kernels_.push_back(
        stream_kernel(std::move(name), Part::kAttention, std::move(reads), std::move(writes), std::move(updates)));
    kernels_.back().shape = {bytes};
  }

  void add_convolution() {
    const Use filter = weights("convolution.weight", r_.convolved() * (r_.convolution + (r_.convolution_bias ? 1 : 0)));
    const Use kept = convolution_state();
    const Count moved = 2 * convolved().bytes + filter.bytes;
    if (step_.kind == PhaseKind::kDecode) {
      add_stream("convolution", moved + 2 * kept.bytes, {projected(), filter}, {convolved()}, {kept});
    } else {
      add_stream("convolution", moved + kept.bytes, {projected(), filter}, {convolved(), kept}, {});
    }
  }

  /// Decay rate, bias of the step size and skip connection of each head.
  [[nodiscard]] Use head_weights() const { return weights("heads.weight", 3 * Count{r_.heads}); }

  void add_state_update() {
    const Count moved = convolved().bytes + bytes_of_columns(r_.heads) + head_weights().bytes + scanned().bytes;
    add_stream("state_update", moved + 2 * state().bytes, {convolved(), projected(), head_weights()}, {scanned()},
               {state()});
  }

  void add_product(std::string name, std::initializer_list<Count> shape, std::vector<Use> reads, Use out) {
    KernelSpec kernel;
    kernel.name = std::move(name);
    kernel.part = Part::kAttention;
    kernel.op = Operator::kChunkProducts;
    kernel.shape = shape;
    kernel.dtype = step_.activation;
    kernel.reads = std::move(reads);
    kernel.writes = {std::move(out)};
    kernels_.push_back(std::move(kernel));
  }

  /// Values, keys and queries lie side by side in what was convolved.
  void add_chunks() {
    Use inputs = convolved();
    inputs.exact = false;
    const Count head_products = product({chunks(), r_.heads});
    add_stream("decays", bytes_of_columns(r_.heads) + head_weights().bytes + decays().bytes,
               {projected(), head_weights()}, {decays()}, {});
    add_product("chunk_states",
                {head_products, r_.key_dim, r_.head_dim, chunk(),
                 key_bytes() + value_bytes() + decays().bytes + chunk_states().bytes},
                {inputs, decays()}, chunk_states());
    add_stream("state_passing", 2 * chunk_states().bytes + state().bytes, {decays()}, {state()}, {chunk_states()});
    add_product("chunk_scores",
                {product({chunks(), r_.groups}), chunk(), chunk(), r_.key_dim, 2 * key_bytes() + scores().bytes},
                {inputs}, scores());
    const Count moved = key_bytes() + 2 * value_bytes() + scores().bytes + decays().bytes + chunk_states().bytes;
    add_product("chunk_scan", {head_products, chunk(), r_.head_dim, chunk() + r_.key_dim, moved},
                {inputs, scores(), decays(), chunk_states(), head_weights()}, scanned());
  }

  /// Norm of the values, times the gate, which is part of the projection.
  void add_gated_norm() {
    const Use scale = weights("gated_norm.weight", r_.inner());
    add_stream("gated_norm", 3 * value_bytes() + scale.bytes, {scanned(), projected(), scale},
               {act("gated", r_.inner())}, {});
  }

  Count hidden_;
  const model::Recurrence& r_;
  const StepShape& step_;
  std::vector<KernelSpec> kernels_;
};

}  // namespace

std::vector<KernelSpec> mamba_kernels(const model::BlockType& block, const StepShape& step) {
  return MambaKernels(block, step).run();
}

}  // namespace tangram::kernels
