#include "tangram/parallelizer/conformance.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <tuple>

#include "connection.hpp"
#include "messages.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cluster/fleet.hpp"
#include "worker_pool.hpp"

namespace tangram::parallelizer {
namespace {

using namespace tangram::literals;
using std::chrono::milliseconds;

constexpr milliseconds kGrace{2'000};  // Python takes its time to end
constexpr std::size_t kReasonsShown = 5;

// Widths of TinyLlama (arXiv 2401.02385, table 2), few blocks.
constexpr const char* kModel = R"(
schema: tangram.model/1
name: conformance
architecture: {hidden: 2048, layers: 8, heads: 32, kv_heads: 4, ffn_hidden: 5632, vocabulary: 32000}
training: {sequence_length: 2048, global_batch_samples: 64, precision: bf16}
)";

cluster::DeviceShape shape_of(int nodes, int per_node, std::optional<Bytes> memory = std::nullopt) {
  const std::vector<cluster::GpuType>& devices = cluster::catalogue();
  const auto a100 = std::ranges::find(devices, "A100-80GB-SXM", &cluster::GpuType::name);
  TANGRAM_ASSERT(a100 != devices.end());
  cluster::DeviceShape shape{*a100, nodes, per_node, a100->peer_link, {25_GBps, 5_us}};
  if (memory) {
    shape.device.memory = *memory;
    shape.device.reserved = Bytes(0);
  }
  return shape;
}

Query query_of(const model::Model& model, int first, int last, const cluster::DeviceShape& shape, int samples,
               std::int64_t in_flight = 8) {
  return {model::signature(model, first, last), shape, samples, in_flight, model.job.allow};
}

/// Slices with either end, both and none; shapes inside a node and across; microbatches that divide and that do not.
std::vector<Query> usual_queries(const model::Model& model) {
  std::vector<Query> queries;
  for (const auto& [nodes, per_node] : {std::pair{1, 1}, {1, 2}, {1, 4}, {1, 6}, {1, 8}, {2, 8}}) {
    for (const auto& [first, last] : {std::pair{0, 1}, {0, 8}, {3, 5}, {7, 8}}) {
      for (const int samples : {1, 4, 16}) {
        queries.push_back(query_of(model, first, last, shape_of(nodes, per_node), samples));
      }
    }
  }
  return queries;
}

Nanoseconds time_of(const PartialPlan& plan) { return plan.cost.forward + plan.cost.backward; }

std::string places(const Query& query) {
  return fmt::format("{} blocks{}{} on {} x {} GPUs, {} samples", query.slice.block_count(),
                     query.slice.embedding ? " with embedding" : "", query.slice.head ? " with head" : "",
                     query.shape.nodes, query.shape.per_node, query.samples);
}

class Conformance {
 public:
  Conformance(const PluginSpec& spec, const PluginOptions& options, Launcher& launcher)
      : spec_(spec), options_(options), launcher_(launcher) {
    auto model = model::read_model(kModel, "conformance.yaml");
    TANGRAM_ASSERT(model.has_value());
    model_ = std::move(*model);
  }

  ConformanceReport run() {
    planner_ = make_planner();
    if (!planner_) return std::move(report_);
    if (!answers_everything()) return std::move(report_);
    passes_recheck();
    gives_plans();
    repeats_itself();
    keeps_infeasible();
    respects_bound();
    ignores_and_leaves();
    return std::move(report_);
  }

 private:
  void check(std::string name, bool ok, std::string detail) {
    report_.checks.push_back({std::move(name), ok, std::move(detail)});
  }

  std::vector<Outcome> ask(const Parallelizer& planner, std::span<const Query> queries) {
    std::vector<Outcome> outcomes = planner.solve(queries);
    for (const Outcome& outcome : outcomes) report_.tally.add(outcome);
    return outcomes;
  }

  std::unique_ptr<Parallelizer> make_planner() {
    auto pool = make_worker_pool(spec_, options_, launcher_);
    const Expected<PluginInfo>& plugin = pool->plugin();
    if (!plugin) {
      const std::vector<Answer> words = pool->ask(std::vector<Question>(1), {});
      if (const auto& failure = words.front().failure) report_.printed = failure->output;
      check("starts and says hello", false, plugin.error().front().message);
      return nullptr;
    }
    check("starts and says hello", true, fmt::format("{} {}", plugin->name, plugin->version));
    auto planner = make_plugin_parallelizer(spec_.name, std::move(pool), model_, nullptr);
    report_.tally.info = planner->info();
    return planner;
  }

  bool answers_everything() {
    queries_ = usual_queries(model_);
    outcomes_ = ask(*planner_, queries_);
    const auto failed = std::ranges::find(outcomes_, OutcomeStatus::kFailed, &Outcome::status);
    if (failed == outcomes_.end()) {
      check("answers every question", true, fmt::format("{} questions", queries_.size()));
      return true;
    }
    if (const auto& failure = failed->failure) report_.printed = failure->output;
    check("answers every question", false,
          fmt::format("{}: {}", places(at(queries_, failed - outcomes_.begin())), failed->message));
    return false;
  }

  void passes_recheck() {
    if (report_.tally.rejected.empty()) {
      check("plans pass the re-check", true, fmt::format("{} plans", report_.tally.plans));
      return;
    }
    std::string detail;
    for (std::size_t i = 0; i < std::min(kReasonsShown, report_.tally.rejected.size()); ++i) {
      const CountedReason& reason = report_.tally.rejected[i];
      detail += fmt::format("{}{} x {}: {}", detail.empty() ? "" : "; ", reason.count, reason.code, reason.example);
    }
    // A planner's own account of memory may be more optimistic than the host's: those plans are dropped, no harm done.
    const bool memory_alone =
        report_.tally.rejected.size() == 1 && report_.tally.rejected.front().code == "out-of-memory";
    check("plans pass the re-check", memory_alone, detail);
  }

