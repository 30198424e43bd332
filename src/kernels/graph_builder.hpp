// Kernels of a model, one after the other. Goes in: what each computes and touches. Comes out: a graph whose buffers
// have the bytes that are touched of them, and whose kernels have their times.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tangram/kernels/kernel_cost.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

/// Bytes of a product of counts; far above any limit where it does not fit.
[[nodiscard]] std::int64_t product(std::initializer_list<std::int64_t> factors);

/// A buffer as a kernel touches it.
struct Use {
  std::string buffer;
  std::int64_t bytes = 0;
  BufferKind kind = BufferKind::kActivation;
  Growth per = Growth::kToken;
  std::int64_t offset = 0;
  bool exact = true;
};

/// What a kernel is, but for its place.
struct KernelSpec {
  std::string name;  ///< in its layer: "qkv"
  Part part = Part::kOther;
  Operator op = Operator::kStream;
  std::vector<std::int64_t> shape;
  DType dtype = DType::kBf16;
  std::vector<Use> reads;
  std::vector<Use> writes;
  std::vector<Use> updates;
  Pin pinned = Pin::kNone;
};

class GraphBuilder {
 public:
  GraphBuilder(std::span<const cluster::GpuType> gpus, const KernelCosts& costs);

  void begin_phase(Phase phase);
  /// Kernels from here on are of layer `layer` (-1: of none), on buffers of which there are `copies`.
  void begin_layer(int layer, std::int64_t copies);
  void begin_repeat(std::int64_t times);
  void end_repeat();
  void add(const KernelSpec& spec);

  [[nodiscard]] KernelGraph finished() &&;

 private:
  [[nodiscard]] std::vector<Access> accesses(const std::vector<Use>& uses);
  [[nodiscard]] int buffer_of(const Use& use);
  [[nodiscard]] std::string place(char separator) const;

  std::span<const cluster::GpuType> gpus_;
  const KernelCosts& costs_;
  KernelGraph graph_;
  std::unordered_map<std::string, int> buffers_;
  int layer_ = -1;
  std::int64_t copies_ = 1;
};

}  // namespace tangram::kernels
