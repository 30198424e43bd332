// What the file must satisfy before anything in it can be followed.
#include <limits>
#include <string>

#include "findings.hpp"
#include "saturating.hpp"
#include "tangram/model/split.hpp"

namespace tangram::plan {

namespace {

template <class T>
bool inside(std::int64_t index, const std::vector<T>& list) {
  return index >= 0 && index < static_cast<std::int64_t>(list.size());
}

class References {
 public:
  References(const LaunchPlan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  bool hold() {
    require(!plan_.islands.empty() && !plan_.pipelines.empty() && !plan_.stages.empty() && !plan_.ranks.empty(), "plan",
            "a plan has islands, pipelines, stages and ranks");
    require(plan_.pipelined().block_count() > 0, "model", "the model has no blocks");
    islands();
    pipelines();
    stages();
    if (good_) schedules();
    if (good_) encoders();
    if (good_) boundaries();  // boundaries refer to parts of stages
    ranks();
    require(inside(plan_.predicted.bottleneck_stage, plan_.stages), "predicted", "bottleneck_stage is no stage");
    return good_;
  }

 private:
  void require(bool condition, const std::string& where, const std::string& message) {
    if (!condition) refuse("bad-reference", where, message);
  }

  void refuse(const char* code, const std::string& where, const std::string& message) {
    good_ = false;
    findings_.add(code, where, message);
  }

  // Each part of a colocated plan tells of them, and no other.
  void encoders() {
    for (const Stage& stage : plan_.stages) {
      for (std::size_t p = 0; p < stage.parts.size(); ++p) {
        require(stage.parts[p].encoders.has_value() == plan_.colocated.has_value(), at_part(stage.id, p),
                "tells of encoders where they are colocated, and only there");
      }
    }
    if (!plan_.colocated) return;
    const std::string why = model::why_not_split(plan_.model);
    require(why.empty(), "colocated", "the encoders of the model cannot be colocated: " + why);
    if (!why.empty()) return;
    require(plan_.colocated->encoders.size() == model::encoder_ranges(plan_.model).size(), "colocated",
            "lists as many encoders as the model has");
    for (const ColocatedEncoders::Encoder& encoder : plan_.colocated->encoders) {
      require(encoder.layout.tp > 0, "colocated", "tp is positive");
    }
    require(plan_.schedule() == runtime::Schedule::k1F1B, "colocated", "its pipelines run 1F1B");
  }

  void islands() {
    for (std::size_t i = 0; i < plan_.islands.size(); ++i) {
      const auto& island = plan_.islands[i];
      require(island.id == static_cast<int>(i), at_island(island.id), "id is not the position in the list");
      require(island.gpus_per_member > 0 && island.members_per_island > 0, at_island(island.id),
              "members and GPUs per member must be positive");
    }
  }

  void pipelines() {
    for (std::size_t i = 0; i < plan_.pipelines.size(); ++i) {
      const auto& pipeline = plan_.pipelines[i];
      require(pipeline.id == static_cast<int>(i), at_pipeline(pipeline.id), "id is not the position in the list");
      require(!pipeline.stages.empty(), at_pipeline(pipeline.id), "has no stages");
      require(pipeline.microbatch > 0 && pipeline.microbatches > 0 && pipeline.samples > 0, at_pipeline(pipeline.id),
              "samples and microbatches must be positive");
      for (const int stage : pipeline.stages) {
        require(inside(stage, plan_.stages), at_pipeline(pipeline.id),
                "lists stage " + std::to_string(stage) + ", which does not exist");
      }
    }
  }

  void stages() {
    for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
      const auto& stage = plan_.stages[i];
      require(stage.id == static_cast<int>(i), at_stage(stage.id), "id is not the position in the list");
      require(inside(stage.pipeline, plan_.pipelines), at_stage(stage.id), "belongs to no pipeline");
      require(are_chunks(stage), at_stage(stage.id),
              stage.chunks.size() > 1 ? "chunks are not ascending ranges of the model"
                                      : "blocks are not a range of the model");
      require(!stage.parts.empty(), at_stage(stage.id), "has no parts");
      for (std::size_t p = 0; p < stage.parts.size(); ++p) part(stage, p);
    }
  }

  void schedules() {
    chunks();
    put_off();
  }

