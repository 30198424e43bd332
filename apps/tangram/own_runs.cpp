#include "own_runs.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "inputs.hpp"
#include "table.hpp"
#include "tangram/accuracy/report.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/own_runs.hpp"

namespace tangram::app {

namespace {

std::string path_beside(const std::string& file, const std::string& path) {
  return (std::filesystem::path(file).parent_path() / path).lexically_normal().string();
}

std::string name_of(const accuracy::Measurement& measurement, std::size_t number) {
  if (!measurement.id.empty()) return measurement.id;
  return measurement.plan.empty() ? fmt::format("run {}", number) : measurement.plan;
}

/// Farther from its prediction than this a run is a slip: of the unit, of the file that is named.
constexpr double kFarthest = 10;

/// Runs of one file, or of several.
class Collector {
 public:
  Collector(std::span<const cluster::GpuType> devices, const cost::ProfileSet& profiles)
      : devices_(devices), profiles_(profiles) {}

  void add_file(const std::string& path) {
    std::vector<accuracy::Measurement> measurements;
    take(load_measurements(path), measurements, mistakes_);
    std::size_t number = 0;
    for (const accuracy::Line& line : accuracy::judge(std::move(measurements), devices_, profiles_)) {
      const std::string name = name_of(line.measurement, ++number);
      if (line.measurement.plan.empty()) {
        add_line(name, line);
      } else {
        add_plan(name, line.measurement, path);
      }
    }
  }

  Expected<OwnRuns> finish() {
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    if (result_.runs.size() > discrepancy::kMostRuns) {
      return fail(problem(ErrorKind::kInput, "too-many-runs",
                          fmt::format("there are {} runs, and at most {} are compared with each other",
                                      result_.runs.size(), discrepancy::kMostRuns),
                          "leave out the oldest, or those least like what is planned"));
    }
    if (result_.runs.empty()) {
      return fail(
          problem(ErrorKind::kInput, "no-runs",
                  fmt::format("none of {} runs can be used; {}", result_.left_out.size(), result_.left_out.front()),
                  "each needs iter_time_s, and gpus, model and degrees or the plan that ran"));
    }
    return std::move(result_);
  }

 private:
  void add_line(const std::string& name, const accuracy::Line& line) {
    if (!line.reason.empty()) return leave_out(name, line.reason);
    if (!line.timed()) return leave_out(name, "it has no iter_time_s");
    add(accuracy::run_of(line, name));
  }

  void add_plan(const std::string& name, const accuracy::Measurement& measurement, const std::string& file) {
    const std::string path = path_beside(file, measurement.plan);
    auto plan = load_plan(path);
    if (!plan) {
      Diagnostics wrong = std::move(plan.error());
      if (wrong.front().code == "cannot-read") wrong.front().hint = fmt::format("{} names it, of run {}", file, name);
      return note_mistakes(wrong);
    }
    if (const Diagnostics wrong = planner::mistakes_in(*plan, path); !wrong.empty()) return note_mistakes(wrong);
    if (!(measurement.iteration_s > 0)) return leave_out(name, "it has no iter_time_s");
    add(planner::run_of(*plan, name, measurement.family, measurement.iteration_s));
  }

  void add(discrepancy::Run run) {
    const double ratio = run.measured_s / run.predicted_s;
    if (ratio < 1 / kFarthest || ratio > kFarthest) {
      return leave_out(run.name,
                       fmt::format("it took {:.3g} times what is predicted, {}: look at its unit, and at what it ran",
                                   ratio, people_time(run.predicted_s)));
    }
    result_.runs.push_back(std::move(run));
  }

  void note_mistakes(const Diagnostics& wrong) { mistakes_.insert(mistakes_.end(), wrong.begin(), wrong.end()); }

  void leave_out(const std::string& name, const std::string& why) {
    result_.left_out.push_back(fmt::format("{}: {}", name, why));
  }

  std::span<const cluster::GpuType> devices_;
  const cost::ProfileSet& profiles_;
  OwnRuns result_;
  Diagnostics mistakes_;
};

}  // namespace

Expected<OwnRuns> load_own_runs(const std::vector<std::string>& paths, std::span<const cluster::GpuType> devices,
                                const cost::ProfileSet& profiles) {
  Collector collector(devices, profiles);
  for (const std::string& path : paths) collector.add_file(path);
  return collector.finish();
}

void report_left_out(const Context& context, const OwnRuns& runs) {
  for (const std::string& why : runs.left_out) context.terminal.note(fmt::format("left out: {}", why));
}

}  // namespace tangram::app
