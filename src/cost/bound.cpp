// Lower bounds on GPU-seconds that hold for every degree and policy.
#include <algorithm>

#include "tangram/cost/compute.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::cost {
namespace {

constexpr double kPasses = 3;  // forward, input gradient, weight gradient

double seconds(double flops, double rate) { return flops > 0 ? flops / rate : 0; }

}  // namespace

double least_gpu_seconds(const model::Model& model, const model::BlockType& block, const cluster::GpuType& device,
                         const ProfileSet* profiles) {
  const DeviceRates rates = device_rates(device, model.job.precision);
  const double attention = attention_forward_flops(block).value();
  const double linear = model::forward_flops(block).value() - attention;
  const double core = std::max({rates.attention, rates.fused_forward, rates.fused_backward});
  const double modelled = kPasses * (seconds(linear, rates.matrix) + seconds(attention, core));
  return profiles == nullptr ? modelled
                             : std::min(modelled, profiles->least_block_gpu_seconds(block, model.job, device));
}

double least_gpu_seconds_head(const model::Model& model, const cluster::GpuType& device, const ProfileSet* profiles) {
  const DeviceRates rates = device_rates(device, model.job.precision);
  const double flops = model::head_forward_flops(model).value();
  const double modelled = kPasses * seconds(flops, rates.attention);
  return profiles == nullptr ? modelled : std::min(modelled, profiles->least_head_gpu_seconds(model, device));
}

}  // namespace tangram::cost
