#include "roofline_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "tangram/base/compass_search.hpp"

namespace tangram::kernels {
namespace {

constexpr std::size_t kMostRows = 600;  // of thousands on a grid, enough for three numbers: the fit takes milliseconds
constexpr Roofline kStart{5e-6, 0.6, 0.6};
constexpr std::array kSteps{0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005};
constexpr double kMostShare = 1.5;    // operands in a cache: more than the memory's own rate, but not at any rate
constexpr double kLeastShare = 1e-3;  // kernels that reach less are not described by a roofline
constexpr double kMostFloor = 1;      // seconds

double mean_log_error(const Roofline& roofline, const std::vector<TimedWork>& rows, const cluster::GpuType& gpu,
                      DType dtype) {
  double sum = 0;
  for (const TimedWork& row : rows) {
    sum += std::abs(std::log(*roofline_seconds(roofline, row.work, gpu, dtype) / row.seconds));
  }
  return sum / static_cast<double>(rows.size());
}

/// A floor, then shares.
bool is_possible(const std::vector<double>& figures) {
  return figures.front() <= kMostFloor && std::all_of(figures.begin() + 1, figures.end(), [](double share) {
           return share >= kLeastShare && share <= kMostShare;
         });
}

std::vector<TimedWork> evenly_spaced(const std::vector<TimedWork>& rows) {
  const std::size_t step = std::max<std::size_t>(1, rows.size() / kMostRows);
  std::vector<TimedWork> some;
  for (std::size_t i = 0; i < rows.size(); i += step) some.push_back(rows[i]);
  return some;
}

}  // namespace

std::vector<TimedWork> timed_work(const OperatorTable& table, int gpu) {
  std::vector<TimedWork> rows;
  for (int row = 0; row < table.row_count(); ++row) {
    const double seconds = table.seconds(row, gpu);
    if (seconds > 0) rows.push_back({work_of(table.op, table.shapes.row(row), table.dtype), seconds});
  }
  return rows;
}

std::vector<double> errors_of(const Roofline& roofline, const std::vector<TimedWork>& rows, const cluster::GpuType& gpu,
                              DType dtype) {
  std::vector<double> errors;
  for (const TimedWork& row : rows) {
    const auto modelled = roofline_seconds(roofline, row.work, gpu, dtype);
    if (modelled) errors.push_back(std::abs(*modelled / row.seconds - 1));
  }
  return errors;
}

Roofline fitted(const std::vector<TimedWork>& rows, const cluster::GpuType& gpu, DType dtype,
                std::optional<double> memory) {
  const std::vector<TimedWork> some = evenly_spaced(rows);
  const auto roofline_of = [&](const std::vector<double>& figures) {
    return Roofline{figures[0], figures[1], memory ? *memory : figures[2]};
  };
  const auto loss = [&](const std::vector<double>& figures) {
    return is_possible(figures) ? mean_log_error(roofline_of(figures), some, gpu, dtype)
                                : std::numeric_limits<double>::infinity();
  };
  std::vector<double> start{kStart.floor, kStart.compute};
  if (!memory) start.push_back(kStart.memory);
  return roofline_of(compass_search(std::move(start), kSteps, loss));
}

}  // namespace tangram::kernels