  /// Under zero bubble some part of backward passes, under other schedules nothing.
  void put_off() {
    if (plan_.is_interleaved() && plan_.zero_bubble) {
      refuse("schedules-mixed", "execution", "model chunks are interleaved, or weight gradients put off, not both");
    }
    if (plan_.zero_bubble && std::ranges::none_of(plan_.stages, &Stage::puts_off)) {
      refuse("put-off-range", "execution", "no stage puts weight gradients off: the plan is one of 1F1B");
    }
    for (const Stage& stage : plan_.stages) {
      if (stage.put_off < 0 || (stage.put_off > 0 && !stage.puts_off())) {
        refuse("put-off-range", at_stage(stage.id), "holds microbatches for weight gradients that it does not put off");
      }
      for (std::size_t p = 0; p < stage.parts.size(); ++p) {
        const PartPrediction& predicted = stage.parts[p].predicted;
        const Nanoseconds most = plan_.zero_bubble ? predicted.backward : Nanoseconds(0);
        if (predicted.weight_gradient >= Nanoseconds(0) && predicted.weight_gradient <= most) continue;
        refuse("put-off-range", at_part(stage.id, p), "what is put off is a part of backward passes");
      }
    }
  }

  /// Of an interleaved schedule every stage has equally many, several, and a time for each; of any other one, without.
  void chunks() {
    const std::size_t count = plan_.chunks();
    if ((count > 1) != plan_.is_interleaved()) {
      refuse("group-refused", "execution",
             plan_.is_interleaved() ? "microbatches go in groups, but a stage has one chunk"
                                    : "stages have several chunks, but nothing says how many microbatches a group has");
    }
    for (const Stage& stage : plan_.stages) {
      if (stage.chunks.size() != count) {
        refuse("chunks-differ", at_stage(stage.id),
               "has " + std::to_string(stage.chunks.size()) + " chunks, the first stage " + std::to_string(count));
      }
      for (std::size_t p = 0; p < stage.parts.size(); ++p) {
        require(stage.parts[p].predicted.chunks.size() == (count > 1 ? stage.chunks.size() : 0), at_part(stage.id, p),
                "times of " + std::to_string(stage.parts[p].predicted.chunks.size()) + " chunks are predicted of " +
                    std::to_string(stage.chunks.size()));
      }
    }
  }

  [[nodiscard]] bool are_chunks(const Stage& stage) const {
    int behind = 0;
    for (const model::BlockRange& chunk : stage.chunks) {
      if (chunk.first < behind || chunk.first >= chunk.last) return false;
      behind = chunk.last;
    }
    return !stage.chunks.empty() && behind <= plan_.pipelined().block_count();
  }

  void part(const Stage& stage, std::size_t index) {
    const auto& part = stage.parts[index];
    const auto& d = part.strategy.degrees;
    const std::string where = at_part(stage.id, index);
    require(inside(part.island, plan_.islands), where, "is on no island");
    const bool positive = d.tp > 0 && d.cp > 0 && d.dp > 0 && d.ep > 0 && d.etp > 0 && d.dp_replicate > 0;
    require(positive && part.samples > 0 && part.members > 0, where, "degrees, samples and members must be positive");
    if (!positive) return;
    const std::int64_t gpus = product(product(d.tp, d.cp), d.dp);
    const bool fits = gpus <= static_cast<std::int64_t>(plan_.ranks.size()) && part.first_rank >= 0 &&
                      part.first_rank + gpus <= static_cast<std::int64_t>(plan_.ranks.size());
    require(fits, where, "its ranks are not in the list of ranks");
    require(part.samples <= std::numeric_limits<int>::max(), where, "too many samples");
  }

  void boundaries() {
    for (const auto& boundary : plan_.boundaries) {
      const bool stages_exist = inside(boundary.from, plan_.stages) && inside(boundary.to, plan_.stages);
      require(stages_exist, at_boundary(boundary), "joins stages that do not exist");
      if (!stages_exist) continue;
      require(inside(boundary.source_part, plan_.stage(boundary.from).parts) &&
                  inside(boundary.target_part, plan_.stage(boundary.to).parts),
              at_boundary(boundary), "its price counts parts that do not exist");
      for (const auto& transfer : boundary.transfers) {
        require(inside(transfer.src, plan_.ranks) && inside(transfer.dst, plan_.ranks), at_boundary(boundary),
                "a transfer names a rank that does not exist");
      }
    }
  }

  void ranks() {
    for (std::size_t i = 0; i < plan_.ranks.size(); ++i) {
      const auto& rank = plan_.ranks[i];
      require(rank.rank == static_cast<int>(i), at_rank(rank.rank), "rank is not the position in the list");
      const bool known = inside(rank.island, plan_.islands) && inside(rank.stage, plan_.stages) &&
                         inside(rank.replica, plan_.pipelines);
      require(known, at_rank(rank.rank), "its island, stage or replica does not exist");
      if (known) {
        require(inside(rank.part, plan_.stage(rank.stage).parts), at_rank(rank.rank), "its part does not exist");
      }
    }
  }

  const LaunchPlan& plan_;
  Findings& findings_;
  bool good_ = true;
};

}  // namespace

bool check_references(const LaunchPlan& plan, Findings& findings) { return References(plan, findings).hold(); }

}  // namespace tangram::plan