  void gives_plans() {
    const bool some = report_.tally.plans > 0;
    check(
        "finds a plan where there is one", some,
        some ? fmt::format("{} queries infeasible, {} unsupported", report_.tally.infeasible, report_.tally.unsupported)
             : "no plan for any question, though one block fits one A100 with room to spare");
  }

  void repeats_itself() {
    const std::unique_ptr<Parallelizer> again = make_second();
    std::string difference;
    const std::vector<Outcome> second = again->solve(queries_);
    for (std::size_t i = 0; i < second.size() && difference.empty(); ++i) {
      const bool same = std::ranges::equal(outcomes_[i].plans, second[i].plans, [](const auto& a, const auto& b) {
        return std::tie(a.strategy, a.opaque) == std::tie(b.strategy, b.opaque);
      });
      if (!same || outcomes_[i].status != second[i].status) difference = places(queries_[i]);
    }
    if (!report_.tally.info.deterministic) {
      check("answers repeat", true, "it says that they need not");
    } else {
      check("answers repeat", difference.empty(),
            difference.empty()
                ? "a second process says the same"
                : fmt::format("another answer from a second process: {}. Sets without an order, threads, "
                              "clocks and random seeds are the usual reasons; if it must be, say "
                              "\"deterministic\": false in hello",
                              difference));
    }
  }

  std::unique_ptr<Parallelizer> make_second() {
    return make_plugin_parallelizer(spec_.name, make_worker_pool(spec_, options_, launcher_), model_, nullptr);
  }

  /// What does not fit in one GPU of 2 GiB does not fit when more blocks or microbatches in flight are asked for.
  void keeps_infeasible() {
    const cluster::DeviceShape tight = shape_of(1, 1, 2_GiB);
    const Query queries[] = {query_of(model_, 3, 4, tight, 1, 1), query_of(model_, 3, 5, tight, 1, 1),
                             query_of(model_, 2, 6, tight, 1, 1), query_of(model_, 2, 6, tight, 1, 8)};
    const std::vector<Outcome> outcomes = ask(*planner_, queries);
    bool infeasible = false;
    std::string detail = "longer slices and more in flight stay infeasible";
    bool ok = true;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (infeasible && !outcomes[i].plans.empty()) {
        ok = false;
        detail = fmt::format("{} is infeasible, yet {} has a plan", places(queries[i - 1]), places(queries[i]));
      }
      infeasible = infeasible || outcomes[i].status == OutcomeStatus::kInfeasible;
      if (outcomes[i].status == OutcomeStatus::kFailed) {
        ok = false;
        detail = fmt::format("{}: {}", places(queries[i]), outcomes[i].message);
      }
    }
    check("infeasible means infeasible", ok, detail);
  }

  /// An upper bound may leave out slower plans, but not the fastest.
  void respects_bound() {
    for (std::size_t i = 0; i < queries_.size(); ++i) {
      if (outcomes_[i].plans.size() < 2) continue;
      Query bounded = queries_[i];
      const Nanoseconds best = time_of(outcomes_[i].plans.front());
      bounded.upper_bound = best;
      const std::vector<Outcome> outcomes = ask(*planner_, {&bounded, 1});
      const bool kept = !outcomes.front().plans.empty() && time_of(outcomes.front().plans.front()) == best;
      check("an upper bound leaves the fastest plan", kept,
            kept ? "it does"
                 : fmt::format("{}: gone under a bound of {} ns, which it just meets by the host's account; "
                               "bound by your own account only with a margin",
                               places(bounded), best.value()));
      return;
    }
    check("an upper bound leaves the fastest plan", true, "never more than one plan: nothing to leave out");
  }

  /// Messages of later protocols are skipped, and a worker ends when told to.
  void ignores_and_leaves() {
    auto process = launcher_.launch(worker_command(spec_));
    if (!process) {
      check("leaves when told to", false, process.error().front().message);
      return;
    }
    Connection link(std::move(*process));
    const bool hello = wait_for_hello(link);
    link.send("{\"type\":\"of-a-later-protocol\",\"x\":1}\n" + bye_line());
    const std::string end = link.process().stop(kGrace);
    const bool left = hello && end == "exit 0";
    check("leaves when told to", left,
          left ? end
               : fmt::format("after an unknown message and bye: {}. Skip types you do not know; end at bye and at "
                             "the end of the stream",
                             end));
  }

  bool wait_for_hello(Connection& link) const {
    const auto deadline = std::chrono::steady_clock::now() + spec_.start_timeout;
    while (!link.closed() && std::chrono::steady_clock::now() < deadline) {
      pollfd event{link.process().channel(), POLLIN, 0};
      poll(&event, 1, 100);
      link.receive();
      if (link.next_line()) return true;
    }
    return false;
  }

  const PluginSpec& spec_;
  const PluginOptions& options_;
  Launcher& launcher_;
  model::Model model_;
  std::unique_ptr<Parallelizer> planner_;
  std::vector<Query> queries_;
  std::vector<Outcome> outcomes_;
  ConformanceReport report_;
};

}  // namespace

bool ConformanceReport::ok() const { return std::ranges::all_of(checks, &ConformanceCheck::ok); }

ConformanceReport test_plugin(const PluginSpec& spec, const PluginOptions& options, Launcher& launcher) {
  return Conformance(spec, options, launcher).run();
}

}  // namespace tangram::parallelizer
