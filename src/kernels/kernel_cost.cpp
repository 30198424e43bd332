#include "tangram/kernels/kernel_cost.hpp"

#include <algorithm>
#include <cmath>

#include "table_lookup.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

bool runs_as_fast(DType a, DType b) { return a == b || (bytes_of(a) == 2 && bytes_of(b) == 2); }

KernelTime timed(double seconds, TimeSource from, double error) { return {measured_nanoseconds(seconds), from, error}; }

double error_of(const TableRatio& found, const Inference& inference) {
  double squares = found.beyond ? inference.beyond_error * inference.beyond_error : 0;
  for (std::size_t axis = 0; axis < inference.axis_errors.size(); ++axis) {
    if ((found.interpolated >> axis & 1U) == 0) continue;
    squares += inference.axis_errors[axis] * inference.axis_errors[axis];
  }
  return std::sqrt(squares);
}

std::optional<KernelTime> from_rows(const OperatorTable& table, std::span<const std::int64_t> shape,
                                    const cluster::GpuType& gpu) {
  const auto index = table.gpu_index(gpu.name);
  if (!index || table.axes.empty()) return std::nullopt;
  const TableLookup lookup(table, *index, gpu);
  const auto found = lookup.find(shape);
  const auto roofline = found ? lookup.roofline(shape) : std::nullopt;
  if (!roofline) return std::nullopt;
  const double seconds = *roofline * std::exp(found->log_ratio);
  if (found->measured()) return timed(seconds, TimeSource::kMeasured, kRepeatError);
  return timed(seconds, found->beyond ? TimeSource::kRoofline : TimeSource::kInterpolated,
               error_of(*found, at(table.inference, *index)));
}

}  // namespace

// No table has products by chunks. They multiply tiles that fit on chip, as attention of prefill does (`cost` has
// them at the rate of attention, too), between streams from and to memory: the share of the peak is attention's, floor
// and share of the bandwidth are those of streams, and the error is that of GPUs without rows.
std::optional<KernelTime> KernelCosts::time_of_chunk_products(std::span<const std::int64_t> shape, DType dtype,
                                                              const cluster::GpuType& gpu) const {
  const OperatorTable* attention = table_for(Operator::kAttentionPrefill, gpu.name);
  const OperatorTable* stream = table_for(Operator::kStream, gpu.name);
  if (attention == nullptr || stream == nullptr) return std::nullopt;
  Roofline roofline = stream->inference_of(gpu.name).roofline;
  roofline.compute = attention->inference_of(gpu.name).roofline.compute;
  const auto seconds = roofline_seconds(roofline, work_of(Operator::kChunkProducts, shape, dtype), gpu, dtype);
  if (!seconds) return std::nullopt;
  const double error = std::max(attention->inference_of("").roofline_error, stream->inference_of("").roofline_error);
  return timed(*seconds, TimeSource::kRoofline, error);
}

std::optional<KernelTime> KernelCosts::time(Operator op, std::span<const std::int64_t> shape, DType dtype,
                                            const cluster::GpuType& gpu) const {
  const OperatorTable* table = table_for(op, gpu.name);
  if (table == nullptr && op == Operator::kChunkProducts) return time_of_chunk_products(shape, dtype, gpu);
  if (table == nullptr) return std::nullopt;
  const Inference& inference = table->inference_of(gpu.name);
  const auto roofline = roofline_seconds(inference.roofline, work_of(op, shape, dtype), gpu, dtype);
  if (!roofline) return std::nullopt;
  if (runs_as_fast(dtype, table->dtype)) {
    if (const auto time = from_rows(*table, shape, gpu)) return time;
  }
  return timed(*roofline, TimeSource::kRoofline, inference.roofline_error);
}

const OperatorTable* KernelCosts::table_for(Operator op, const std::string& gpu) const {
  const OperatorTable* any = nullptr;
  for (const OperatorTable& table : tables_) {
    if (table.op != op) continue;
    if (table.gpu_index(gpu)) return &table;
    any = &table;
  }
  return any;
}

}  // namespace tangram::kernels
