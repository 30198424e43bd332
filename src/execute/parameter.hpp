// A rank's piece of a weight: which rows and columns of the whole matrix it holds, who holds the same, and what of it
// remains under ZeRO. Values are a function of the weight's name and the place, so that every rank starts from the same
// model without talking to anyone.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "communicator.hpp"
#include "matrix.hpp"

namespace tangram::execute {

struct Slice {
  int rows = 0;  ///< of the whole matrix
  int columns = 0;
  Range row_range;
  Range column_range;

  [[nodiscard]] int size() const { return row_range.length() * column_range.length(); }
  /// Where the k-th value of the slice, row by row, stands in the whole matrix, row by row.
  [[nodiscard]] std::size_t place(int k) const {
    const int row = row_range.first + k / column_range.length();
    const int column = column_range.first + k % column_range.length();
    return flat_index(row, columns, column);
  }
};

/// Data-parallel copies of a weight's slice.
struct Copies {
  Group* all = nullptr;
  Group* shards = nullptr;    ///< of these, the neighbours that share what ZeRO shards
  Group* replicas = nullptr;  ///< of these, the ranks with equal shards
};

struct Parameter {
  std::string name;  ///< "block 3 query"
  int order = 0;     ///< the model's: ranks that share several parameters meet for them in this order
  Slice slice;
  int encoder = -1;        ///< of the job, that it belongs to; -1: to none of them
  bool trained = true;     ///< false: frozen, no gradient of it is used and its value stays
  bool first_copy = true;  ///< of the equal slices inside a replica (norms on every tp rank), the one that counts
  int zero = 0;
  Group* partial = nullptr;          ///< ranks whose gradients are parts of a sum before any data parallelism
  Copies copies;                     ///< ZeRO 0: `shards` is all of them, `replicas` the rank itself
  Parameter* adapter_in = nullptr;   ///< what a low-rank adapter beside the weight multiplies first; null: it has none
  Parameter* adapter_out = nullptr;  ///< and what it multiplies that with
  Group* holders = nullptr;  ///< all ranks of the job that hold any of the matrix, where more than one part does

  /// Products of its gradient that are put off: what a layer read, and the gradient of what it gave.
  std::vector<std::pair<Matrix, Matrix>> put_off;
  bool puts_off = false;

  Matrix value;                        ///< of the slice; under ZeRO-3 only while it is gathered
  Matrix gradient;                     ///< of the slice, of the passes so far
  Range shard;                         ///< of the slice's values, row by row: what this rank steps (ZeRO 0: all)
  std::vector<double> shard_value;     ///< ZeRO-3: what remains of the value
  std::vector<double> shard_gradient;  ///< synchronised; of ZeRO-2 and 3 so far

  std::vector<double> own_gradient;    ///< of the shard, before anyone was asked: what a diagnosis starts from
  std::vector<double> group_gradient;  ///< of the shard, summed over those that share the weight's shards
  std::vector<double> part_gradient;   ///< of the shard, summed inside the stage's part alone
};

/// Adds read^T gave to the weight's gradient, or puts it off.
void add_product(Parameter& weight, const Matrix& read, const Matrix& gave);

/// input W, with what an adapter beside W gives.
[[nodiscard]] Matrix linear(const Parameter& weight, const Matrix& input);
/// Adds to the gradients of W and its adapter; the gradient of the input.
[[nodiscard]] Matrix linear_backward(Parameter& weight, const Matrix& input, const Matrix& gradient);

/// Between -0.5 and 0.5, the same on every machine.
[[nodiscard]] double initial_value(const std::string& name, int row, int column);

/// With values; norms start near 1.
[[nodiscard]] Parameter make_parameter(std::string name, int order, const Slice& slice, const Copies& copies, int rank,
                                       int zero);

}  // namespace tangram::execute
