// Plans a job on a fleet with one call.
#include <cstdio>
#include <tangram/cluster/fleet.hpp>
#include <tangram/io/file.hpp>
#include <tangram/model/model.hpp>
#include <tangram/planner/plan.hpp>

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  const auto cluster = tangram::io::read_file(argv[1]);
  const auto job = tangram::io::read_file(argv[2]);
  if (!cluster || !job) return 4;
  const auto fleet = tangram::cluster::read_fleet(*cluster, argv[1]);
  const auto model = tangram::model::read_any_model(*job, argv[2]);
  if (!fleet || !model) return 4;
  const auto planned = tangram::planner::make_plan(*fleet, *model, tangram::planner::usual_options(*fleet, *model));
  if (!planned) return 2;
  std::printf("%lld GPUs, %zu plans simulated\n", static_cast<long long>(fleet->gpu_count()), planned->candidates);
  return 0;
}
