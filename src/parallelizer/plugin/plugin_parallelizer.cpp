#include <fmt/format.h>

#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include "question.hpp"
#include "recheck.hpp"
#include "tangram/parallelizer/plugin.hpp"

namespace tangram::parallelizer {
namespace {

bool is_power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

/// Why the plugin need not be asked: it said that it cannot answer. Empty: it can.
std::string beyond(const Capabilities& can, const cluster::DeviceShape& shape) {
  if (can.powers_of_two && !(is_power_of_two(shape.nodes) && is_power_of_two(shape.per_node))) {
    return fmt::format("{} x {} GPUs: it plans powers of two alone", shape.nodes, shape.per_node);
  }
  if (shape.gpus() > can.max_gpus) return fmt::format("{} GPUs: it plans at most {}", shape.gpus(), can.max_gpus);
  if (shape.nodes > can.max_nodes) return fmt::format("{} nodes: it plans at most {}", shape.nodes, can.max_nodes);
  return "";
}

class PluginParallelizer final : public Parallelizer {
 public:
  PluginParallelizer(std::string name, std::unique_ptr<AnswerSource> source, const model::Model& model,
                     const cost::ProfileSet* profiles)
      : source_(std::move(source)), writer_(model, profiles), recheck_(model, profiles, name) {
    info_.name = std::move(name);
    info_.version = source_->plugin() ? source_->plugin()->version : "?";
    info_.deterministic = source_->plugin() ? source_->plugin()->deterministic : true;
    info_.built_in = false;
    info_.identity = source_->identity();
  }

  [[nodiscard]] const ParallelizerInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<Outcome> solve(std::span<const Query> queries) const override {
    const std::lock_guard lock(mutex_);
    std::vector<Outcome> outcomes(queries.size());
    std::vector<Question> questions;
    std::vector<std::size_t> owners;
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (std::string why = why_not_asked(queries[i]); !why.empty()) {
        outcomes[i].status = OutcomeStatus::kUnsupported;
        outcomes[i].message = std::move(why);
        continue;
      }
      questions.push_back(writer_.write(queries[i]));
      owners.push_back(i);
    }
    const std::vector<Answer> answers = source_->ask(questions, {});
    for (std::size_t i = 0; i < owners.size(); ++i) {
      outcomes[owners[i]] = recheck_.judge(queries[owners[i]], answers[i]);
    }
    return outcomes;
  }

 private:
  [[nodiscard]] std::string why_not_asked(const Query& query) const {
    return source_->plugin() ? beyond(source_->plugin()->capabilities, query.shape) : std::string();
  }

  ParallelizerInfo info_;
  mutable std::mutex mutex_;  ///< guards the two below: callers take turns
  std::unique_ptr<AnswerSource> source_;
  mutable QuestionWriter writer_;
  Recheck recheck_;
};

}  // namespace

std::unique_ptr<Parallelizer> make_plugin_parallelizer(std::string name, std::unique_ptr<AnswerSource> source,
                                                       const model::Model& model, const cost::ProfileSet* profiles) {
  return std::make_unique<PluginParallelizer>(std::move(name), std::move(source), model, profiles);
}

}  // namespace tangram::parallelizer
