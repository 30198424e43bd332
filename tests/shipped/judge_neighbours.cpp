// judge_neighbours [--target RUNTIME] [FLEET MODEL]...: plans the pairs, by default all shipped fleets of up to 256
// GPUs with all models, for the runtime (generic), and prints by how much the fastest neighbour of each plan is faster.
// 1: one of them is, by a thousandth. 2: there is no such runtime.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "shipped/fleets_and_models.hpp"
#include "shipped/neighbours.hpp"

using namespace tangram;
using namespace tangram::shipped;

namespace {

constexpr int kMostGpus = 256;

std::vector<std::pair<std::string, std::string>> all_pairs() {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& fleet : fleet_names()) {
    if (fleet_named(fleet).gpu_count() > kMostGpus) continue;
    for (const std::string& model : model_names()) pairs.emplace_back(fleet, model);
  }
  return pairs;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> names(argv + 1, argv + argc);
  auto target = runtime::Target::kGeneric;
  if (names.size() > 1 && names.front() == "--target") {
    const auto named = runtime::target_named(names[1]);
    if (!named) {
      fmt::print(stderr, "there is no runtime '{}'\n", names[1]);
      return 2;
    }
    target = *named;
    names.erase(names.begin(), names.begin() + 2);
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i + 1 < names.size(); i += 2) pairs.emplace_back(names[i], names[i + 1]);
  if (pairs.empty()) pairs = all_pairs();
  int plans = 0;
  int beaten = 0;
  double most = 0;
  for (const auto& [fleet, model] : pairs) {
    const cluster::Fleet its_fleet = fleet_named(fleet);
    const model::Model its_model = model_named(model);
    const auto result = neighbour_of_best({its_fleet, its_model, target});
    if (!result) continue;
    ++plans;
    if (result->gain() >= kWorthwhile) ++beaten;
    most = std::max(most, result->gain());
    fmt::print("{:20} {:18} {:11.5f} s {:7.3f} % of {:6}  {}\n", fleet, model, to_seconds(result->own),
               result->gain() * 100, result->tried, result->change);
    std::fflush(stdout);
  }
  fmt::print("{} of {} plans have a neighbour that is faster by a thousandth, the most by {:.3f} %\n", beaten, plans,
             most * 100);
  return beaten == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
