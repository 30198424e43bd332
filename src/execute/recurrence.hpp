// A recurrence in a layer, on a rank's share: heads and groups are split over tp, positions over cp.
#pragma once

#include <vector>

#include "parameter.hpp"
#include "place.hpp"

namespace tangram::execute {

struct RecurrenceWeights {
  SmallRecurrence shape;
  Parameter* gate = nullptr;
  Parameter* value = nullptr;
  Parameter* key = nullptr;
  Parameter* query = nullptr;
  Parameter* step = nullptr;      ///< a column a head: what is decayed by, and written of Mamba-2
  Parameter* strength = nullptr;  ///< of the delta rule: what is written
  Parameter* value_convolution = nullptr;
  Parameter* key_convolution = nullptr;
  Parameter* query_convolution = nullptr;
  Parameter* rate = nullptr;  ///< a value a head: the logarithm of the decay of a step
  Parameter* bias = nullptr;  ///< of steps
  Parameter* skip = nullptr;  ///< of Mamba-2
  Parameter* norm = nullptr;
  Parameter* output = nullptr;
};

/// Between the exchanges: of all positions of the rank's heads.
struct KeptRecurrence {
  Matrix input;
  Matrix gate, value, key, query, step, strength;  ///< as projected
  Matrix given;                                    ///< what is projected back, of own positions
};

[[nodiscard]] Task<Matrix> recurrence(const Place& place, const RecurrenceWeights& weights, Matrix input,
                                      KeptRecurrence& kept);
[[nodiscard]] Task<Matrix> recurrence_backward(const Place& place, const RecurrenceWeights& weights,
                                               const KeptRecurrence& kept, const Matrix& gradient);

}  // namespace tangram::execute
