// Planning as a library: plan_once CLUSTER MODEL PLAN reads a fleet and a model and writes a launch plan.
#include <iostream>
#include <string>

#include "tangram/io/file.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;

namespace {

Expected<std::string> plan_once(const std::string& cluster_file, const std::string& model_file,
                                const std::string& plan_file) {
  const auto fleet = io::read_file(cluster_file).and_then([&](const std::string& text) {
    return cluster::read_fleet(text, cluster_file);
  });
  if (!fleet) return fail(fleet.error());
  const auto model = io::read_file(model_file).and_then([&](const std::string& text) {
    return model::read_any_model(text, model_file);
  });
  if (!model) return fail(model.error());
  auto planned = planner::make_plan(*fleet, *model, planner::usual_options(*fleet, *model));
  if (!planned) return fail(planned.error());
  const auto text = planner::checked_text(planned->plan, *fleet, *model);
  if (!text) return fail(text.error());
  const auto written =
      io::OutputFile::open(plan_file).and_then([&](io::OutputFile file) { return file.commit(*text); });
  if (!written) return fail(written.error());
  return std::to_string(to_seconds(planned->plan.predicted.iteration)) + " s an iteration, written to " + plan_file;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: plan_once CLUSTER MODEL PLAN\n", 64;
  const auto done = plan_once(argv[1], argv[2], argv[3]);
  (done ? std::cout : std::cerr) << (done ? *done + "\n" : render(done.error()));
  return done ? 0 : 1;
}
