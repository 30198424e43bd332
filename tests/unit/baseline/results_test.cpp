// Files in the forms that the published programs write.
#include "tangram/baseline/results.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "small_setting.hpp"
#include "support/catch.hpp"
#include "tangram/baseline/planner_files.hpp"

using namespace tangram;
using namespace tangram::baseline;

namespace {

struct ResultsSetting : SmallSetting {
  [[nodiscard]] std::vector<Candidate> judged(const std::string& text, const std::string& program) const {
    auto results = judge_results(text, "file", input, judge);
    if (!results) FAIL(render(results.error()));
    CHECK(results->program == program);
    return std::move(results->verdict.judged);
  }
  [[nodiscard]] std::string errors(const std::string& text) const {
    const auto results = judge_results(text, "file", input, judge);
    return results ? "" : render(results.error());
  }
};

constexpr const char* kMetis = R"(some log line
len(costs): 5
rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), batches(number of batch), layer_partition
1, 400.0, (<DeviceType.V100: 'v100'>, <DeviceType.A100: 'a100'>), [4, 4], [(2, 2), (4, 1)], 8, [0, 4, 9]
2, 490.0, (<DeviceType.V100: 'v100'>, <DeviceType.A100: 'a100'>), [2, 2, 4], [(1, 2), (1, 2), (4, 1)], 8, [0, 4, 4, 10]
3, 500.5, (<DeviceType.A100: 'a100'>, <DeviceType.V100: 'v100'>), [4, 4], [(4, 1), (2, 2)], 16, [0, 7, 10]
4, 900.5, (<DeviceType.A100: 'a100'>, <DeviceType.V100: 'v100'>), [4, 4], [(4, 1), (2, 2)], 16, [0, 7, 10]
)";

constexpr const char* kSailor = R"({"plan": {"mbs": 2, "pipelines": [{"num_stages": 2,
  "layers_per_stage": [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9]], "dp_degrees": [2, 2],
  "tmp_stages": [[[[["V100-16", 1, "z"]], 1], [[["V100-16", 1, "z"]], 1]], [[[["A100-40", 2, "z"]], 2], [[["A100-40", 2, "z"]], 2]]]}]},
  "estimated_throughput": 0.5})";

constexpr const char* kAmp =
    "rank 1: ((2, {'mp_deg': tensor(2), 'dp_deg': tensor(2), 'pp_deg': tensor(2)}, {0: [0, 1]}, [0, 8, 14]), 1.25)\n";

}  // namespace

TEST_CASE("Metis' ranked list is tried from its top") {
  const auto plans = ResultsSetting().judged(kMetis, "metis");
  REQUIRE(plans.size() == 3);
  CHECK(plans[0].label == Label::kLayersMissing);
  CHECK(plans[1].label == Label::kStageEmpty);
  // Listed twice: the shorter claim is of one stage alone. It runs all the same.
  CHECK(plans[2].label == Label::kMisCosted);
  CHECK(plans[2].claimed == Approx(0.5005));
  REQUIRE(plans[2].runs());
  CHECK(plans[2].plan->stages[0].last() == 6);  // seven units: the embedding and six blocks
  CHECK(plans[2].plan->stages[1].parts.front().strategy.degrees.tp == 2);
}

TEST_CASE("mistakes behind Metis' log are shown where they are in the file") {
  const std::string log = "inter_stage_plan: InterStagePlan(batches=8, gbs=64)\ncost: 4\n";
  const std::string header = "rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg)\n";
  CHECK(ResultsSetting().errors(log + header + "1, 500.5, nothing\n").find("file:4:") == 0);
}

TEST_CASE("plans of Sailor, AMP and FlashFlex are judged") {
  const ResultsSetting setting;
  const auto sailor = setting.judged(kSailor, "sailor");
  REQUIRE(sailor.front().runs());
  CHECK(sailor.front().plan->pipelines.front().microbatches == 16);  // 64 / (2 x 2)
  const auto amp = setting.judged(kAmp, "amp");
  REQUIRE(amp.front().runs());
  CHECK(amp.front().plan->stages.front().last() == 6);  // 8 of 14 layers: embedding, cast and six blocks
  CHECK(amp.front().claimed == Approx(1.25));
}

TEST_CASE(
    "replicas of a stage may be unequally many on its nodes, and lists of Sailor's plans are tried from the top") {
  ResultsSetting setting{{"a[1-2]"}};
  setting.model.job.global_batch = setting.input.batch = 65;  // what five replicas train
  const auto stage_of = [](int replicas) {
    std::string text = "[[[\"A100-40\", 1, \"z\"]], 1]";
    for (int i = 1; i < replicas; ++i) text += ", [[[\"A100-40\", 1, \"z\"]], 1]";
    return "{\"estimated_throughput\": 0.5, \"plan\": {\"mbs\": 1, \"pipelines\": [{\"num_stages\": 1, "
           "\"layers_per_stage\": "
           "[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]], \"tmp_stages\": [[" +
           text + "]]}]}}";
  };
  // Nine GPUs are not there. Five are on two nodes: five members of one, whose network is 5/2 of a node's four shares.
  const auto plans = setting.judged("[" + stage_of(9) + ", " + stage_of(5) + "]", "sailor");
  REQUIRE(plans.size() == 2);
  CHECK_FALSE(plans[0].runs());
  REQUIRE(plans[1].runs());
  CHECK(plans[1].claimed == Approx(2));
  CHECK(plans[1].plan->stages.front().parts.front().members == 5);
}

TEST_CASE("what is no result is refused with its place") {
  const ResultsSetting setting;
  CHECK(setting.errors("[]\n").find("file:1:1: error: the list is empty") == 0);
  CHECK(setting.errors("hello\n").find("file:1:1: error: these are not results") == 0);
  CHECK(setting.errors("rank 1: ((2, {'mp_deg': 2}))\n").find("file:1:1: error: this is no plan of AMP") == 0);
  CHECK_FALSE(setting.errors("1, 5, (<DeviceType.A100: 'a100'>), [8], [(8, 1)], 16\n").empty());
}

TEST_CASE("what the programs read is written from our profiles") {
  const ResultsSetting setting;
  const PlannerFiles files = write_planner_files(setting.fleet, setting.input);
  const auto text = [&](const std::string& path) {
    const auto file = std::ranges::find(files.files, path, &PlannerFile::path);
    if (file == files.files.end()) FAIL("there is no " << path);
    return file->text;
  };
  CHECK(text("metis/hostfile") == "a slots=4\nv slots=4\n");
  CHECK(text("metis/clusterfile.json").find("\"instance_type\": \"V100\"") != std::string::npos);
  CHECK(text("metis/profile/DeviceType.A100_tp2_bs4.json").find("\"layer_compute_total_ms\"") != std::string::npos);
  CHECK(text("sailor/cluster.json") == "{\"A100-40_tangram\": 4, \"V100-16_tangram\": 4}\n");
  CHECK(text("sailor/profiles/V100-16/profile.json").find("\"9\": [") != std::string::npos);  // ten units
  // Networks of 50 and 25 Gbit/s; of the slower two of four GPUs have half.
  const auto network = nlohmann::json::parse(text("sailor/network.json"));
  const auto& rate = network["tangram"]["A100-40"]["4"]["tangram"]["V100-16"]["2"];
  CHECK(rate == nlohmann::json::parse("[[0, 0, 1.5625], 1562500000]"));
  CHECK(nlohmann::json::parse(text("sailor/communication_cost.json"))["tangram"]["tangram"] == 0);
  CHECK(files.notes.empty());
}
