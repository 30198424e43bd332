// What the files of runtimes say, and what is wrong with them.
#include "execution_arguments.hpp"
#include "support/catch.hpp"
#include "tangram/import/job.hpp"

using namespace tangram;
using namespace tangram::importing;

namespace {

const std::string kBatch = "--seq-length 1024 --micro-batch-size 1 --global-batch-size 8\n";

Expected<ReadJob> megatron(const std::string& text) { return read_job(Source::kMegatron, {{"job.sh", text}}); }

std::vector<std::pair<std::int64_t, std::int64_t>> layers(const ReadJob& read) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const JobStage& stage : read.job().pipelines.front().stages) result.emplace_back(stage.first, stage.last);
  return result;
}

using Layers = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The errors of a script with this layout for four stages.
std::string layout_errors(const std::string& layout) {
  const auto read = megatron("--num-layers 12 --pipeline-model-parallel-size 4 " + kBatch +
                             "--pipeline-model-parallel-layout '" + layout + "'\n");
  return read ? "" : read.error().front().message;
}

/// FlagScale's training file with these lines under "system", microbatches of two samples in the first mesh.
Expected<ReadJob> flagscale(const std::string& meshes, const std::string& recompute = "", int global_batch = 8) {
  return read_job(Source::kFlagscale,
                  {{"train.yaml", "system:\n  hetero:\n    enable_hetero: true\n    hetero_process_meshes: " + meshes +
                                      "\n    hetero_pipeline_layer_split: [3, 3, 2]\n" + recompute +
                                      "model:\n  seq_length: 1024\n  micro_batch_size: 2\n  global_batch_size: " +
                                      std::to_string(global_batch) + "\n"}});
}

const std::string kThreeStages = "[2, 1, 1, 2, 2, 1, 1, 1, 4, 1]";

/// Of three stages with this under "recompute".
std::string recompute_error(const std::string& lines) {
  const auto read = flagscale(kThreeStages, "  recompute:\n" + lines);
  return read ? "" : read.error().front().message;
}

}  // namespace

TEST_CASE("a script's quotes, escapes, comments and variables are those of a shell") {
  const auto read = megatron(
      "#!/bin/bash\n# --num-layers 99\nTP=2\nPP=${PP:-2}\nARGS=(\n  --tensor-model-parallel-size \"$TP\" \\\n"
      "  --pipeline-model-parallel-size ${PP}\n  --num-layers=8 # not 9\n  --sequence_parallel\n)\n" +
      kBatch + "torchrun --nproc-per-node 8 pretrain_gpt.py \"${ARGS[@]}\"\n");
  REQUIRE(read);
  CHECK(layers(*read) == Layers{{0, 4}, {4, 8}});
  const JobStage& stage = read->job().pipelines.front().stages.front();
  CHECK(stage.replicas.front().tp == 2);
  CHECK(stage.common.sequence_parallel);
  CHECK(read->overrides().global_batch == 8);
  CHECK(read->overrides().sequence_length == 1024);
}

TEST_CASE("a layout is written out as Megatron-LM does") {
  const auto read = megatron(
      "--num-layers 12 --pipeline-model-parallel-size 4 --pipeline-model-parallel-layout "
      "'Et|(tt|)*2t*7,L' " +
      kBatch);
  REQUIRE(read);
  // E t | t t | t t | t*7 L
  CHECK(layers(*read) == Layers{{0, 1}, {1, 3}, {3, 5}, {5, 12}});
}

TEST_CASE("layouts that Megatron-LM does not read are not read here") {
  CHECK(layout_errors("Et*3|t*3|t*3|t*3,L").empty());
  CHECK(layout_errors("Et*3|t*3|t*3|x,L") == "the layout cannot be read: \"x\" is none of E, t, m, L and |");
  CHECK(layout_errors("E(t|(t|)*2)*2L") == "the layout cannot be read: \"(\" is none of E, t, m, L and |");
  CHECK(layout_errors("E(t|") == "the layout cannot be read: a group is not closed");
  CHECK(layout_errors("Et*|t|t|tL") == "the layout cannot be read: a number has to follow *");
  CHECK(layout_errors("Et*999999999999|t|t|tL") == "the layout cannot be read: a number has to follow *");
  CHECK(layout_errors("Et*99999|t*99999|t|tL") == "the layout cannot be read: it is too long");
  CHECK(layout_errors("t|t|t|tL") == "a layout begins with its only E and ends with its only L");
  CHECK(layout_errors("Et|t|t|t|t|tL") == "the layout has 6 segments for 4 stages");
  CHECK(layout_errors("Et|t|t|t|t|t|t|t*5L").empty());
}

