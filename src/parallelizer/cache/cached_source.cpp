#include <nlohmann/json.hpp>
#include <utility>

#include "../plugin/batch.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/parallelizer/answer_cache.hpp"

namespace tangram::parallelizer {
namespace {

/// Whether it holds the next time, too: plans, or that there are none. Errors of the plugin itself may be mended.
bool lasts(const std::string& body) {
  const auto said = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object() || !said.contains("type")) return false;
  if (said["type"] == "result") return said.contains("plans") && said["plans"].is_array();
  return said["type"] == "error" && said.contains("code") &&
         (said["code"] == "infeasible" || said["code"] == "unsupported");
}

Diagnostics never_asked(const PluginSpec& spec) {
  return {problem(ErrorKind::kPlugin, "not-cached",
                  spec.name + " as it is now was never asked anything that the cache holds",
                  "plan once without --offline: that fills the cache")};
}

class CachedSource final : public AnswerSource {
 public:
  /// Without `source` the cache is all there is.
  CachedSource(const PluginSpec& spec, std::unique_ptr<AnswerSource> source, AnswerCache& cache)
      : source_(std::move(source)), cache_(cache), plugin_(fail(never_asked(spec))) {
    if (source_ != nullptr) {
      plugin_ = source_->plugin();
    } else if (auto remembered = cache_.remembered(content_digest(spec))) {
      plugin_ = std::move(*remembered);
    }
    if (plugin_) identity_ = cache_.introduce(spec, *plugin_);
  }

  [[nodiscard]] const Expected<PluginInfo>& plugin() const override { return plugin_; }
  [[nodiscard]] std::string identity() const override { return identity_; }

  [[nodiscard]] std::vector<Answer> ask(std::span<const Question> questions, const AnswerCallback& came) override {
    if (!plugin_) return ask_source(questions, came);
    std::vector<std::optional<std::string>> found = cache_.find(identity_, questions);
    std::vector<Answer> answers(questions.size());
    std::vector<Question> missed;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (std::optional<std::string>& known = found[i]) {
        answers[i].body = *std::move(known);
        if (came) came(i, answers[i].body);
      } else {
        missed.push_back(questions[i]);
        places.push_back(i);
      }
    }
    if (missed.empty() && failures_ <= kForgiven) return answers;
    std::vector<Answer> fresh = ask_source(missed, [&](std::size_t index, const std::string& body) {
      if (lasts(body)) cache_.keep(identity_, missed[index], body);
      if (came) came(places[index], body);
    });
    for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(fresh[i]);
    if (source_ != nullptr) give_up(answers);
    cache_.trim();
    return answers;
  }

 private:
  std::vector<Answer> ask_source(std::span<const Question> questions, const AnswerCallback& came) {
    if (source_ != nullptr) return source_->ask(questions, came);
    const std::string why = plugin_ ? "the cache has no answer to it" : plugin_.error().front().message;
    return std::vector<Answer>(questions.size(), Answer{{}, Failure{FailureKind::kNotCached, why, ""}});
  }

  /// As without a cache: what comes after the failure that exceeds the tolerance (batch.hpp) counts as not asked.
  void give_up(std::vector<Answer>& answers) {
    for (Answer& answer : answers) {
      if (answer.failure) {
        ++failures_;
      } else if (failures_ > kForgiven) {
        answer = {{}, Failure{FailureKind::kGivenUp, "not asked any more after other failures", ""}};
      }
    }
  }

  std::unique_ptr<AnswerSource> source_;
  AnswerCache& cache_;
  Expected<PluginInfo> plugin_;
  std::string identity_;
  std::size_t failures_ = 0;  ///< of all batches
};

}  // namespace

std::unique_ptr<AnswerSource> make_cached_source(const PluginSpec& spec, std::unique_ptr<AnswerSource> source,
                                                 AnswerCache& cache) {
  return std::make_unique<CachedSource>(spec, std::move(source), cache);
}

std::unique_ptr<AnswerSource> make_offline_source(const PluginSpec& spec, AnswerCache& cache) {
  return std::make_unique<CachedSource>(spec, nullptr, cache);
}

}  // namespace tangram::parallelizer
