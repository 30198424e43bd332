#include "tangram/accuracy/report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>

#include "tangram/base/median.hpp"

namespace tangram::accuracy {
namespace {

std::vector<double> average_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    const double rank = (static_cast<double>(first) + static_cast<double>(last - 1)) / 2;
    for (std::size_t i = first; i < last; ++i) ranks[order[i]] = rank;
    first = last;
  }
  return ranks;
}

discrepancy::Traits traits_of(const Experiment& experiment, const Measurement& measurement) {
  discrepancy::TraitsOfRun traits(experiment.model, measurement.framework);
  for (const Stage& stage : experiment.stages) {
    for (const Part& part : stage.parts) traits.add(part.shape.device.name, part.degrees, part.samples);
  }
  return traits.of_pipelines(static_cast<double>(experiment.stages.size()), experiment.microbatches);
}

Line judge_one(Measurement measurement, std::span<const cluster::GpuType> devices, const cost::ProfileSet& profiles,
               const cluster::ExecutionMethods& methods) {
  Line line;
  line.measurement = std::move(measurement);
  auto experiment = express(line.measurement, devices);
  if (!experiment) {
    line.reason = experiment.error().front().message;
    return line;
  }
  restrict_methods(*experiment, methods);
  const auto prediction = predict(*experiment, profiles);
  if (prediction) {
    line.prediction = *prediction;
    line.traits = traits_of(*experiment, line.measurement);
  } else {
    line.reason = prediction.error().front().message;
  }
  return line;
}

Group group_of(std::string kind, std::string name, const std::vector<const Line*>& lines) {
  Group group;
  group.kind = std::move(kind);
  group.name = std::move(name);
  std::vector<double> time, memory, predicted, measured;
  for (const Line* line : lines) {
    if (!line->reason.empty()) ++group.not_expressible;
    if (line->timed()) {
      time.push_back(line->time_error());
      predicted.push_back(line->prediction.iteration_s);
      measured.push_back(line->measurement.iteration_s);
    }
    if (line->weighed()) memory.push_back(line->memory_error());
  }
  group.time = errors_of(std::move(time));
  group.memory = errors_of(std::move(memory));
  group.spearman = spearman(predicted, measured);
  return group;
}

using Key = std::function<std::string(const Line&)>;

void add_groups(std::vector<Group>& groups, std::span<const Line> lines, const std::string& kind, const Key& key) {
  std::map<std::string, std::vector<const Line*>> by_name;
  for (const Line& line : lines) {
    if (const std::string name = key(line); !name.empty()) by_name[name].push_back(&line);
  }
  for (const auto& [name, members] : by_name) groups.push_back(group_of(kind, name, members));
}

std::string gpus_of(const Measurement& measurement) {
  std::string names;
  for (const GpuGroup& group : measurement.gpus) {
    names += (names.empty() ? "" : " + ") + group.type.substr(0, group.type.find(" ("));
  }
  return names;
}

}  // namespace

std::vector<Line> judge(std::vector<Measurement> measurements, std::span<const cluster::GpuType> devices,
                        const cost::ProfileSet& profiles, const cluster::ExecutionMethods& methods) {
  std::vector<Line> lines;
  lines.reserve(measurements.size());
  for (Measurement& measurement : measurements) {
    lines.push_back(judge_one(std::move(measurement), devices, profiles, methods));
  }
  return lines;
}

discrepancy::Run run_of(const Line& line, std::string name) {
  return {std::move(name), line.measurement.family, line.traits, line.prediction.iteration_s,
          line.measurement.iteration_s};
}

void correct(std::span<Line> lines, const discrepancy::Discrepancy& own_runs) {
  for (Line& line : lines) {
    if (line.reason.empty()) line.prediction.iteration_s *= own_runs.at(line.traits).ratio;
  }
}

MemoryVerdicts verdicts_of(std::span<const Line> lines) {
  MemoryVerdicts verdicts;
  for (const Line& line : lines) {
    if (!line.reason.empty()) continue;
    const bool out = line.measurement.out_of_memory;
    ++(out ? verdicts.ran_out : verdicts.ran);
    if (line.refused()) ++(out ? verdicts.ran_out_found : verdicts.ran_refused);
  }
  return verdicts;
}

Errors errors_of(std::vector<double> signed_errors) {
  Errors errors;
  errors.count = static_cast<int>(signed_errors.size());
  if (signed_errors.empty()) return errors;
  const double n = static_cast<double>(signed_errors.size());
  errors.bias = std::accumulate(signed_errors.begin(), signed_errors.end(), 0.0) / n;
  for (double& error : signed_errors) error = std::abs(error);
  std::ranges::sort(signed_errors);
  errors.median = median(signed_errors);
  errors.mean = std::accumulate(signed_errors.begin(), signed_errors.end(), 0.0) / n;
  errors.p90 = signed_errors[static_cast<std::size_t>(std::ceil(0.9 * n)) - 1];
  errors.largest = signed_errors.back();
  return errors;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size() || a.size() < 3) return 0;
  const auto x = average_ranks(a);
  const auto y = average_ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double both = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    of_x += (x[i] - mean) * (x[i] - mean);
    of_y += (y[i] - mean) * (y[i] - mean);
  }
  return of_x > 0 && of_y > 0 ? both / std::sqrt(of_x * of_y) : 0;
}

std::string parallelism_of(const Measurement& m) {
  std::string name;
  const auto add = [&](bool used, const char* technique) {
    if (used) name += std::string(name.empty() ? "" : "+") + technique;
  };
  add(m.tp.value_or(1) > 1, "tp");
  add(m.pp.value_or(1) > 1, "pp");
  add(m.cp.value_or(1) > 1, "cp");
  add(m.ep.value_or(1) > 1, "ep");
  const bool sharded = m.zero.value_or(0) >= 2 || m.sharding_group;
  add(sharded, "FSDP");
  add(!sharded && m.dp.value_or(1) > 1, "dp");
  add(m.uneven(), "uneven");
  if (m.encoder) add(true, std::string(to_string(m.encoder->placement)).c_str());
  return name.empty() ? "single" : name;
}

std::vector<Group> summarize(std::span<const Line> lines) {
  std::vector<Group> groups;
  add_groups(groups, lines, "grade", [](const Line&) { return std::string("all"); });
  const auto grade_a = [](const Line& line) { return line.measurement.quality.starts_with("A"); };
  add_groups(groups, lines, "grade", [&](const Line& line) {
    return std::string(grade_a(line) && !line.measurement.derived ? "A and A-" : "");
  });
  add_groups(groups, lines, "grade", [&](const Line& line) {
    return std::string(grade_a(line) && line.measurement.derived ? "A, of FLOP/s" : "");
  });
  add_groups(groups, lines, "dataset", [](const Line& line) { return line.measurement.dataset; });
  add_groups(groups, lines, "GPU", [](const Line& line) { return gpus_of(line.measurement); });
  add_groups(groups, lines, "parallelism", [](const Line& line) { return parallelism_of(line.measurement); });
  return groups;
}

}  // namespace tangram::accuracy
