// A bound that needs no search. Goes in: model and islands. Comes out: an iteration time that no plan of any
// granularity, pipeline or technique can beat on these devices, as the cost model sees them.
//
// The plainest part is work over speed. Let a_jk be the least GPU-seconds of one sample of work item j (a block type,
// the head) on class k, c_j how often it occurs, N_k the GPUs of k. Any plan splits B c_j samples of each item among
// the classes within N_k t GPU-seconds, so by linear programming duality, for all prices y >= 0: t >= B sum_j c_j y_j /
// sum_k N_k max_j (y_j / a_jk). Prices are taken in turn from every class (y_j = a_jk), which is exact when the classes
// differ by a constant factor.
//
// Where all costs are known to be the cost model's own, rate_bound.hpp says more: what strategies really reach, and
// what filling pipelines and synchronising gradients takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/base/deadline.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cluster/price.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/model/model.hpp"
#include "tangram/relax/bound_tuning.hpp"

namespace tangram::relax {

/// `modelled`: all plans of stages are those of parallelizers whose info says so. `chunks`: model chunks that a stage
/// may have at most, 1 under 1F1B. What is proven by the deadline counts. `zero_bubble`: weight gradients may be put
/// off; what holds then holds of 1F1B as well.
[[nodiscard]] Nanoseconds relaxed_bound(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                        bool modelled, const cost::ProfileSet* profiles = nullptr,
                                        const BoundTuning& tuning = {}, int chunks = 1, const Deadline& deadline = {},
                                        bool zero_bubble = false);

/// The same for money: dollars that an iteration costs at least, all work on the class where it is cheapest. Zero where
/// a class has no price.
[[nodiscard]] double relaxed_dollars(const model::Model& model, const cluster::IslandLevel& level,
                                     const cost::ProfileSet* profiles = nullptr);

/// What money buys: no plan that spends so much an hour is faster, all work on the GPUs that do most of it for a
/// dollar, as far as there are any. Made once for many limits.
class SpeedOfMoney {
 public:
  /// Of GPUs of these types; none named: of all. All prices are known.
  SpeedOfMoney(const model::Model& model, const cluster::IslandLevel& level, const cost::ProfileSet* profiles,
               const std::vector<std::string>& gpu_types);

  [[nodiscard]] Nanoseconds least_time(cluster::MicroDollarsPerHour most) const;

 private:
  // At some prices of the work: the GPUs of a class do so much work a second for a micro-dollar an hour.
  struct Offer {
    double work_for_money = 0;
    double money = 0;  // of all GPUs of the class
  };
  struct Pricing {
    double work = 0;            // of an iteration
    std::vector<Offer> offers;  // best first
  };
  std::vector<Pricing> pricings_;
};

/// And the fewest GPUs: so many are needed at least for an iteration within `time`, taking those first that do the
/// most. Infinite where all together are too few.
[[nodiscard]] double relaxed_gpus(const model::Model& model, const cluster::IslandLevel& level, Nanoseconds time,
                                  const cost::ProfileSet* profiles = nullptr);

}  // namespace tangram::relax
