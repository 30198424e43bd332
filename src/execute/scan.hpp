// The recurrences of model/recurrence.hpp for one head and one sample, forward and backward. Goes in: what the head
// reads of each position. Comes out: what it gives, or the gradients of what it read. Token by token as the definition
// says, and by chunks as runtimes compute it (arXiv 2405.21060, section 6; arXiv 2412.06464, section 3.3): two ways to
// the same numbers, which share nothing.
#pragma once

#include <vector>

#include "matrix.hpp"
#include "tangram/model/recurrence.hpp"

namespace tangram::execute {

/// A row, or a value, a position; or the gradients of all that.
struct HeadInputs {
  Matrix key, query, value;
  std::vector<double> log_decay;  ///< of the state, from the position before; not positive
  std::vector<double> strength;   ///< how much is written: dt of Mamba-2, beta of the delta rule

  [[nodiscard]] int positions() const { return key.rows(); }
};

/// Zeros of the same shape.
[[nodiscard]] HeadInputs no_gradients(const HeadInputs& inputs);

/// `chunk`: positions that are worked on together; 0: token by token.
[[nodiscard]] Matrix scan(model::RecurrenceKind kind, const HeadInputs& inputs, int chunk);
[[nodiscard]] HeadInputs scan_backward(model::RecurrenceKind kind, const HeadInputs& inputs, int chunk,
                                       const Matrix& gradient);

// Token by token (scan.cpp), and by chunks (chunked_scan.cpp).
[[nodiscard]] Matrix stepwise_scan(model::RecurrenceKind kind, const HeadInputs& inputs);
[[nodiscard]] HeadInputs stepwise_scan_backward(model::RecurrenceKind kind, const HeadInputs& inputs,
                                                const Matrix& gradient);
[[nodiscard]] Matrix chunked_scan(model::RecurrenceKind kind, const HeadInputs& inputs, int chunk);
[[nodiscard]] HeadInputs chunked_scan_backward(model::RecurrenceKind kind, const HeadInputs& inputs, int chunk,
                                               const Matrix& gradient);

}  // namespace tangram::execute
