// What the cache finds, keeps and forgets, with a plugin that is no process.
#include "tangram/parallelizer/answer_cache.hpp"

#include <array>
#include <barrier>
#include <set>
#include <thread>

#include "plugin/batch.hpp"
#include "plugin/messages.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using tangram::testing::ScratchFolder;

namespace {

constexpr Bytes kRoomy(std::int64_t{1} << 30);

PluginSpec spec_of(std::string name) {
  PluginSpec spec;
  spec.command = {std::move(name)};
  return spec;
}

PluginInfo info_of(std::string version) { return {"fake", std::move(version), true, {}}; }

/// Answers with the question, but for those it crashes on; gives up as a worker pool does.
class FakeSource final : public AnswerSource {
 public:
  explicit FakeSource(std::set<std::string> crashes) : crashes_(std::move(crashes)) {}
  [[nodiscard]] const Expected<PluginInfo>& plugin() const override { return info_; }
  [[nodiscard]] std::vector<Answer> ask(std::span<const Question> questions, const AnswerCallback& came) override {
    Batch batch(questions, failures_, came);
    while (batch.has_next()) {
      const std::size_t index = batch.take_next();
      const std::string& body = batch.question(index).body;
      ++asked;
      if (crashes_.contains(body)) {
        batch.fail(index, {FailureKind::kTimedOut, "late", ""});
      } else {
        batch.answer(index, R"({"type":"result","plans":[],"id":1,"to":")" + body + R"("})");
      }
    }
    failures_ += batch.failures();
    return batch.take_answers();
  }

  int asked = 0;

 private:
  Expected<PluginInfo> info_ = info_of("1");
  std::set<std::string> crashes_;
  std::size_t failures_ = 0;
};

std::vector<Question> questions_of(const std::vector<std::string>& bodies) {
  std::vector<Question> questions;
  for (const std::string& body : bodies) {
    questions.push_back({body, {std::make_shared<const Material>(Material{"d", "\"model\":{}"})}});
  }
  return questions;
}

std::string kinds(const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) {
    text += answer.failure ? std::string(to_string(answer.failure->kind)) + " " : answer.body.substr(33) + " ";
  }
  return text;
}

}  // namespace

TEST_CASE("answer cache: what a plugin says of itself reads back") {
  PluginInfo info{"a \"name\"", "1.2", false, {true, 64, 8, {"tp", "dp"}, true}};
  const Message read = read_message(hello_line(info));
  REQUIRE(read.type == MessageType::kHello);
  CHECK(read.info.name == info.name);
  CHECK(read.info.version == info.version);
  CHECK(read.info.deterministic == info.deterministic);
  CHECK(read.info.capabilities.powers_of_two);
  CHECK(read.info.capabilities.max_gpus == 64);
  CHECK(read.info.capabilities.max_nodes == 8);
  CHECK(read.info.capabilities.techniques == info.capabilities.techniques);
  CHECK(read.info.capabilities.cancel);
}

TEST_CASE("answer cache: another version, question or plugin is another answer") {
  const ScratchFolder folder;
  const auto cache = *AnswerCache::open(folder.file("new/answers.sqlite"), kRoomy);
  const std::vector<Question> questions = questions_of({"a", "b"});
  const std::string one = cache->introduce(spec_of("x"), info_of("1"));
  cache->keep(one, questions[0], "answer");
  CHECK(cache->find(one, questions) == std::vector<std::optional<std::string>>{"answer", std::nullopt});
  for (const std::string& other :
       {cache->introduce(spec_of("x"), info_of("2")), cache->introduce(spec_of("y"), info_of("1"))}) {
    CHECK(cache->find(other, questions) == std::vector<std::optional<std::string>>{std::nullopt, std::nullopt});
  }
  CHECK(cache->remembered(content_digest(spec_of("x")))->version == "2");
  CHECK_FALSE(cache->remembered(content_digest(spec_of("z"))));
  const std::vector<CachedAnswer> sample = cache->sample(one, 5);
  REQUIRE(sample.size() == 1);
  CHECK(sample[0].question.body == "a");
  CHECK(sample[0].question.materials.at(0)->members == "\"model\":{}");
  CHECK_FALSE(cache->problem());
}

// Two failures are forgiven; the third is "c3", so that "g" after it counts as not asked, though the cache has it.
TEST_CASE("answer cache: a batch ends the same with and without it") {
  const ScratchFolder folder;
  const std::set<std::string> crashes{"c1", "c2", "c3"};
  const std::vector<Question> questions = questions_of({"a", "c1", "b", "c2", "c3", "g"});
  FakeSource plain(crashes);
  const std::string expected = kinds(plain.ask(questions, {}));
  const auto cache = *AnswerCache::open(folder.file("new/answers.sqlite"), kRoomy);
  static_cast<void>(make_cached_source(spec_of("x"), std::make_unique<FakeSource>(crashes), *cache)
                        ->ask(questions_of({"g", "a"}), {}));
  for (int run = 0; run < 2; ++run) {
    auto source = std::make_unique<FakeSource>(crashes);
    const FakeSource& fake = *source;
    const auto cached = make_cached_source(spec_of("x"), std::move(source), *cache);
    CHECK(kinds(cached->ask(questions, {})) == expected);
    CHECK(fake.asked == (run == 0 ? 4 : 3));
    CHECK(kinds(cached->ask(questions_of({"g"}), {})) == "given-up ");
  }
  const auto offline = make_offline_source(spec_of("x"), *cache);
  CHECK(kinds(offline->ask(questions_of({"c1", "b"}), {})).starts_with("not-cached "));
}

TEST_CASE("answer cache: what was used longest ago makes room") {
  const ScratchFolder folder;
  const std::string large(100'000, 'x');
  const std::vector<Question> questions = questions_of({"0", "1", "2", "3", "4", "5", "6", "7"});
  std::string identity;
  for (const Question& question : questions) {  // each in a session of its own
    const auto cache = *AnswerCache::open(folder.file("new/answers.sqlite"), kRoomy);
    identity = cache->introduce(spec_of("x"), info_of("1"));
    cache->keep(identity, question, large);
  }
  {
    const auto cache = *AnswerCache::open(folder.file("new/answers.sqlite"), kRoomy);
    CHECK(cache->find(identity, {questions.data(), 1})[0]);  // the oldest is used once more
  }
  const auto cache = *AnswerCache::open(folder.file("new/answers.sqlite"), Bytes(500'000));
  cache->trim();
  CHECK(cache->file().used().value() <= 500'000);
  const auto left = cache->find(identity, questions);
  CHECK(left[0]);
  CHECK_FALSE(left[1]);
  CHECK_FALSE(left[2]);
  CHECK(left[6]);
  CHECK(left[7]);
}

TEST_CASE("answer cache: several that find no file at the same moment make one between them") {
  constexpr int kOpeners = 4;
  for (int round = 0; round < 25; ++round) {
    const ScratchFolder folder;
    std::barrier together(kOpeners);
    std::array<std::string, kOpeners> complaints;
    {
      std::vector<std::jthread> openers;
      for (std::string& complaint : complaints) {
        openers.emplace_back([&folder, &together, &complaint] {
          together.arrive_and_wait();
          const auto cache = AnswerCache::open(folder.file("new/answers.sqlite"), kRoomy);
          if (!cache) complaint = cache.error().front().message;
        });
      }
    }
    for (const std::string& complaint : complaints) CHECK(complaint.empty());
  }
}
