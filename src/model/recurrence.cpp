#include "tangram/model/recurrence.hpp"

#include "tangram/model/model.hpp"

namespace tangram::model {

std::string_view to_string(RecurrenceKind kind) { return kind == RecurrenceKind::kMamba2 ? "mamba2" : "gated_delta"; }

std::string_view beyond_transformer(const BlockType& block) {
  if (block.recurrence) {
    return block.recurrence->kind == RecurrenceKind::kMamba2 ? "a Mamba-2 recurrence" : "a gated delta recurrence";
  }
  if (!block.attends()) return "no attention";
  if (!block.feeds_forward()) return "no feed-forward";
  if (block.attention.output_gate) return "a gate on its attention";
  return block.feed_forward.latent_hidden > 0 ? "experts in a latent width" : "";
}

std::string_view beyond_transformer(const Model& model) {
  for (const BlockType& type : model.types) {
    if (const std::string_view what = beyond_transformer(type); !what.empty()) return what;
  }
  return "";
}

RecurrenceParameters parameters(const Recurrence& recurrence, std::int64_t hidden) {
  const bool mamba = recurrence.kind == RecurrenceKind::kMamba2;
  RecurrenceParameters out;
  out.matrices = hidden * (recurrence.projected() + recurrence.inner());
  out.vectors = recurrence.convolved() * (recurrence.convolution + (recurrence.convolution_bias ? 1 : 0));
  // The decay rate and the bias of the step size; Mamba-2 has a skip connection of each head beside.
  out.vectors += (mamba ? 3 : 2) * std::int64_t{recurrence.heads};
  if (mamba) {
    out.vectors += recurrence.inner();
  } else {
    out.replicated += recurrence.head_dim;
  }
  if (recurrence.projection_bias) {
    out.vectors += recurrence.projected();
    out.replicated += hidden;
  }
  return out;
}

Flops recurrence_flops(const Recurrence& recurrence, std::int64_t tokens) {
  const double state = static_cast<double>(recurrence.inner()) * recurrence.key_dim;
  const double products = recurrence.kind == RecurrenceKind::kMamba2 ? 2 : 3;
  return Flops(2 * products * state * static_cast<double>(tokens));
}

}  // namespace tangram::model
