// A PyTorch execution trace as plain values. Goes in: its JSON, of schema 1.0 (inputs and outputs with shapes and types
// beside them) or 1.1 and Chakra (values, shapes and types in one object, the rest as attributes). Comes out: by rf_id,
// which tensors each operator reads and writes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/io/document.hpp"

namespace tangram::kernels {

/// A tensor's elements, as bytes of its storage if they lie one after the other; strides are not in the trace.
struct TensorSpan {
  std::int64_t storage = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;

  [[nodiscard]] std::int64_t end() const { return offset + bytes; }
};

/// Tensors on GPUs.
struct TracedTensors {
  std::string name;  ///< of the operator
  std::vector<TensorSpan> reads;
  std::vector<TensorSpan> writes;       ///< all of each, whatever was there
  std::vector<TensorSpan> updates;      ///< written by an operator that may read them, too
  std::vector<std::int64_t> allocated;  ///< storages of outputs that no input has: memory that was free before
  bool understood = true;               ///< there is a schema that says what is written; else all inputs are updates
};

struct ExecutionTrace {
  std::unordered_map<std::int64_t, TracedTensors> operators;  ///< by rf_id, which counts calls
};

[[nodiscard]] Expected<ExecutionTrace> read_execution_trace(const io::Document& document);

}  // namespace tangram::kernels
