#include "tangram/kernels/held_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "roofline_fit.hpp"
#include "table_lookup.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/median.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::kernels {
namespace {

/// As files have them: digits beyond are of no rows.
double four_digits(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// A mean error as files have it. Above 10,000 % rows and roofline have nothing to do with each other.
double error_figure(const std::vector<double>& errors) {
  constexpr double kMostError = 100;
  return std::min(kMostError, four_digits(mean_of(errors)));
}

HeldOut summary(const OperatorTable& table, std::string gpu, std::string method, std::vector<double> errors) {
  HeldOut line{table.op, std::move(gpu), std::move(method), static_cast<int>(errors.size())};
  if (errors.empty()) return line;
  std::ranges::sort(errors);
  line.mean = mean_of(errors);
  line.median = errors[errors.size() / 2];
  line.p90 = errors[errors.size() * 9 / 10];
  return line;
}

const cluster::GpuType* device_named(const std::string& name, std::span<const cluster::GpuType> devices) {
  const auto found = std::ranges::find(devices, name, &cluster::GpuType::name);
  return found == devices.end() ? nullptr : &*found;
}

/// Whether rows are samples of unlike kernels. What one kernel reaches of the bandwidth is then the kernel's, not the
/// GPU's: all GPUs get the same share.
bool has_samples(const OperatorTable& table) { return table.axes.empty(); }

std::vector<double> cross_validated(const OperatorTable& table, int gpu, const cluster::GpuType& device) {
  const std::vector<TimedWork> rows = timed_work(table, gpu);
  std::vector<TimedWork> halves[2];
  for (std::size_t i = 0; i < rows.size(); ++i) halves[i % 2].push_back(rows[i]);
  std::vector<double> errors;
  const auto memory =
      has_samples(table) ? std::optional(at(table.inference, gpu).roofline.memory) : std::optional<double>();
  for (const int fold : {0, 1}) {
    if (halves[fold].empty()) continue;
    const Roofline roofline = fitted(halves[fold], device, table.dtype, memory);
    const std::vector<double> of_fold = errors_of(roofline, halves[1 - fold], device, table.dtype);
    errors.insert(errors.end(), of_fold.begin(), of_fold.end());
  }
  return errors;
}

/// Errors of rows without their own numbers on the axes: from neighbours on both sides, and from one.
struct AxisErrors {
  std::vector<double> between;
  std::vector<double> beyond;
};

AxisErrors without_axes(const OperatorTable& table, int gpu, const cluster::GpuType& device, AxisSet axes) {
  const TableLookup lookup(table, gpu, device);
  AxisErrors errors;
  for (int row = 0; row < table.row_count(); ++row) {
    const double seconds = table.seconds(row, gpu);
    const auto shape = table.shapes.row(row);
    const auto found = seconds > 0 ? lookup.find(shape, axes) : std::nullopt;
    const auto roofline = found ? lookup.roofline(shape) : std::nullopt;
    if (!roofline) continue;
    const double error = std::abs(*roofline * std::exp(found->log_ratio) / seconds - 1);
    if (found->beyond) {
      errors.beyond.push_back(error);
    } else if (found->interpolated == axes) {
      errors.between.push_back(error);
    }
  }
  return errors;
}

/// Of the rows on one GPU.
struct RowErrors {
  std::vector<double> roofline;
  std::vector<std::vector<double>> axes;  ///< of rows between two others, by OperatorTable::axes
  std::vector<double> beyond;             ///< of all axes
};

RowErrors errors_on(const OperatorTable& table, int gpu, const cluster::GpuType& device) {
  RowErrors errors;
  errors.roofline = cross_validated(table, gpu, device);
  for (std::size_t axis = 0; axis < table.axes.size(); ++axis) {
    AxisErrors without = without_axes(table, gpu, device, AxisSet{1} << axis);
    errors.axes.push_back(std::move(without.between));
    errors.beyond.insert(errors.beyond.end(), without.beyond.begin(), without.beyond.end());
  }
  return errors;
}

Roofline median_roofline(const OperatorTable& table, std::optional<int> without = std::nullopt) {
  std::vector<double> floors;
  std::vector<double> compute;
  std::vector<double> memory;
  for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
    if (gpu == without) continue;
    const Roofline& roofline = at(table.inference, gpu).roofline;
    floors.push_back(roofline.floor);
    compute.push_back(roofline.compute);
    memory.push_back(roofline.memory);
  }
  return {median(floors), median(compute), median(memory)};
}

/// Of each GPU by the medians of the others.
std::vector<double> without_own_rows(const OperatorTable& table, std::span<const cluster::GpuType> devices) {
  std::vector<double> errors;
  if (table.gpus.size() < 2) return errors;
  for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
    const cluster::GpuType* device = device_named(at(table.gpus, gpu), devices);
    const std::vector<double> of_gpu =
        errors_of(median_roofline(table, gpu), timed_work(table, gpu), *device, table.dtype);
    errors.insert(errors.end(), of_gpu.begin(), of_gpu.end());
  }
  return errors;
}

std::string axis_name(const OperatorTable& table, std::size_t axis) {
  return std::string(at(shape_names(table.op), table.axes[axis]));
}

