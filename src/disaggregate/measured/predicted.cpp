#include <fmt/format.h>

#include <algorithm>

#include "../arms/replicas.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/measured.hpp"

namespace tangram::disaggregate {

namespace {

Expected<double> of_one_gpu(const Batch& batch, const std::string& gpu) {
  const auto& classes = batch.problem.classes;
  const auto of = std::ranges::find(classes, gpu, &GpuClass::name);
  if (of == classes.end()) {
    return fail(problem(ErrorKind::kInput, "unknown-gpu",
                        fmt::format("one GPU of type \"{}\": its cluster has none", gpu),
                        "\"gpu\" of the row is the catalogue's name"));
  }
  const Usage usage = alone_on(batch.problem, static_cast<int>(of - classes.begin()));
  return usage.fits ? batch.requests / usage.period : 0;
}

bool splits_a_pass(ArmKind kind) {
  return kind != ArmKind::kReplicas && kind != ArmKind::kPhases && kind != ArmKind::kPhasesShared;
}

}  // namespace

Expected<double> predicted_tokens(const Batch& batch, const MeasuredArm& arm) {
  if (arm.kind == ArmKind::kOneGpu) return of_one_gpu(batch, arm.gpu);
  Terms terms;
  terms.in_flight = {arm.in_flight};
  const Arm found = arm_of({&batch, 1}, arm.kind, terms);
  return splits_a_pass(arm.kind) ? found.simulated : found.rate;
}

}  // namespace tangram::disaggregate
