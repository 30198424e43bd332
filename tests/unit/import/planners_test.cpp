// What plans of other planners say, and what is wrong with them.
#include <algorithm>

#include "support/catch.hpp"
#include "tangram/import/job.hpp"

using namespace tangram;
using namespace tangram::importing;

namespace {

Expected<ReadJob> read(Source source, const std::string& text, std::int64_t rank = 1) {
  return read_job(source, {{"plan", text}}, rank);
}

std::string first_error(const Expected<ReadJob>& job) { return job ? "" : render(job.error().front()); }

/// A copy with the first `what` replaced.
std::string with(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

bool has_note(const ReadJob& read, const std::string& part) {
  return std::ranges::any_of(read.job().notes, [&](const std::string& note) { return note.find(part) != note.npos; });
}

// Two stages of two replicas: V100 with tp 4 and A100 with tp 1, then two A100. A model of four blocks.
const std::string kSailor =
    "{\"pipeline_list\": [{\"num_stages\": 2, \"layers_per_stage\": [[0, 1, 2], [3, 4, 5]],\n"
    "  \"tmp_per_stage\": [[[[[\"V100-16\", 2, \"a\"], [\"V100-16\", 2, \"a\"]], 4], [[[\"A100-40\", 1, \"a\"]], 1]],\n"
    "    [[[[\"A100-40\", 1, \"a\"]], 1], [[[\"A100-40\", 1, \"b\"]], 1]]], \"dp\": [2, 2]}],\n"
    " \"mbs\": 2, \"gbs\": 64}\n";

const std::string kGalvatron =
    "{\"pp_deg\": 2,\n \"tp_sizes_enc\": \"2,2,4,4\", \"tp_consecutive_flags\": \"1,1,1,1\",\n"
    " \"dp_types_enc\": \"0,0,1,1\",\n \"checkpoint\": \"1,0,0,1\", \"global_bsz\": 32, \"chunks\": 4,\n"
    " \"pp_division\": \"2,2\", \"pipeline_type\": \"pipedream_flush\", \"default_dp_type\": \"zero2\"}\n";

const std::string kFlashflex =
    "{\"hetero_configs\": [[2, 1], [1]], \"layer_partitions\": [[3, 1], [4]],\n"
    " \"devices_id\": [[[0, 0], [1]], [[2]]], \"global_bsz_size\": [12, 4], \"chunks\": [6, 4]}\n";

const std::string kMetis =
    "inter_stage_plan: InterStagePlan(ns_idx=0, num_stage=1, batches=4, gbs=48)\n"
    "rank, cost, node_sequence, device_groups, strategies(dp_deg, tp_deg), batches(number of batch), layer_partition\n"
    "1, 2500.5, (<DeviceType.T4: 't4'>, <DeviceType.A100: 'a100'>), [2, 6], [(2, 1), (3, 2)], 4, [0, 2, 6]\n"
    "2, 2600, [<DeviceType.A100: 'a100'>,], [8], [[4, 2]], 8, [0, 6]\n";

}  // namespace

TEST_CASE("Sailor's replicas have GPU types and a tp of their own") {
  const auto job = read(Source::kSailor, kSailor);
  REQUIRE(job);
  const JobPipeline& pipeline = job->job().pipelines.front();
  REQUIRE(pipeline.stages.size() == 2);
  CHECK(job->job().counts_ends);
  CHECK(pipeline.stages[0].first == 0);
  CHECK(pipeline.stages[0].last == 3);
  CHECK(pipeline.stages[1].last == 6);
  const Replica& wide = pipeline.stages[0].replicas.front();
  CHECK(wide.tp == 4);
  CHECK(wide.samples == 2);
  REQUIRE(wide.gpus.size() == 4);
  CHECK(wide.gpus.back().device == "V100-16");
  CHECK(job->overrides().global_batch == 64);
  CHECK(has_note(*job, "2 zones"));
}

TEST_CASE("what Sailor's planner writes is read, one result of a list by its rank") {
  const std::string result = with(with(kSailor, "pipeline_list", "pipelines"), ", \"gbs\": 64", "");
  const std::string list = "[{\"estimated_throughput\": 0.5, \"plan\": " + result +
                           "},\n {\"plan\": " + with(result, "\"mbs\": 2", "\"mbs\": 3") + "}]";
  const auto second = read(Source::kSailor, list, 2);
  REQUIRE(second);
  CHECK(second->job().pipelines.front().stages[0].replicas[0].samples == 3);
  CHECK_FALSE(second->overrides().global_batch);
  const auto first = read(Source::kSailor, list);
  REQUIRE(first);
  CHECK(first->job().claimed_seconds == 2);  // half an iteration a second
  CHECK(read(Source::kSailor, list, 3).error().front().code == "no-such-rank");
}

TEST_CASE("mistakes in Sailor's plans are shown where they are") {
  CHECK(first_error(read(Source::kSailor, with(kSailor, "[3, 4, 5]", "[3, 5]"))) ==
        "plan:1:74: error: layer 5 follows layer 3 in a stage\n"
        "  {\"pipeline_list\": [{\"num_stages\": 2, \"layers_per_stage\": [[0, 1, 2], [3, 5]],\n"
        "                                                                           ^\n"
        "  hint: a stage of a launch plan is one run of layers\n");
  CHECK(read(Source::kSailor, with(kSailor, "], 4]", "], 8]")).error().front().message == "4 GPUs for tp 8");
  CHECK(read(Source::kSailor, with(kSailor, "\"mbs\": 2, ", "")).error().front().message == "\"mbs\" is missing");
  CHECK(read(Source::kSailor, with(kSailor, "\"V100-16\", 2", "\"V100-16\", 0")).error().front().code == "not-a-count");
  CHECK(read(Source::kSailor, with(kSailor, "[\"A100-40\", 1, \"a\"]", "[\"A100-40\"]")).error().front().code ==
        "wrong-type");
  CHECK(read(Source::kSailor, "[]").error().front().code == "no-such-rank");
  CHECK(read(Source::kSailor, "{").error().front().where.file == "plan");
}

TEST_CASE("Galvatron's layers become stages") {
  const auto job = read(Source::kGalvatron, kGalvatron);
  REQUIRE(job);
  const JobPipeline& pipeline = job->job().pipelines.front();
  REQUIRE(pipeline.stages.size() == 2);
  CHECK(job->job().takes_all);
  CHECK(pipeline.microbatches == 4);
  CHECK(pipeline.stages[0].policy.zero == 2);  // what default_dp_type says
  CHECK(pipeline.stages[0].policy.recompute_layers == 1);
  CHECK(pipeline.stages[1].policy.zero == 3);
  CHECK(pipeline.stages[1].replicas.front().tp == 4);
  CHECK(pipeline.stages[1].last == 4);
  CHECK(has_note(*job, "stage 1 recomputes 1 layers that are not its first"));
}

TEST_CASE("what a launch plan has no words for is refused in Galvatron's strategies") {
  CHECK(first_error(read(Source::kGalvatron, with(kGalvatron, "2,2,4,4", "2,4,4,4"))) ==
        "plan:2:21: error: tp_sizes_enc is 4 for layer 1 and 2 for layer 0 of the same stage\n"
        "   \"tp_sizes_enc\": \"2,4,4,4\", \"tp_consecutive_flags\": \"1,1,1,1\",\n"
        "                      ^\n"
        "  hint: a stage of a launch plan treats its layers alike\n");
  const auto code = [](const std::string& what, const std::string& by) {
    const auto job = read(Source::kGalvatron, with(kGalvatron, what, by));
    return job ? std::string() : job.error().front().code;
  };
  CHECK(code("pipedream_flush", "gpipe") == "other-schedule");
  CHECK(code("\"1,1,1,1\"", "\"1,1,0,1\"") == "rank-order");
  CHECK(code("\"chunks\": 4", "\"chunks\": 4, \"use_sp\": \"0,0,0,1\"") == "ulysses");
  CHECK(code("\"2,2\"", "\"2,1\"") == "layers-differ");
  CHECK(code("\"2,2\"", "\"4\"") == "wrong-length");
  CHECK(code("\"1,0,0,1\"", "\"1,0,0\"") == "wrong-length");
  CHECK(code("2,2,4,4", "2,2,four,4") == "not-a-count");
  CHECK(code("2,2,4,4", "2,2,4,") == "not-a-count");
  CHECK(code("zero2", "zero1") == "unknown-value");
  CHECK(code("\"pp_deg\": 2,", "") == "missing-key");
}

TEST_CASE("FlashFlex' pipelines have batches of their own") {
  const auto job = read(Source::kFlashflex, kFlashflex);
  REQUIRE(job);
  REQUIRE(job->job().pipelines.size() == 2);
  const JobPipeline& first = job->job().pipelines[0];
  CHECK(first.microbatch == 2);  // 12 samples in 6 chunks
  CHECK(first.microbatches == 6);
  CHECK(first.stages[0].replicas.front().tp == 2);
  CHECK(first.stages[1].first == 3);
  CHECK(first.stages[1].replicas.front().gpus.front().node == 1);
  CHECK(job->job().pipelines[1].microbatch == 1);
  CHECK(job->overrides().global_batch == 16);
  CHECK(job->overrides().sequence_length == 4096);
}

TEST_CASE("mistakes in FlashFlex' layouts are shown where they are") {
  CHECK(first_error(read(Source::kFlashflex, with(kFlashflex, "[0, 0]", "[0]"))) ==
        "plan:2:18: error: machines of 1 GPUs for tp 2\n"
        "   \"devices_id\": [[[0], [1]], [[2]]], \"global_bsz_size\": [12, 4], \"chunks\": [6, 4]}\n"
        "                   ^\n");
  const auto code = [](const std::string& what, const std::string& by) {
    const auto job = read(Source::kFlashflex, with(kFlashflex, what, by));
    return job ? std::string() : job.error().front().code;
  };
  CHECK(code("[3, 1], [4]", "[3], [4]") == "wrong-length");
  CHECK(code("[3, 1], [4]", "[3, 1]") == "wrong-length");
  CHECK(code("[6, 4]", "[5, 4]") == "batch-does-not-divide");
  CHECK(code(", \"chunks\": [6, 4]", "") == "missing-key");
  CHECK(code("[[2, 1], [1]]", "[[2, 0], [1]]") == "not-a-count");
  CHECK(code("[[2, 1], [1]]", "2") == "wrong-type");
}

TEST_CASE("a line of Metis' list is a plan") {
  const auto job = read(Source::kMetis, kMetis);
  REQUIRE(job);
  const JobPipeline& pipeline = job->job().pipelines.front();
  REQUIRE(pipeline.stages.size() == 2);
  CHECK(job->job().device_order.size() == 2);
  CHECK(job->job().device_order[0].name == "T4");
  CHECK(job->job().claimed_seconds == 2.5005);  // from milliseconds
  CHECK(pipeline.microbatches == 4);
  CHECK(job->overrides().global_batch == 48);  // of the log before
  CHECK(pipeline.stages[0].last == 2);
  CHECK(pipeline.stages[1].replicas.size() == 3);
  CHECK(pipeline.stages[1].replicas.front().gpus.size() == 2);
  CHECK(pipeline.stages[1].by_speed);
  const auto second = read(Source::kMetis, kMetis, 2);
  REQUIRE(second);
  CHECK(second->job().pipelines.front().stages.front().replicas.size() == 4);
  CHECK(second->job().device_order.size() == 1);
}

TEST_CASE("mistakes in Metis' lines are shown where they are") {
  CHECK(first_error(read(Source::kMetis, "1, 25, (<DeviceType.T4: 't4'>), [2], [(2 1)], 4, [0, 6]\n")) ==
        "plan:1:42: error: a comma or the end of the list was expected\n"
        "  1, 25, (<DeviceType.T4: 't4'>), [2], [(2 1)], 4, [0, 6]\n"
        "                                           ^\n"
        "  hint: rank, cost, (GPU types), [GPUs], [(dp, tp)], microbatches, [bounds of layers]\n");
  const auto code = [](const std::string& line) {
    const auto job = read(Source::kMetis, line);
    return job ? std::string() : job.error().front().code;
  };
  CHECK(code("1, 25, (<DeviceType.T4: 't4'>), [2], [(2, 1)], 4, [0, 6]").empty());
  CHECK(code("1, 25, (<DeviceType.T4: 't4'>), [2], [(2, 2)], 4, [0, 6]") == "strategy-differs");
  CHECK(code("1, 25, (<DeviceType.T4: 't4'>), [2, 2], [(2, 1)], 4, [0, 6]") == "wrong-length");
  CHECK(code("1, 25, (<DeviceType.T4: 't4'>), [2], [(2, 1)], 4, [6]") == "wrong-length");
  CHECK(code("1, nan, (<DeviceType.T4: 't4'>), [2], [(2, 1)], 4, [0, 6]") == "bad-metis-line");
  CHECK(code("1, 25, (<DeviceType.T4: 't4'>), [2], [(2, 1)], 0, [0, 6]") == "bad-metis-line");
  CHECK(code("1, 25, (<DeviceType.T4") == "bad-metis-line");
  CHECK(code("1, 25") == "bad-metis-line");
  CHECK(code("no list") == "no-such-rank");
  CHECK(code("") == "no-such-rank");
}
