// What lies between queries and workers. Goes in: questions as canonical text, and materials (models, shapes) they
// refer to by digest. Comes out: for each the text of the answer, or why there is none. A cache is one more
// AnswerSource in front of another: the body of a question with the plugin's identity is its key.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

/// What questions refer to, sent once to each worker.
struct Material {
  std::string digest;
  std::string members;  ///< JSON members without braces: "\"model\":{...}"
};

struct Question {
  std::string body;  ///< JSON members without braces, canonical: equal text, equal question
  std::vector<std::shared_ptr<const Material>> materials;
};

struct Answer {
  std::string body;  ///< the message as the plugin wrote it: a result or an error; empty with a failure
  std::optional<Failure> failure;
};

struct PluginInfo;

/// Told of each answer as soon as it comes, in whatever order: the question's index and the answer's body.
using AnswerCallback = std::function<void(std::size_t, const std::string&)>;

class AnswerSource {
 public:
  virtual ~AnswerSource() = default;
  /// What the plugin said of itself, or a failure when it never did.
  [[nodiscard]] virtual const Expected<PluginInfo>& plugin() const = 0;
  /// Another where the answers may be; empty: nobody can tell.
  [[nodiscard]] virtual std::string identity() const { return {}; }
  /// One answer per question, in the same order; does not depend on how many workers there are. `came` may be empty.
  [[nodiscard]] virtual std::vector<Answer> ask(std::span<const Question> questions, const AnswerCallback& came) = 0;
};

}  // namespace tangram::parallelizer
