// Lower bounds on GPU-seconds that hold for every degree and policy.
#include <algorithm>
#include <cmath>

#include "tangram/cost/compute.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::cost {
namespace {

double seconds(double flops, double rate) { return flops > 0 ? flops / rate : 0; }

/// What was measured is of units that are trained, on samples of one sequence (`alike`); how much of it was forward, or
/// attention, is not known.
double at_most(double modelled, double measured, bool alike) {
  if (alike) return std::min(modelled, measured);
  return std::isfinite(measured) ? 0 : modelled;
}

}  // namespace

double least_gpu_seconds(const model::Model& model, const model::BlockType& block, const cluster::GpuType& device,
                         const ProfileSet* profiles) {
  const std::optional<model::Job> own = model::own_job(block, model.job);
  const DeviceRates rates = device_rates(device, own ? *own : model.job);
  const model::BlockType plain = model::plain(block);
  const double attention = attention_forward_flops(block).value();
  const double linear = model::forward_flops(plain).value() - attention_forward_flops(plain).value();
  // Extra keys only add to it.
  const double core =
      std::max({rates.attention, rates.fused_forward, rates.fused_backward, rates.wide_forward, rates.wide_backward});
  const model::Gradients& gradients = block.gradients;
  const double products = seconds(linear, rates.matrix);
  const double of_attention = seconds(attention, core);
  const double modelled = gradients == model::Gradients{} ? 3 * (products + of_attention)
                                                          : (1 + gradients.products()) * products +
                                                                (1 + gradients.attention_products()) * of_attention;
  if (profiles == nullptr) return modelled;
  const bool alike = gradients == model::Gradients{} && block.attention.packed_length == 0;
  return at_most(modelled, profiles->least_block_gpu_seconds(block, model.job, device), alike);
}

double least_gpu_seconds_head(const model::Model& model, const cluster::GpuType& device, const ProfileSet* profiles) {
  const DeviceRates rates = device_rates(device, model.job);
  const double flops = model::head_forward_flops(model).value();
  const model::Gradients gradients = model.end_gradients();
  const double modelled = (1 + gradients.products()) * seconds(flops, rates.attention);
  if (profiles == nullptr) return modelled;
  return at_most(modelled, profiles->least_head_gpu_seconds(model, device), gradients == model::Gradients{});
}

}  // namespace tangram::cost
