// Single kernels beside what plans are made with. Goes in: tables of measured kernels (tangram.kernel_times/1). Comes
// out: how far the cost model is from each table, with the figures of the catalogue and with figures of its own, which
// are fitted to half of the rows and judged by the other half.
//
// The two halves say different things. The catalogue's figures are those of training: of products between other
// kernels, at the clock that the power limit leaves them. A table measures one kernel again and again, at another
// clock and with other libraries. Figures of its own take that away, and leave whether the model has the right shape:
// tiles and waves, messages short and long, few GPUs and many.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/model/model.hpp"

namespace tangram::calibrate {

/// Forward of a linear layer: m rows of k values times k x n; narrow inputs are cast by the kernel before it.
struct ProductCall {
  double m = 0;
  double n = 0;
  double k = 0;
};
/// Forward of a layer's experts on one of `ranks` ranks, as inference libraries run it: inputs cast where products are
/// narrow, rows gathered by expert, the products of all experts in one kernel, the activation, each token's sum. With
/// fp8 by blocks rows are gathered and activated in 16 bits and cast behind. Tokens choose experts evenly.
struct ExpertsCall {
  double tokens = 0;  ///< of all ranks
  double values = 0;  ///< of a token
  double inner = 0;   ///< of an expert
  int products = 3;   ///< matrices of an expert: 3 with a gate
  double experts = 0;
  double chosen = 0;  ///< experts of a token
  double ranks = 1;
};
/// A kernel that reads and writes so many bytes, both together.
struct StreamCall {
  double bytes = 0;
};
/// Bytes as nccl-tests counts them (cost/communication.hpp).
struct CollectiveCall {
  cost::Collective operation = cost::Collective::kAllReduce;
  int gpus = 0;
  double bytes = 0;
};
/// Tokens of one rank that go to so many experts each, once to each node and GPU; in 16 bits.
struct DispatchCall {
  int gpus = 0;
  double tokens = 0;
  double values = 0;  ///< of a token
  cost::TokenChoice choice;
};
using KernelCall = std::variant<ProductCall, StreamCall, CollectiveCall, DispatchCall, ExpertsCall>;

struct KernelTime {
  KernelCall call;
  double seconds = 0;
};

enum class Kernel { kProduct, kStream, kCollective, kDispatch, kExperts };
[[nodiscard]] std::string_view to_string(Kernel kernel);

struct KernelTable {
  Kernel kernel = Kernel::kProduct;  ///< what all rows are calls of
  cluster::GpuType gpu;
  DType precision = DType::kBf16;                        ///< of products and experts
  model::Fp8Recipe recipe = model::Fp8Recipe::kDelayed;  ///< of those in fp8
  int gpus_per_node = 0;                                 ///< of collectives and dispatch
  cluster::Link network;                                 ///< of a node; bandwidth 0: all GPUs are in one node
  std::vector<KernelTime> rows;                          ///< one at least
};

/// Its rows multiply matrices.
[[nodiscard]] bool has_products(const KernelTable& table);

/// `file` is for messages; GPU types are found among `gpus` by name.
[[nodiscard]] Expected<std::vector<KernelTable>> read_kernel_times(std::string text, std::string file,
                                                                   std::span<const cluster::GpuType> gpus);

/// Figures of a GPU type that a table can be fitted by: rates, latencies, ramp. In the order of `factors` below.
[[nodiscard]] std::span<const std::string_view> figures_of(const KernelTable& table);

/// Seconds of a call with the catalogue's figures times `factors`; none: with those of the catalogue.
[[nodiscard]] double modelled_seconds(const KernelTable& table, const KernelCall& call,
                                      std::span<const double> factors = {});

struct KernelFit {
  std::vector<double> catalogue;  ///< signed relative errors by row, with the catalogue's figures
  std::vector<double> held_out;   ///< the same by figures fitted to the half that the row is not in
  std::vector<double> factors;    ///< fitted to all rows, by figures_of
};

/// O(rows) for each of some hundred steps of a search.
[[nodiscard]] KernelFit fit_kernels(const KernelTable& table);

}  // namespace tangram::calibrate
