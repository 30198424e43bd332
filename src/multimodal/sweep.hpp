// The loop of event simulations of a pipeline.
#pragma once

#include <cstddef>

namespace tangram::multimodal {

/// Lets stages advance, from the first to the last and back, until none does: activations go down in one sweep,
/// gradients up. `advance(stage)`: whether anything happened.
template <class Advance>
void sweep(std::size_t stages, const Advance& advance) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) moved = advance(s) || moved;
    for (std::size_t s = stages; s-- > 0;) moved = advance(s) || moved;
  }
}

}  // namespace tangram::multimodal
