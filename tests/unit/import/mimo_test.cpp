// Components of Megatron-Bridge MIMO: layouts that its own sweeps run, layouts that it refuses, and the way through an
// export and back.
#include <fmt/format.h>

#include <algorithm>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/export/export.hpp"
#include "tangram/import/import.hpp"
#include "tangram/import/job.hpp"
#include "unit/export/shown.hpp"

using namespace tangram;
using namespace tangram::importing;

namespace {

struct Component {
  int tp, pp, dp, offset;
};

/// Of the language model and one or two encoders, and the microbatch of all replicas.
struct MimoLayout {
  std::vector<Component> modules;
  int microbatch;
};

// examples/megatron_mimo/llava/run_hetero_llava_parallelism_tests.sh and run_hetero_llava_audio_parallelism_tests.sh of
// Megatron-Bridge (2026-08), in their order.
const std::vector<MimoLayout> kSweeps{
    {{{4, 1, 1, 0}, {4, 1, 1, 4}}, 4},
    {{{2, 1, 2, 0}, {2, 1, 2, 4}}, 4},
    {{{2, 2, 1, 0}, {4, 1, 1, 4}}, 4},
    {{{1, 1, 4, 0}, {1, 1, 4, 4}}, 4},
    {{{1, 4, 1, 0}, {4, 1, 1, 4}}, 4},
    {{{1, 4, 1, 0}, {1, 1, 4, 4}}, 4},
    {{{1, 2, 2, 0}, {2, 1, 2, 4}}, 4},
    {{{4, 1, 1, 0}, {1, 1, 4, 4}}, 4},
    {{{2, 2, 1, 0}, {2, 1, 2, 4}}, 4},
    {{{2, 1, 2, 0}, {1, 1, 4, 4}}, 4},
    {{{1, 2, 1, 0}, {2, 1, 3, 2}}, 3},
    {{{2, 1, 1, 0}, {2, 1, 3, 2}}, 3},
    {{{2, 1, 1, 0}, {2, 1, 1, 2}}, 4},
    {{{1, 1, 2, 0}, {1, 1, 2, 2}}, 4},
    {{{1, 1, 1, 0}, {1, 1, 1, 1}}, 4},
    {{{4, 1, 1, 0}, {2, 1, 1, 4}, {2, 1, 1, 6}}, 4},
    {{{4, 1, 1, 0}, {1, 1, 2, 4}, {1, 1, 2, 6}}, 2},
    {{{2, 1, 2, 0}, {1, 1, 2, 4}, {1, 1, 2, 6}}, 2},
    {{{2, 2, 1, 0}, {2, 1, 1, 4}, {2, 1, 1, 6}}, 4},
    {{{1, 4, 1, 0}, {2, 1, 1, 4}, {2, 1, 1, 6}}, 4},
    {{{1, 4, 1, 0}, {1, 1, 2, 4}, {1, 1, 2, 6}}, 2},
    {{{1, 2, 2, 0}, {1, 1, 2, 4}, {1, 1, 2, 6}}, 2},
    {{{2, 1, 1, 0}, {4, 1, 1, 2}, {2, 1, 1, 6}}, 4},
    {{{2, 1, 1, 0}, {2, 1, 1, 2}, {4, 1, 1, 4}}, 4},
    {{{2, 1, 1, 0}, {1, 1, 3, 2}, {1, 1, 3, 5}}, 3},
    {{{2, 1, 1, 0}, {1, 1, 4, 2}, {2, 1, 1, 6}}, 4},
    {{{2, 1, 1, 0}, {1, 1, 2, 2}, {1, 1, 4, 4}}, 4},
    {{{1, 2, 1, 0}, {4, 1, 1, 2}, {2, 1, 1, 6}}, 4},
    {{{1, 2, 1, 0}, {2, 1, 1, 2}, {4, 1, 1, 4}}, 4},
    {{{1, 2, 1, 0}, {1, 1, 3, 2}, {1, 1, 3, 5}}, 3},
    {{{1, 2, 1, 0}, {1, 1, 4, 2}, {2, 1, 1, 6}}, 4},
};

std::string script_of(const MimoLayout& layout) {
  const char* const names[] = {"language", "vision", "audio"};
  std::string text = "MIMO_LANGUAGE_DP=1\npython finetune.py \\\n";
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const Component& c = layout.modules[m];
    text += fmt::format("  --component \"{}=tp={},pp={},cp=1,dp={},rank_offset={}\" \\\n", names[m], c.tp, c.pp, c.dp,
                        c.offset);
  }
  return text + fmt::format("  --seq-length 2048 --micro-batch-size {} --global-batch-size 96\n", layout.microbatch);
}

Expected<ReadJob> read_script(const std::string& text) { return read_job(Source::kMimo, {{"job.sh", text}}); }

/// Codes of what is wrong with these components, one behind the other.
std::string codes(const std::string& components, int microbatch = 4) {
  const auto read = read_script(
      components + fmt::format(" --seq-length 2048 --micro-batch-size {} --global-batch-size 96\n", microbatch));
  std::string all;
  if (read) return all;
  for (const Diagnostic& wrong : read.error()) all += (all.empty() ? "" : " ") + wrong.code;
  return all;
}

