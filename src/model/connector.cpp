// Parameters and FLOPs of connectors. The resampler is the one of Qwen-VL and MiniCPM-V: a projection of the keys,
// cross-attention from learned queries, and a projection of its output.
#include "tangram/model/modules.hpp"

namespace tangram::model {

namespace {

/// Input, queries and output of a resampler.
struct ResamplerWidths {
  std::int64_t in = 0;
  std::int64_t inner = 0;
  std::int64_t out = 0;
};

ResamplerWidths resampler_widths(const Connector& connector) {
  return {connector.widths.front(), connector.widths.at(1), connector.widths.back()};
}

}  // namespace

std::vector<ConnectorProduct> products(const Connector& connector) {
  std::vector<ConnectorProduct> all;
  if (connector.kind == ConnectorKind::kResampler) {
    const auto [in, inner, out] = resampler_widths(connector);
    all = {{connector.tokens_in, in, inner},
           {connector.tokens_in, inner, 2 * inner},  // keys and values
           {connector.tokens_out, inner, inner},     // queries
           {connector.tokens_out, inner, inner},     // attention's output
           {connector.tokens_out, inner, out}};
    return all;
  }
  for (int copy = 0; copy < connector.copies; ++copy) {
    for (std::size_t i = 1; i < connector.widths.size(); ++i) {
      all.push_back({connector.tokens_out, connector.widths[i - 1], connector.widths[i]});
    }
  }
  return all;
}

ConnectorParameters parameters(const Connector& connector) {
  ConnectorParameters out;
  for (const ConnectorProduct& product : products(connector)) {
    out.sharded += product.in * product.out;
    if (connector.bias) out.replicated += product.out;
  }
  if (connector.kind == ConnectorKind::kResampler) {
    out.sharded += connector.queries * resampler_widths(connector).inner;
  }
  out.replicated += connector.copies * connector.norm * (connector.norm_bias ? 2 : 1);
  out.replicated += connector.extra_parameters;
  return out;
}

Flops forward_flops(const Connector& connector) {
  double flops = 0;
  for (const ConnectorProduct& product : products(connector)) {
    flops += 2.0 * static_cast<double>(product.rows) * static_cast<double>(product.in * product.out);
  }
  if (connector.kind == ConnectorKind::kResampler) {
    // Each query of an item attends to the item's tokens: two products.
    const std::int64_t pairs = connector.queries * connector.tokens_in;
    flops += 4.0 * static_cast<double>(pairs) * static_cast<double>(resampler_widths(connector).inner);
  }
  return Flops(flops);
}

std::string_view to_string(ConnectorKind kind) {
  switch (kind) {
    case ConnectorKind::kMlp: return "mlp";
    case ConnectorKind::kMerger: return "merger";
    case ConnectorKind::kPool: return "pool";
    case ConnectorKind::kResampler: return "resampler";
  }
  return "mlp";
}

}  // namespace tangram::model
