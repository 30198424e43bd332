// What is still to be asked of one batch of questions, and when to stop. Goes in: answers and failures, in any order.
// Comes out: the next question, and in the end one answer each that does not depend on that order.
//
// A plugin is given up at the failure, counted in the order of questions, that exceeds the tolerance: questions after
// it count as not asked, even if answers came. Which questions fail is the plugin's doing; how many workers there are
// and who was faster is not, and therefore decides nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "tangram/parallelizer/answers.hpp"

namespace tangram::parallelizer {

/// Failed questions after which a plugin is not asked any more: this many are forgiven.
inline constexpr std::size_t kForgiven = 2;
/// A worker that ends or talks nonsense is replaced, and its question asked once more, alone.
inline constexpr int kTries = 2;

class Batch {
 public:
  /// `failed_before`: failures of earlier batches. `came` is told of every answer.
  Batch(std::span<const Question> questions, std::size_t failed_before, AnswerCallback came = {});

  [[nodiscard]] bool has_next() const { return !waiting_.empty() && *waiting_.begin() <= cutoff(); }
  [[nodiscard]] std::size_t take_next();
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::size_t asked() const { return asked_.size(); }
  [[nodiscard]] const Question& question(std::size_t index) const { return questions_[index]; }
  /// Nothing that matters is waiting or asked.
  [[nodiscard]] bool done() const;
  /// The answer to an asked question is of no use any more.
  [[nodiscard]] bool is_moot(std::size_t index) const { return index > cutoff(); }

  void answer(std::size_t index, std::string body);
  /// Asks again where another try may help, else the question has failed.
  void fail(std::size_t index, Failure failure);
  /// Every question without an answer has failed.
  void fail_all(const Failure& failure);

  [[nodiscard]] std::size_t answered() const { return answered_; }
  [[nodiscard]] std::size_t failures() const { return failed_.size(); }
  [[nodiscard]] std::vector<Answer> take_answers();

 private:
  [[nodiscard]] std::size_t cutoff() const;  ///< last question that counts

  std::span<const Question> questions_;
  AnswerCallback came_;
  std::size_t forgiven_;
  std::vector<std::optional<Answer>> answers_;
  std::vector<int> tries_;
  std::set<std::size_t> waiting_;
  std::set<std::size_t> asked_;
  std::set<std::size_t> failed_;
  std::size_t answered_ = 0;
};

}  // namespace tangram::parallelizer