cluster::Fleet eight_gpus() {
  auto fleet = cluster::read_fleet(
      R"({"schema": "tangram.cluster/1", "name": "eight", "gpus": {"Big": {"vendor": "acme", "architecture": "big",
          "memory_gib": 80, "memory_bandwidth_gb_s": 1500, "peak_tflops": {"bf16": 300, "fp32": 20},
          "peer_link": {"bandwidth_gb_s": 300, "latency_us": 3}, "pcie": {"bandwidth_gb_s": 32, "latency_us": 5}}},
          "nodes": [{"name": "a", "gpus": [{"type": "Big", "count": 8}],
                     "network": {"bandwidth_gbit_s": 200, "latency_us": 5}}]})",
      "eight.json");
  REQUIRE(fleet);
  return *std::move(fleet);
}

/// 8 layers behind one or two encoders.
model::Model multimodal(std::size_t encoders, const model::JobOverrides& overrides) {
  std::string text =
      "schema: tangram.model/1\nname: m\narchitecture:\n  vocabulary: 32000\n  hidden: 1024\n  layers: 8\n  heads: 16\n"
      "  ffn_hidden: 4096\n  encoders:\n";
  const char* const names[] = {"vision", "audio"};
  for (std::size_t e = 0; e < encoders; ++e) {
    text += fmt::format(
        "    - {{name: {}, hidden: 1024, layers: 4, heads: 16, ffn_hidden: 4096, gated: false, tokens_in: 576, "
        "tokens_out: 144, connector: {{kind: merger, widths: [4096, 1024]}}}}\n",
        names[e]);
  }
  auto model =
      model::read_model(text + "training:\n  sequence_length: 2048\n  global_batch_samples: 96\n", "m.yaml", overrides);
  if (!model) FAIL(render(model.error()));
  return *std::move(model);
}

plan::LaunchPlan imported_plan(const std::vector<SourceFile>& files, std::size_t encoders) {
  const auto read = read_job(Source::kMimo, files);
  if (!read) FAIL(render(read.error()));
  auto imported = make_plan(*read, eight_gpus(), multimodal(encoders, read->overrides()));
  if (!imported) FAIL(render(imported.error()));
  return std::move(imported->plan);
}

std::vector<exporting::File> exported_files(const plan::LaunchPlan& plan) {
  auto made = exporting::export_plan(plan, exporting::Format::kMimo);
  if (!made) FAIL(render(made.error()));
  return std::move(made->files);
}

}  // namespace

TEST_CASE("mimo: the 31 layouts of Megatron-Bridge's sweeps are read, exported, and read back as the same files") {
  REQUIRE(kSweeps.size() == 31);
  for (const MimoLayout& layout : kSweeps) {
    const std::string script = script_of(layout);
    CAPTURE(script);
    const std::size_t encoders = layout.modules.size() - 1;
    const plan::LaunchPlan plan = imported_plan({{"job.sh", script}}, encoders);
    // The first rank of the language model is the one that its component says.
    const plan::Part& language = plan.stage(static_cast<int>(encoders)).parts.front();
    CHECK(plan.rank(language, 0).gpu == layout.modules.front().offset);
    const std::vector<exporting::File> files = exported_files(plan);
    std::vector<SourceFile> again;
    for (const exporting::File& file : files) {
      if (file.path == "arguments.sh" || file.path == "rankmap.csv") again.push_back({file.path, file.text});
    }
    const std::vector<exporting::File> back = exported_files(imported_plan(again, encoders));
    REQUIRE(back.size() == files.size());
    for (std::size_t f = 0; f < files.size(); ++f) {
      CHECK(back[f].path == files[f].path);
      CHECK(back[f].text == files[f].text);
    }
  }
}

TEST_CASE("mimo: components, settings and scripts of a plan with two encoders", "[golden]") {
  const auto sixteenth = kSweeps.begin() + 16;  // two encoders of dp 2 in front of tp 4
  const plan::LaunchPlan plan = imported_plan({{"job.sh", script_of(*sixteenth)}}, 2);
  const std::string now = exporting::example::shown(exporting::export_plan(plan, exporting::Format::kMimo));
  CHECK(now == exporting::example::golden("mimo", now));
}

TEST_CASE("mimo: settings of providers come back, with the layers of unlike stages") {
  const std::string script =
      "--component vision=tp=2,dp=1,rank_offset=4 --component language=tp=2,pp=2,dp=1,rank_offset=0\n"
      "--seq-length 2048 --micro-batch-size 4 --global-batch-size 96\nmimo_settings=(\n"
      "  language.sequence_parallel=True\n  language.pipeline_model_parallel_layout='Et*3|t*5,L'\n"
      "  vision.recompute_granularity=full vision.recompute_method=block vision.recompute_num_layers=4\n)\n";
  const plan::LaunchPlan plan = imported_plan({{"job.sh", script}}, 1);
  CHECK(plan.stage(0).parts.front().strategy.policy.recompute == cost::RecomputeMode::kFull);
  CHECK(plan.stage(1).block_count() == 3);
  CHECK(plan.stage(2).block_count() == 5);
  CHECK(plan.stage(2).parts.front().strategy.degrees.sequence_parallel);
  const auto files = exported_files(plan);
  const std::string& arguments = std::ranges::find(files, "arguments.sh", &exporting::File::path)->text;
  for (const char* line :
       {"  --component 'vision=tp=2,pp=1,cp=1,dp=1,rank_offset=0'\n",
        "  --component 'language=tp=2,pp=2,cp=1,dp=1,rank_offset=2'\n", "  language.sequence_parallel=True\n",
        "  language.pipeline_model_parallel_layout='Et*3|t*5,L'\n", "  vision.recompute_num_layers=4\n"}) {
    CHECK(arguments.find(line) != std::string::npos);
  }
}

