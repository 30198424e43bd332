// Every planner on a small mixed fleet: its drafts become launch plans that hold what is claimed of them.
#include <algorithm>

#include "small_setting.hpp"
#include "support/catch.hpp"
#include "tangram/baseline/baseline.hpp"
#include "tangram/plan/check.hpp"

using namespace tangram;
using namespace tangram::baseline;

namespace {

// [A100x4 a] [A100x4 b] [V100x4 c] [V100x4 d] over Ethernet.
struct PlannersSetting : SmallSetting {
  PlannersSetting() : SmallSetting{"a-[1-2]", "v-[1-2]", 12} {}
};

}  // namespace

TEST_CASE("every planner finds a plan that runs") {
  const PlannersSetting setting;
  for (const std::string_view name : planner_names()) {
    for (const Mode mode : {Mode::kFaithful, Mode::kRepaired}) {
      const auto planner = make_planner(name);
      REQUIRE(planner != nullptr);
      const Proposals proposals = planner->propose(setting.input, mode, {});
      const Verdict verdict = first_usable(proposals, setting.input, setting.judge);
      INFO(name << " " << to_string(mode) << ", " << proposals.drafts.size() << " drafts");
      REQUIRE(verdict.usable() != nullptr);
      CHECK(verdict.usable()->plan->predicted.iteration > Nanoseconds(0));
      CHECK(std::ranges::is_sorted(proposals.drafts, {}, &Draft::claimed));
      CHECK_FALSE(proposals.effort.cut);
    }
  }
  CHECK(make_planner("nobody") == nullptr);
}

TEST_CASE("a plan that trains another batch is not ok") {
  PlannersSetting setting;
  setting.model.job.global_batch = 61;
  setting.input.batch = 61;
  const auto proposals = make_planner("sailor")->propose(setting.input, Mode::kFaithful, {});
  int others = 0;
  for (std::size_t i = 0; i < proposals.drafts.size() && i < 20; ++i) {
    const DraftPipeline& pipeline = proposals.drafts[i].pipelines.front();
    if (pipeline.microbatch * pipeline.microbatches == 61) continue;
    ++others;
    const Candidate candidate = baseline::judge(proposals.drafts[i], 1, setting.input, setting.judge);
    CHECK_FALSE(candidate.runs());
    CHECK((candidate.label == Label::kOtherBatch || candidate.label == Label::kInexpressible));
  }
  CHECK(others > 0);
}

TEST_CASE("repaired planners return nothing that their memory model or their cuts forbid") {
  const PlannersSetting setting;
  for (const std::string_view name : planner_names()) {
    const Proposals proposals = make_planner(name)->propose(setting.input, Mode::kRepaired, {});
    for (const Draft& draft : proposals.drafts) {
      CHECK((draft.label == Label::kOk || draft.label == Label::kInexpressible));
      for (const DraftPipeline& pipeline : draft.pipelines) {
        int next = 0;
        for (const DraftStage& stage : pipeline.stages) {
          CHECK(stage.first == next);
          CHECK(stage.last > stage.first);
          next = stage.last;
        }
        CHECK(next == setting.input.units());
      }
    }
  }
}

TEST_CASE("planning twice gives the same") {
  const PlannersSetting setting;
  for (const std::string_view name : planner_names()) {
    const auto planner = make_planner(name);
    const Proposals a = planner->propose(setting.input, Mode::kFaithful, {});
    const Proposals b = planner->propose(setting.input, Mode::kFaithful, {});
    REQUIRE(a.drafts.size() == b.drafts.size());
    CHECK(a.effort.examined == b.effort.examined);
    for (std::size_t i = 0; i < a.drafts.size(); ++i) CHECK(a.drafts[i].claimed == b.drafts[i].claimed);
  }
}

TEST_CASE("a budget ends the enumeration and says so") {
  const PlannersSetting setting;
  const Proposals proposals = make_planner("metis")->propose(setting.input, Mode::kFaithful, {50, 1000, 10});
  CHECK(proposals.effort.cut);
  CHECK(proposals.effort.examined == 50);
  CHECK(proposals.drafts.size() <= 10);
}