TEST_CASE("an even split counts what the flags say") {
  // 12 layers, 4 in the first stage of 3: the others have (12 - 4) / 2.
  auto read =
      megatron("--num-layers 12 --pipeline-model-parallel-size 3 --decoder-first-pipeline-num-layers 4 " + kBatch);
  REQUIRE(read);
  CHECK(layers(*read) == Layers{{0, 4}, {4, 8}, {8, 12}});
  // 10 layers, embedding and loss as one each: 12 / 4 = 3 a stage, 2 + 3 + 3 + 2.
  read = megatron(
      "--num-layers 10 --pipeline-model-parallel-size 4 --account-for-embedding-in-pipeline-split "
      "--account-for-loss-in-pipeline-split " +
      kBatch);
  REQUIRE(read);
  CHECK(layers(*read) == Layers{{0, 2}, {2, 5}, {5, 8}, {8, 10}});
}

TEST_CASE("mistakes are shown where they are") {
  const auto read = megatron(
      "--num-layers 10 --pipeline-model-parallel-size four\n--micro-batch-size 1\n"
      "  --seq-length $LENGTH --global-batch-size 8\n");
  REQUIRE_FALSE(read);
  CHECK(render(read.error()) ==
        "job.sh:3:16: error: --seq-length is $LENGTH, which the file does not set\n"
        "    --seq-length $LENGTH --global-batch-size 8\n"
        "                 ^~~~~~~\n"
        "  hint: write the number in its place\n"
        "job.sh:1:48: error: --pipeline-model-parallel-size needs a whole number from 1, not \"four\"\n"
        "  --num-layers 10 --pipeline-model-parallel-size four\n"
        "                                                 ^~~~\n");
}

TEST_CASE("layers are dealt out to model chunks as Megatron-LM deals them out") {
  const auto chunks = [](const std::string& words) {
    const auto read = megatron("--num-layers 8 --pipeline-model-parallel-size 2 " + words + " " + kBatch);
    REQUIRE(read);
    std::vector<Layers> result;
    for (const JobStage& stage : read->job().pipelines.front().stages) {
      Layers& layers = result.emplace_back();
      for (const JobLayers& chunk : stage.all_chunks()) layers.emplace_back(chunk.first, chunk.last);
    }
    return result;
  };
  const std::vector<Layers> even{{{0, 2}, {4, 6}}, {{2, 4}, {6, 8}}};
  CHECK(chunks("--num-layers-per-virtual-pipeline-stage 2") == even);
  CHECK(chunks("--num-virtual-stages-per-pipeline-rank 2") == even);
  CHECK(chunks("--pipeline-model-parallel-layout Et|t*3|t|t*3,L") ==
        std::vector<Layers>{{{0, 1}, {4, 5}}, {{1, 4}, {5, 8}}});
  // The embedding counts as a layer of the first chunk: one of nine fewer.
  const auto counted = megatron(
      "--num-layers 7 --pipeline-model-parallel-size 2 --account-for-embedding-in-pipeline-split "
      "--num-virtual-stages-per-pipeline-rank 2 " +
      kBatch);
  REQUIRE(counted);
  CHECK(counted->job().pipelines.front().stages.front().chunks.front().last == 1);
}

TEST_CASE("microbatches pass a chunk in groups of as many as there are stages, or as is said") {
  const std::string words = "--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 ";
  const auto usual = megatron(words + kBatch);
  REQUIRE(usual);
  CHECK(usual->job().pipelines.front().group == 2);
  const auto larger = megatron(words + "--microbatch-group-size-per-virtual-pipeline-stage 4 " + kBatch);
  REQUIRE(larger);
  CHECK(larger->job().pipelines.front().group == 4);
  const auto one_chunk = megatron("--num-layers 8 --pipeline-model-parallel-size 2 " + kBatch);
  REQUIRE(one_chunk);
  CHECK(one_chunk->job().pipelines.front().group == 0);
}

TEST_CASE("chunks that the layers cannot be split into are refused") {
  const auto code = [](const std::string& words) {
    const auto read = megatron(words + " " + kBatch);
    return read ? std::string() : read.error().front().code;
  };
  CHECK(code("--num-layers 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3") ==
        "layers-do-not-divide");
  CHECK(code("--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 3") ==
        "layers-do-not-divide");
  CHECK(code("--num-layers 8 --num-virtual-stages-per-pipeline-rank 2") == "one-stage");
  CHECK(code("--num-layers 8 --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*4|t*2|t*2,L") ==
        "bad-layout");
  CHECK(code("--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 4 "
             "--pipeline-model-parallel-layout Et*2|t*2|t*2|t*2,L") == "contradiction");
  CHECK(code("--num-layers 8 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2 "
             "--decoder-first-pipeline-num-layers 4") == "contradiction");
  CHECK(code("--num-layers 8 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
             "--no-overlap-p2p-communication") == "contradiction");
}

