// Colocated encoders on tiny fleets: what the search finds beside every case, every number of GPUs and many plans of
// the language model, none of them left out.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "colocated_pricing.hpp"
#include "colocated_search.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/model/split.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

using namespace tangram;
using namespace tangram::compose;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

constexpr int kTinyFleets = 60;

/// One or two nodes of one or two types, tight in memory in a third of the cases.
cluster::IslandHierarchy tiny_islands(std::mt19937_64& random) {
  std::string nodes;
  const int types = pick(random, 1, 2);
  for (int i = 0; i < types; ++i) {
    nodes += fmt::format(R"({}{{"name": "n{}", "gpus": [{{"type": "t{}", "count": {}}}], "network": )"
                         R"({{"bandwidth_gbit_s": {}, "latency_us": 5}}}})",
                         i > 0 ? ", " : "", i, i, 1 << pick(random, 0, 2), 25 * pick(random, 1, 8));
  }
  std::string gpus;
  for (int i = 0; i < types; ++i) {
    const double memory = pick(random, 0, 2) == 0 ? 0.4 + 0.2 * pick(random, 0, 3) : 8;
    gpus += fmt::format(R"({}"t{}": {{"vendor": "acme", "architecture": "t{}", "memory_gib": {:.2f}, "reserved_gib": )"
                        R"(0.05, "memory_bandwidth_gb_s": 800, "peak_tflops": {{"bf16": {}, "fp32": 10}}, )"
                        R"("pcie": {{"bandwidth_gb_s": {}, "latency_us": 5}}}})",
                        i > 0 ? ", " : "", i, i, memory, 40 * (i + 1), 8 * pick(random, 1, 4));
  }
  const std::string text =
      fmt::format(R"({{"schema": "tangram.cluster/1", "name": "tiny", "gpus": {{{}}}, "nodes": [{}]}})", gpus, nodes);
  auto fleet = cluster::read_fleet(text, "tiny.json");
  if (!fleet) FAIL(render(fleet.error()));
  return cluster::find_islands(*fleet, 0.1);
}

model::Model tiny_model(std::mt19937_64& random) {
  std::string encoders;
  const int count = pick(random, 0, 4) == 0 ? 2 : 1;
  for (int e = 0; e < count; ++e) {
    encoders += fmt::format(
        "    - {{name: e{}, hidden: 256, layers: {}, heads: 4, ffn_hidden: {}, gated: false, tokens_in: {}, "
        "tokens_out: 64, connector: {{kind: mlp, widths: [256, 256]}}}}\n",
        e, pick(random, 1, 3), 512 * pick(random, 1, 3), 64 * pick(random, 1, 8));
  }
  const std::string text = fmt::format(
      "schema: tangram.model/1\nname: tiny\narchitecture:\n  vocabulary: 4000\n  hidden: 256\n  layers: {}\n"
      "  heads: 4\n  ffn_hidden: 1024\n  encoders:\n{}training:\n  sequence_length: 512\n"
      "  global_batch_samples: {}\n",
      pick(random, 1, 3), encoders, 1 << pick(random, 2, 4));
  auto model = model::read_model(text, "tiny.yaml");
  if (!model) FAIL(render(model.error()));
  model::Techniques& allow = model->job.allow;
  allow.cp = allow.zero2 = allow.zero3 = allow.recompute_selective = false;
  return *std::move(model);
}

class Everything {
 public:
  Everything(const model::Model& model, const cluster::IslandHierarchy& hierarchy)
      : model_(model), hierarchy_(hierarchy), pricing_(model, nullptr), language_(model::language_of(model)) {
    language_.job.allow.mixed_stages = false;
    for (const cluster::IslandClass& c : hierarchy.levels.front().classes) gpus_ += c.gpu_count();
  }

  /// Closed form of the best; max: there is none.
  Nanoseconds best() {
    for (const EncoderLayouts& layouts : all_layouts()) {
      for (int gpus = 1; gpus <= gpus_; ++gpus) {
        look(EncoderTurns::kThreePhases, layouts, gpus, 0);
        for (std::int64_t b = 1; b <= model_.job.global_batch; b *= 2) {
          look(EncoderTurns::kPerMicrobatch, layouts, gpus, b);
        }
      }
    }
    return best_;
  }

