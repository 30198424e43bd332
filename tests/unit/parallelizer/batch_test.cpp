// Which questions count, are asked again, or are given up, without any process.
#include "plugin/batch.hpp"

#include "support/catch.hpp"

using namespace tangram::parallelizer;

namespace {

Failure crash() { return {FailureKind::kCrashed, "crash", ""}; }
Failure late() { return {FailureKind::kTimedOut, "late", ""}; }

}  // namespace

TEST_CASE("batch: questions are taken in their order") {
  const std::vector<Question> questions(3);
  Batch batch(questions, 0);
  for (std::size_t i = 0; i < 3; ++i) CHECK(batch.take_next() == i);
  CHECK_FALSE(batch.has_next());
  CHECK_FALSE(batch.done());
  batch.answer(2, "c");
  batch.answer(0, "a");
  batch.answer(1, "b");
  CHECK(batch.done());
  const std::vector<Answer> answers = batch.take_answers();
  CHECK(answers[0].body == "a");
  CHECK(answers[1].body == "b");
  CHECK(answers[2].body == "c");
}

TEST_CASE("batch: a crash is tried once more, a clock is not") {
  const std::vector<Question> questions(2);
  Batch batch(questions, 0);
  CHECK(batch.take_next() == 0);
  batch.fail(0, crash());
  CHECK(batch.failures() == 0);
  CHECK(batch.take_next() == 0);
  batch.fail(0, crash());
  CHECK(batch.failures() == 1);
  CHECK(batch.take_next() == 1);
  batch.fail(1, late());
  CHECK(batch.failures() == 2);
  CHECK(batch.done());
}

// Two failures are forgiven; the third in the order of questions is question 5, whoever fails first.
TEST_CASE("batch: who is given up where does not depend on the order of events") {
  const std::vector<Question> questions(8);
  for (const auto& order : {std::vector<std::size_t>{1, 3, 5, 6}, {6, 5, 3, 1}, {5, 6, 1, 3}}) {
    Batch batch(questions, 0);
    for (std::size_t i = 0; i < 8; ++i) CHECK(batch.take_next() == i);
    batch.answer(7, "too eager");
    for (const std::size_t index : order) batch.fail(index, late());
    for (const std::size_t index : std::vector<std::size_t>{0, 2, 4}) batch.answer(index, "answer");
    CHECK(batch.done());
    const std::vector<Answer> answers = batch.take_answers();
    for (const std::size_t index : std::vector<std::size_t>{0, 2, 4}) CHECK(answers[index].body == "answer");
    for (const std::size_t index : std::vector<std::size_t>{1, 3, 5})
      CHECK(answers[index].failure->kind == FailureKind::kTimedOut);
    for (const std::size_t index : std::vector<std::size_t>{6, 7})
      CHECK(answers[index].failure->kind == FailureKind::kGivenUp);
  }
}

TEST_CASE("batch: what lies behind the last failure forgiven is not waited for") {
  const std::vector<Question> questions(8);
  Batch batch(questions, 0);
  for (std::size_t i = 0; i < 5; ++i) CHECK(batch.take_next() == i);
  for (const std::size_t index : std::vector<std::size_t>{0, 1, 2}) batch.fail(index, late());
  CHECK(batch.is_moot(3));
  CHECK_FALSE(batch.is_moot(2));
  CHECK_FALSE(batch.has_next());
  CHECK(batch.done());
}

TEST_CASE("batch: failures of earlier batches count") {
  const std::vector<Question> questions(3);
  Batch batch(questions, kForgiven);
  for (std::size_t i = 0; i < 3; ++i) CHECK(batch.take_next() == i);
  batch.fail(1, late());
  batch.answer(0, "counts");
  CHECK(batch.done());
  const std::vector<Answer> answers = batch.take_answers();
  CHECK(answers[0].body == "counts");
  CHECK(answers[2].failure->kind == FailureKind::kGivenUp);
}