TEST_CASE("a host file and a rank map say which GPU has which rank") {
  const SourceFile job{"job.sh", "--num-layers 4 " + kBatch};
  const auto hosts = read_job(Source::kMegatron, {job, {"hostfile", "# two\nb slots=2\na slots=1 type=X\n"}});
  REQUIRE(hosts);
  REQUIRE(hosts->job().ranks.size() == 3);
  CHECK(hosts->job().ranks[1].host == "b");
  CHECK(hosts->job().ranks[1].gpu == 1);
  CHECK(hosts->job().ranks[2].host == "a");
  const SourceFile map{"rankmap.csv", "rank,host,gpu,pipeline\n0,a,3,0\n1,b,0,1\n"};
  const auto ranks = read_job(Source::kMegatron, {job, map});
  REQUIRE(ranks);
  CHECK(ranks->job().ranks[0].gpu == 3);
  CHECK(ranks->job().pipelines.size() == 2);
  const auto wrong = read_job(Source::kMegatron, {job, {"hostfile", "b slots=2\na slots=none\n"}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().front().where == SourceLocation{"hostfile", 2, 3});
  const auto gap = read_job(Source::kMegatron, {job, {"rankmap.csv", "rank,host,gpu\n0,a,3\n2,b,0\n"}});
  REQUIRE_FALSE(gap);
  CHECK(gap.error().front().message == "rank 1 is next");
}

TEST_CASE("instances of the distributed optimizer are pipelines, or groups in those of the rank map") {
  const SourceFile job{"job.sh",
                       "--num-layers 4 --use-distributed-optimizer --num-distributed-optimizer-instances 2 " + kBatch};
  const auto groups_of = [](const ReadJob& read) {
    return read.job().pipelines.front().stages.front().common.dp_replicate;
  };
  const auto alone = read_job(Source::kMegatron, {job});
  REQUIRE(alone);
  CHECK(alone->job().pipelines.size() == 2);
  CHECK(groups_of(*alone) == 1);
  const auto mapped = read_job(Source::kMegatron, {job, {"rankmap.csv", "rank,host,gpu,pipeline\n0,a,0,0\n1,b,0,0\n"}});
  REQUIRE(mapped);
  CHECK(mapped->job().pipelines.size() == 1);
  CHECK(groups_of(*mapped) == 2);
  const auto odd =
      read_job(Source::kMegatron, {job, {"rankmap.csv", "rank,host,gpu,pipeline\n0,a,0,0\n1,b,0,1\n2,c,0,2\n"}});
  REQUIRE_FALSE(odd);
  CHECK(odd.error().front().message == "2 instances cannot be divided among the 3 pipelines of the rank map");
}

TEST_CASE("a script's execution options are read with all of their values") {
  const auto read = megatron(
      "ARGS=(\n  --num-layers 8 --cuda-graph-impl transformer_engine \n  --cuda-graph-modules attn moe_router "
      "moe_preprocess)\ntorchrun --nproc-per-node 8 train.py --num-layers 8 " +
      kBatch +
      "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep --cp-comm-type a2a "
      "--recompute-granularity selective --recompute-modules layernorm moe_act \\\n mlp --overlap-param-gather "
      "--ddp-bucket-size 134217728 "
      "--fine-grained-activation-offloading --offload-modules core_attn\nmoe_act --tp-comm-overlap\n");
  REQUIRE(read);
  const ExecutionArguments& said = read->job().execution;
  using enum model::GraphModule;
  CHECK(said.cuda_graphs == model::CudaGraphs{kAttention, kRouter});
  CHECK(said.expert_dispatch == model::ExpertDispatch::kHybridEp);
  CHECK(said.context_exchange == model::ContextExchange::kAllToAll);
  CHECK(said.recompute_modules == model::RecomputeModules{model::RecomputeModule::kNorms,
                                                          model::RecomputeModule::kExpertActivation,
                                                          model::RecomputeModule::kFeedForward});
  CHECK(said.offload_modules == model::OffloadModules{model::OffloadModule::kCoreAttention});  // the line ends there
  CHECK(said.overlap_gather);
  CHECK(said.gradient_bucket == 134'217'728);
  CHECK(said.overlap_tp);
  CHECK_FALSE(said.overlap_experts);
  CHECK_FALSE(said.fused_loss);
}

TEST_CASE("the kernels of the loss are read, and unknown ones refused") {
  const auto loss = [](const std::string& words) {
    const auto read = megatron("--num-layers 8 " + kBatch + words + "\n");
    REQUIRE(read);
    return read->job().execution.fused_loss;
  };
  CHECK_FALSE(loss(" --cross-entropy-fusion-impl te"));
  CHECK(loss(" --cross-entropy-loss-fusion") == model::FusedLoss::kNative);
  CHECK(loss(" --cross-entropy-loss-fusion --cross-entropy-fusion-impl te") == model::FusedLoss::kTransformerEngine);
  CHECK_FALSE(megatron("--num-layers 8 " + kBatch + " --cross-entropy-loss-fusion --cross-entropy-fusion-impl no\n"));
}

TEST_CASE("CUDA graphs are read under the names of each Megatron-LM") {
  const auto graphs = [](const std::string& words) {
    const auto read = megatron("--num-layers 8 " + kBatch + words + "\n");
    REQUIRE(read);
    return read->job().execution.cuda_graphs;
  };
  CHECK_FALSE(graphs(""));
  CHECK(graphs("--cuda-graph-impl none") == model::kNoGraphs);
  CHECK(graphs("--cuda-graph-impl full_iteration") == model::kGraphOfStep);
  CHECK(graphs("--cuda-graph-impl local --cuda-graph-scope full_iteration") == model::kGraphOfStep);
  CHECK(graphs("--cuda-graph-impl transformer_engine") == model::kGraphsOfBlocks);
  CHECK(graphs("--external-cuda-graph --cuda-graph-scope attn") == model::CudaGraphs{model::GraphModule::kAttention});
  CHECK(graphs("--enable-cuda-graph") == model::kGraphsOfBlocks);
}

TEST_CASE("what a script says takes the place of the model file's options, where it comes to something else") {
  const auto executed = [](const std::string& training, const std::string& words) {
    const auto model = model::read_model(
        "schema: tangram.model/1\nname: m\narchitecture: {vocabulary: 512, hidden: 256, layers: 8, heads: 4, moe: "
        "{experts: 4, experts_per_token: 1, expert_hidden: 64}}\ntraining: {sequence_length: 1024, "
        "global_batch_samples: 8" +
            training + "}\n",
        "model.yaml");
    REQUIRE(model);
    const auto read = megatron("--num-layers 8 " + kBatch + words + "\n");
    REQUIRE(read);
    return as_executed(*read, *model).job;
  };
  using model::ExpertDispatch;
  CHECK(executed(", cuda_graphs: attn", "").cuda_graphs == model::CudaGraphs{model::GraphModule::kAttention});
  CHECK(executed(", cuda_graphs: attn", "--cuda-graph-impl none").cuda_graphs == model::kNoGraphs);
  // All that the model has of blocks.
  CHECK(executed(", cuda_graphs: blocks",
                 "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router moe_preprocess")
            .cuda_graphs == model::kGraphsOfBlocks);
  using enum model::RecomputeModule;
  const std::string selective = "--recompute-granularity selective";
  CHECK(
      executed("", selective + " --recompute-modules layernorm moe_act").recompute_modules.empty());  // the usual ones
  CHECK(executed("", selective + " --recompute-modules moe_act").recompute_modules ==
        model::RecomputeModules{kExpertActivation});
  CHECK(executed("", selective).recompute_modules == model::RecomputeModules{kCoreAttention});
  CHECK(executed("", "--recompute-activations").recompute_modules == model::RecomputeModules{kCoreAttention});
  // Experts of one rank are not exchanged, whatever the argument.
  const std::string by_deepep = ", expert_dispatch: deepep", all_to_all = "--moe-token-dispatcher-type alltoall";
  CHECK(executed(by_deepep, all_to_all).expert_dispatch == ExpertDispatch::kDeepEp);
  CHECK(executed(by_deepep, all_to_all + " --expert-model-parallel-size 2").expert_dispatch ==
        ExpertDispatch::kAllToAll);
  CHECK(executed(", overlap_parameter_gather: true", "").overlap_gather);
  CHECK(executed("", "--overlap-param-gather").overlap_gather);
}

TEST_CASE("values of execution options that nothing predicts are named, and unknown ones refused") {
  const auto read = megatron("--num-layers 8 " + kBatch + "--moe-token-dispatcher-type allgather\n");
  REQUIRE(read);
  CHECK_FALSE(read->job().execution.expert_dispatch);
  CHECK(read->job().notes.front() ==
        "--moe-token-dispatcher-type allgather is not predicted: what the model file has is taken");
  const auto error = [](const std::string& words) {
    const auto wrong = megatron("--num-layers 8 " + kBatch + words + "\n");
    return wrong ? "" : wrong.error().front().message + ": " + wrong.error().front().hint;
  };
  CHECK(error("--cp-comm-type ring") ==
        "--cp-comm-type has no value \"ring\": one of p2p, all_gather, allgather, a2a, a2a+p2p");
  CHECK(error("--cuda-graph-impl te") ==
        "--cuda-graph-impl has no value \"te\": one of none, local, transformer_engine, full_iteration");
  CHECK(error("--recompute-granularity selective --recompute-modules mlp norm") ==
        "--recompute-modules has no value \"norm\": one of core_attn, layernorm, mla_up_proj, moe_act, mlp, moe, "
        "shared_experts");
}

TEST_CASE("FlagScale's meshes are stages") {
  const std::string head =
      "system:\n  hetero:\n    enable_hetero: true\n    hetero_process_meshes: [2, 1, 1, 2, 2, 1, 1, 1, 4, 1]\n";
  const std::string tail = "model:\n  seq_length: 1024\n  micro_batch_size: 2\n  global_batch_size: 8\n";
  const auto read =
      read_job(Source::kFlagscale, {{"train.yaml", head + "    hetero_pipeline_layer_split: [3, 3, 2]\n" + tail}});
  REQUIRE(read);
  // The first mesh (tp 2, dp 2, two stages) makes microbatches of 2 x 2 samples; the second (dp 4) takes 1 a replica.
  const JobPipeline& pipeline = read->job().pipelines.front();
  CHECK(layers(*read) == Layers{{0, 3}, {3, 6}, {6, 8}});
  CHECK(pipeline.microbatch == 4);
  CHECK(pipeline.microbatches == 2);
  CHECK(pipeline.stages[1].replicas.size() == 2);
  CHECK(pipeline.stages[2].replicas.size() == 4);
  CHECK(pipeline.stages[2].replicas.front().samples == 1);
  const auto wrong =
      read_job(Source::kFlagscale, {{"train.yaml", head + "    hetero_pipeline_layer_split: [3, 3]\n" + tail}});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().front().where == SourceLocation{"train.yaml", 5, 34});
  CHECK(wrong.error().front().message == "2 numbers of layers for 3 stages");
}