TEST_CASE("mimo: arguments of Megatron-LM's examples/mimo, where its providers run the plan") {
  const std::string components =
      "--component vision=tp=1,dp=4,rank_offset=0 --component language=tp=2,pp=2,dp=1,rank_offset=4\n"
      "--seq-length 2048 --micro-batch-size 4 --global-batch-size 96\nmimo_settings=(\n"
      "  language.pipeline_model_parallel_layout='Et*3|t*5,L'\n";
  const auto files =
      exported_files(imported_plan({{"job.sh", components + "  language.sequence_parallel=True\n)\n"}}, 1));
  const auto example = std::ranges::find(files, "example_arguments.sh", &exporting::File::path);
  REQUIRE(example != files.end());
  for (const char* line :
       {"  --encoder-tp 1 --encoder-dp 4 --llm-offset 4\n", "  --llm-tp 2 --llm-cp 1 --llm-pp 2 --llm-dp 1\n",
        "  --seq-length 2048 --micro-batch-size 4 --global-batch-size 96\n",
        "  --pipeline-model-parallel-layout 'Et*3|t*5,L'\n"}) {
    CHECK(example->text.find(line) != std::string::npos);
  }
  const auto without = exported_files(imported_plan({{"job.sh", components + ")\n"}}, 1));
  CHECK(std::ranges::find(without, "example_arguments.sh", &exporting::File::path) == without.end());
}

TEST_CASE("mimo: what Megatron-Bridge or its communicators refuse is refused, by the same reason") {
  const std::string language = "--component language=tp=2,dp=2,rank_offset=0 ";
  CHECK(codes(language + "--component vision=tp=2,dp=2,rank_offset=4").empty());
  CHECK(codes(language + "--component vision=tp=3,dp=1,rank_offset=4") == "tp-no-power");
  CHECK(codes(language + "--component vision=tp=2,dp=2,rank_offset=5") == "ranks-missing");
  CHECK(codes(language + "--component vision=tp=2,dp=2,rank_offset=3") == "ranks-overlap");
  CHECK(codes(language + "--component vision=tp=2,dp=2,rank_offset=0") == "ranks-overlap");  // colocated
  CHECK(codes(language + "--component vision=tp=1,dp=3,rank_offset=4", 6) == "dp-does-not-divide");
  CHECK(codes("--component language=tp=2,dp=1,rank_offset=0 --component vision=tp=1,dp=3,rank_offset=2", 3).empty());
  CHECK(codes(language + "--component vision=tp=1,etp=2,dp=2,rank_offset=4") == "encoder-experts");
  CHECK(codes("--component language=tp=1,etp=3,dp=2,rank_offset=0 --component vision=tp=1,dp=2,rank_offset=2") ==
        "experts-do-not-divide");
  CHECK(codes(language + "--component vision=tp=1,dp=4,rank_offset=4", 2) == "microbatch-does-not-divide");
  CHECK(codes(language + "--component vision=tp=2,dp=2,rank_offset=4", 10) == "batch-does-not-divide");
  CHECK(codes(language + "--component vision=tp=2,rank_offset=4") == "missing-dp");
  CHECK(codes("--component vision=tp=2,dp=2,rank_offset=0") == "no-language");
  CHECK(codes(language + "--component language=tp=2,dp=2,rank_offset=4") == "component-twice");
  CHECK(codes(language + "--component vision=tp=2,ep=2,dp=2,rank_offset=4") == "bad-component");
  // The configuration lets these pass, and the communicators refuse them.
  CHECK(codes(language + "--component vision=tp=1,cp=2,dp=2,rank_offset=4") == "context-parallel");
  CHECK(codes(language + "--component vision=tp=1,pp=2,dp=2,rank_offset=4") == "encoder-pipeline");
}

TEST_CASE("mimo: a component that the model does not have is shown where it is") {
  const auto read = read_script(
      "--component language=tp=2,dp=2,rank_offset=0 --component images=tp=2,dp=2,rank_offset=4\n"
      "--seq-length 2048 --micro-batch-size 4 --global-batch-size 96\n");
  REQUIRE(read);
  const auto made = make_plan(*read, eight_gpus(), multimodal(1, read->overrides()));
  REQUIRE_FALSE(made);
  CHECK(made.error().front().code == "unknown-module");
  CHECK(made.error().front().where.column == 58);
  CHECK(made.error().front().hint == "its modules: vision, language");
}