 private:
  std::vector<EncoderLayouts> all_layouts() const {
    std::vector<EncoderLayouts> all{{}};
    for (std::size_t e = 0; e < pricing_.encoders(); ++e) {
      std::vector<EncoderLayouts> longer;
      for (const EncoderLayouts& before : all) {
        for (const int tp : {1, 2, 4}) {
          for (const auto recompute : {model::RecomputeMode::kNone, model::RecomputeMode::kFull}) {
            longer.push_back(before);
            longer.back().push_back({tp, tp > 1, true, recompute});
          }
        }
      }
      all = longer;
    }
    return all;
  }

  void look(EncoderTurns turns, const EncoderLayouts& layouts, int gpus, std::int64_t microbatch) {
    cluster::IslandHierarchy reserved = hierarchy_;
    for (cluster::IslandLevel& level : reserved.levels) {
      for (cluster::IslandClass& c : level.classes) {
        const auto reserve = reserve_on(c, turns, layouts, gpus);
        if (!reserve) return;
        c.device.reserved = std::min(c.device.memory, c.device.reserved + *reserve);
      }
    }
    model::Model language = language_;
    language.job.microbatch = microbatch;
    if (turns == EncoderTurns::kPerMicrobatch) language.job.allow.pipeline = false;
    const auto enumerator = parallelizer::make_enumerator(language);
    const parallelizer::Parallelizer* const asked[] = {enumerator.get()};
    SearchOptions options;
    options.top = 64;
    options.spend = SpendLimit{Currency::kGpus, gpus};
    options.relaxed_bound = Nanoseconds(0);
    for (const Composition& plan : search(language, reserved, asked, options).best) {
      const auto placed = pricing_.place(plan, hierarchy_.levels[static_cast<std::size_t>(plan.level)], turns, layouts);
      if (placed.plan) best_ = std::min(best_, placed.plan->closed_form);
    }
  }

  std::optional<Bytes> reserve_on(const cluster::IslandClass& c, EncoderTurns turns, const EncoderLayouts& layouts,
                                  int gpus) const {
    Bytes reserve;
    for (std::size_t e = 0; e < layouts.size(); ++e) {
      LaneShare share;
      share.all = share.lanes = std::max(1, gpus / layouts[e].tp);
      share.samples = turns == EncoderTurns::kPerMicrobatch ? 1 : (model_.job.global_batch + share.all - 1) / share.all;
      const auto cost = pricing_.cost(e, cluster::make_shape(c, c.gpus_per_member), layouts[e], turns, share);
      if (!cost) return std::nullopt;
      reserve += cost->static_memory + cost->held;
    }
    return reserve;
  }

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  EncoderPricing pricing_;
  model::Model language_;
  int gpus_ = 0;
  Nanoseconds best_ = Nanoseconds::max();
};

}  // namespace

TEST_CASE("property colocated: on tiny fleets the search finds what trying everything finds, and its bound holds") {
  std::mt19937_64 random(41);
  int with_plan = 0;
  int equal = 0;
  for (int i = 0; i < cases(kTinyFleets); ++i) {
    const cluster::IslandHierarchy hierarchy = tiny_islands(random);
    const model::Model model = tiny_model(random);
    const auto enumerator = parallelizer::make_enumerator(model);
    const parallelizer::Parallelizer* const asked[] = {enumerator.get()};
    const SearchResult found = search_colocated(model, hierarchy, asked, {}, {});
    const Nanoseconds everything = Everything(model, hierarchy).best();
    INFO("fleet " << i);
    CHECK(found.best.empty() == (everything == Nanoseconds::max()));
    if (found.best.empty()) continue;
    ++with_plan;
    const Nanoseconds best = found.best.front().closed_form;
    equal += best <= everything ? 1 : 0;
    CHECK(found.search_bound <= best);
    CHECK(found.search_bound <= everything);
    CHECK(found.relaxed_bound <= found.search_bound);
    CHECK(best.as_double() <= 1.05 * everything.as_double());
  }
  INFO(equal << " of " << with_plan << " fleets");
  CHECK(with_plan >= enough(40));
  CHECK(equal == with_plan);
}