TEST_CASE("FlagScale recomputes stage by stage") {
  // Entries are [stages, microbatches, value]: full, not, full; by blocks the first two, evenly the third.
  const auto read = flagscale(kThreeStages,
                              "  recompute:\n"
                              "    recompute_granularity_per_stage_micro_batch: [[1, 2, 1], [1, 2, 0], [1, 2, 1]]\n"
                              "    recompute_method_per_stage_micro_batch: [[2, 2, 1], [1, 2, 0]]\n"
                              "    recompute_num_layers_per_stage_micro_batch: [[3, 1, 2, 1, 2]]\n");
  REQUIRE(read);
  const std::vector<JobStage>& stages = read->job().pipelines.front().stages;
  CHECK(stages[0].policy.recompute == cost::RecomputeMode::kFull);
  CHECK(stages[0].policy.recompute_layers == 2);
  CHECK(stages[1].policy.recompute == cost::RecomputeMode::kNone);
  CHECK(stages[2].policy.recompute_layers == 2);  // all that it has

  const std::string granularity = "    recompute_granularity_per_stage_micro_batch: ";
  CHECK(recompute_error(granularity + "[[3, 2]]\n") == "an entry is [stages, microbatches, value, ...]");
  CHECK(recompute_error(granularity + "[[2, 2, 1]]\n") == "stage 2 has no entry");
  CHECK(recompute_error(granularity + "[[3, 1, 1, 1, 0]]\n") == "microbatches of a stage are recomputed differently");
}

TEST_CASE("FlagScale's batch has to fit its meshes") {
  const auto message = [](const Expected<ReadJob>& read) { return read ? "" : read.error().front().message; };
  CHECK(message(flagscale("[2, 1, 1, 2]")) == "4 numbers are not whole meshes");
  CHECK(message(flagscale("[1, 1, 1, 2000000, 1]")) == "the meshes ask for more than 1,000,000 GPUs");
  CHECK(message(flagscale(kThreeStages, "", 6)) == "6 samples are not whole microbatches of 4");
  CHECK(message(flagscale("[2, 1, 1, 2, 2, 1, 1, 1, 3, 1]")) == "microbatches of 4 samples cannot be split over dp 3");
}