Diagnostic unusable(const OperatorTable& table, const std::string& gpu, std::string why, std::string hint) {
  return problem(ErrorKind::kInput, "unusable-times",
                 fmt::format("times of {} on \"{}\": {}", to_string(table.op), gpu, why), std::move(hint));
}

std::optional<Diagnostic> mistake_in(const OperatorTable& table, std::span<const cluster::GpuType> devices) {
  for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
    const std::string& name = at(table.gpus, gpu);
    const cluster::GpuType* device = device_named(name, devices);
    if (device == nullptr) {
      return unusable(table, name, "there is no such GPU type",
                      "tangram gpus lists them; or describe it in a catalogue");
    }
    const std::vector<TimedWork> rows = timed_work(table, gpu);
    if (rows.size() < 2) return unusable(table, name, "fewer than two rows", "leave the GPU out");
    if (rows.front().work.flops > 0 && device->peak_of(table.dtype).value() <= 0) {
      return unusable(table, name, fmt::format("it has no matrix units for {}", to_string(table.dtype)),
                      "leave the GPU out");
    }
  }
  if (table.gpus.empty()) return unusable(table, "", "no GPU", "name the GPUs of the rows");
  return std::nullopt;
}

Roofline rounded(const Roofline& roofline) {
  return {four_digits(roofline.floor * 1e6) * 1e-6, four_digits(roofline.compute), four_digits(roofline.memory)};
}

double fastest_row(const OperatorTable& table, int gpu) {
  double fastest = std::numeric_limits<double>::max();
  for (const TimedWork& row : timed_work(table, gpu)) fastest = std::min(fastest, row.seconds);
  return fastest;
}

/// Rows that are far above any floor do not tell it: such GPUs get the median of the others.
void share_floors(OperatorTable& table) {
  constexpr double kNearFloor = 5e-6;  // seconds; kernels that do nothing take 1 to 3 us
  std::vector<double> floors;
  std::vector<int> unknown;
  for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
    if (fastest_row(table, gpu) < kNearFloor) {
      floors.push_back(at(table.inference, gpu).roofline.floor);
    } else {
      unknown.push_back(gpu);
    }
  }
  if (floors.empty()) return;
  for (const int gpu : unknown) at(table.inference, gpu).roofline.floor = median(floors);
}

void fit_rooflines(OperatorTable& table, std::span<const cluster::GpuType> devices) {
  table.inference.assign(table.gpus.size() + 1, {});
  const auto fit_all = [&](std::optional<double> memory) {
    for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
      Inference& inference = at(table.inference, gpu);
      inference.gpu = at(table.gpus, gpu);
      const cluster::GpuType& device = *device_named(inference.gpu, devices);
      inference.roofline = rounded(fitted(timed_work(table, gpu), device, table.dtype, memory));
    }
  };
  fit_all(std::nullopt);
  if (has_samples(table)) {
    fit_all(median_roofline(table).memory);
    share_floors(table);
  }
  table.inference.back().roofline = rounded(median_roofline(table));
}

void find_errors(OperatorTable& table, std::span<const cluster::GpuType> devices) {
  for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
    const RowErrors errors = errors_on(table, gpu, *device_named(at(table.gpus, gpu), devices));
    Inference& inference = at(table.inference, gpu);
    inference.roofline_error = error_figure(errors.roofline);
    for (const std::vector<double>& of_axis : errors.axes) inference.axis_errors.push_back(error_figure(of_axis));
    inference.beyond_error = error_figure(errors.beyond);
  }
  Inference& others = table.inference.back();
  others.roofline_error = error_figure(without_own_rows(table, devices));
  others.axis_errors.assign(table.axes.size(), 0);
}

}  // namespace

std::vector<HeldOut> held_out(const OperatorTable& table, std::span<const cluster::GpuType> devices) {
  std::vector<HeldOut> lines;
  for (int gpu = 0; gpu < static_cast<int>(table.gpus.size()); ++gpu) {
    const std::string& name = at(table.gpus, gpu);
    const cluster::GpuType* device = device_named(name, devices);
    if (device == nullptr) continue;
    const RowErrors errors = errors_on(table, gpu, *device);
    lines.push_back(summary(table, name, "roofline", errors.roofline));
    for (std::size_t a = 0; a < table.axes.size(); ++a) {
      lines.push_back(summary(table, name, axis_name(table, a), errors.axes[a]));
    }
    for (std::size_t a = 0; a + 1 < table.axes.size(); ++a) {
      for (std::size_t b = a + 1; b < table.axes.size(); ++b) {
        AxisErrors without = without_axes(table, gpu, *device, AxisSet{1} << a | AxisSet{1} << b);
        lines.push_back(summary(table, name, fmt::format("{}, {}", axis_name(table, a), axis_name(table, b)),
                                std::move(without.between)));
      }
    }
    if (!table.axes.empty()) lines.push_back(summary(table, name, "beyond", errors.beyond));
  }
  lines.push_back(summary(table, "", "roofline", without_own_rows(table, devices)));
  std::erase_if(lines, [](const HeldOut& line) { return line.rows == 0; });
  return lines;
}

Expected<OperatorTable> inferred(OperatorTable table, std::span<const cluster::GpuType> devices) {
  if (auto mistake = mistake_in(table, devices)) return fail(std::move(*mistake));
  fit_rooflines(table, devices);
  find_errors(table, devices);
  return table;
}

}  // namespace tangram::kernels
