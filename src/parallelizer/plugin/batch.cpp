#include "batch.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace tangram::parallelizer {
namespace {

bool may_be_tried_again(FailureKind kind) { return kind == FailureKind::kCrashed || kind == FailureKind::kProtocol; }

}  // namespace

Batch::Batch(std::span<const Question> questions, std::size_t failed_before, AnswerCallback came)
    : questions_(questions),
      came_(std::move(came)),
      forgiven_(kForgiven - std::min(kForgiven, failed_before)),
      answers_(questions.size()),
      tries_(questions.size(), 0) {
  for (std::size_t i = 0; i < questions.size(); ++i) waiting_.insert(waiting_.end(), i);
}

std::size_t Batch::take_next() {
  const std::size_t index = *waiting_.begin();
  waiting_.erase(waiting_.begin());
  asked_.insert(index);
  ++tries_[index];
  return index;
}

bool Batch::done() const {
  const bool waits = has_next();
  const bool open = !asked_.empty() && *asked_.begin() <= cutoff();
  return !waits && !open;
}

void Batch::answer(std::size_t index, std::string body) {
  asked_.erase(index);
  if (came_) came_(index, body);
  answers_[index] = Answer{std::move(body), std::nullopt};
  ++answered_;
}

void Batch::fail(std::size_t index, Failure failure) {
  asked_.erase(index);
  if (may_be_tried_again(failure.kind) && tries_[index] < kTries) {
    waiting_.insert(index);
    return;
  }
  answers_[index] = Answer{{}, std::move(failure)};
  failed_.insert(index);
}

void Batch::fail_all(const Failure& failure) {
  for (const auto* open : {&waiting_, &asked_}) {
    for (const std::size_t index : *open) {
      answers_[index] = Answer{{}, failure};
      failed_.insert(index);
    }
  }
  waiting_.clear();
  asked_.clear();
  forgiven_ = answers_.size();  // nothing is left to be given up
}

std::size_t Batch::cutoff() const {
  if (failed_.size() <= forgiven_) return answers_.size();
  return *std::next(failed_.begin(), static_cast<std::ptrdiff_t>(forgiven_));
}

std::vector<Answer> Batch::take_answers() {
  const std::size_t last = cutoff();
  std::vector<Answer> result;
  result.reserve(answers_.size());
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    if (std::optional<Answer>& answer = answers_[i]; i <= last && answer) {
      result.push_back(*std::move(answer));
    } else {
      const Failure given_up{FailureKind::kGivenUp, "not asked any more after other failures", ""};
      result.push_back({{}, given_up});
    }
  }
  return result;
}

}  // namespace tangram::parallelizer
