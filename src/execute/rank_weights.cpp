// Which groups a rank belongs to and which weights it holds, from the degrees of its part and its coordinates. Groups
// are made from the order of ranks, as runtimes make them (tp fastest, then cp, then dp; of experts expert-tp, then
// ep); slices from the coordinates the plan wrote. Where the two disagree, numbers come out wrong.
#include <algorithm>
#include <functional>
#include <limits>

#include "rank.hpp"
#include "weight_layout.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

std::string label(const JobStage& stage, const JobPart& part) {
  std::string text = "stage " + std::to_string(stage.id);
  if (stage.parts.size() > 1) text += " part " + std::to_string(&part - stage.parts.data());
  return text;
}

}  // namespace

void RankProgram::find_groups() {
  const cost::Degrees& d = part_.degrees;
  const int index = place_.rank - part_.first_rank;
  const std::string where = label(stage_, part_);
  const auto group = [&](const std::string& what, const std::function<bool(int)>& belongs) {
    std::vector<int> members;
    for (int i = 0; i < d.gpus(); ++i) {
      if (belongs(i)) members.push_back(part_.first_rank + i);
    }
    return place_.ranks.group(what + " of " + where, std::move(members));
  };
  const int expert_ranks = d.ep * d.etp;
  place_.tensor = group("tp", [&](int i) { return i / d.tp == index / d.tp; });
  place_.context =
      group("cp", [&](int i) { return i % d.tp == index % d.tp && i / (d.tp * d.cp) == index / (d.tp * d.cp); });
  place_.experts = group("ep", [&](int i) { return i / expert_ranks == index / expert_ranks; });
  // Ranks with the same piece are `stride` apart; so many of them in a row share its shards.
  const auto copies = [&](const std::string& what, int stride, int replicas) {
    Copies found;
    found.all = found.shards = group(what, [&](int i) { return i % stride == index % stride; });
    const int span = d.gpus() / replicas;
    if (replicas > 1) {
      found.shards =
          group("sharding " + what, [&](int i) { return i % stride == index % stride && i / span == index / span; });
    }
    found.replicas = group("replicated " + what, [&](int i) { return i % span == index % span; });
    return found;
  };
  copies_ = copies("dp x cp", d.tp, d.dp_replicate);
  expert_copies_ = copies("expert dp", expert_ranks, d.expert_replicate());
}

void RankProgram::make_weights() {
  constexpr int kPerBlock = 10'000;  // more weights than a block has
  constexpr const char* kTable = "token table";
  const SmallModel& model = job_.model;
  WeightLayout layout{place_, model, copies_, expert_copies_, parameters_, stage_.puts_off};
  layout.zero = part_.zero_of_ends;
  if (stage_.embedding) {
    layout.list = &embedding_list_;
    layout.trained = model.trained_ends;
    embedding_.tokens = layout.table(kTable);
    if (model.encoder_blocks > 0) {
      layout.trained = model.trained_patches;
      embedding_.patches = layout.table("patch table");
      layout.trained = model.trained_ends;
    }
    embedding_.positions = layout.positions("position table");
  }
  std::size_t position = 0;
  for (const Range& chunk : stage_.chunks) {
    for (int b = chunk.first; b < chunk.last; ++b) {
      const SmallBlock& shape = at(model.blocks, b);
      layout.order = (b + 1) * kPerBlock;
      blocks_.push_back(layout.block("block " + std::to_string(shape.index), shape, part_.blocks[position++]));
    }
  }
  if (!stage_.head) return;
  layout.zero = part_.zero_of_ends;
  layout.trained = model.trained_ends;
  layout.list = &head_list_;
  if (model.tied && stage_.embedding) {
    head_.table = embedding_.tokens;
    head_list_.push_back(head_.table);
  } else {
    layout.order = model.tied ? 0 : std::numeric_limits<int>::max() - 1;
    head_.table = layout.table(model.tied ? kTable : "output table");
  }
  layout.order = std::numeric_limits<int>::max() - 2;
  head_.norm = layout.norm("last norm");
}

}  // namespace tangram::execute
