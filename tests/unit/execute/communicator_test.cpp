// Ranks that meet: sums, order, and every way not to meet, each of which ends at once and says who and why.
#include "communicator.hpp"

#include "support/catch.hpp"

using namespace tangram::execute;

namespace {

Matrix row_of(std::vector<double> values) {
  Matrix row(1, static_cast<int>(values.size()));
  row.values() = std::move(values);
  return row;
}

Task<void> sum(Communicator& ranks, Group& group, int rank, std::vector<double> values, std::vector<double>& out) {
  const Matrix total = co_await ranks.all_reduce(group, rank, row_of(std::move(values)));
  out = total.values();
}

Task<void> gather(Communicator& ranks, Group& group, int rank, std::vector<double>& out) {
  Matrix own(1, 1);
  own.at(0, 0) = rank;
  const Matrix all = co_await ranks.gather_positions(group, rank, own, 1);
  out = all.values();
}

Task<void> receive_then_send(Communicator& ranks, int rank, int peer) {
  const MessageKey key{peer, rank, 0, false, 3};
  const Matrix got = co_await ranks.receive(key);
  ranks.send({rank, peer, 0, false, 3}, got);
}

Task<void> send_only(Communicator& ranks, int rank, int peer) {
  ranks.send({rank, peer, 0, true, 0}, row_of({1}));
  co_return;
}

Task<void> stop() {
  throw RunStopped{{"broken", "rank 1", "cannot go on"}};
  co_return;
}

}  // namespace

TEST_CASE("an all-reduce gives every member the sum, in the order of the group") {
  Communicator ranks({"rank 0", "rank 1", "rank 2"});
  Group* group = ranks.group("dp", {2, 0, 1});
  std::vector<std::vector<double>> out(3);
  std::vector<Task<void>> tasks;
  for (int r = 0; r < 3; ++r) tasks.push_back(sum(ranks, *group, r, {1.0 * r, 10}, out[static_cast<std::size_t>(r)]));
  CHECK_FALSE(ranks.run(tasks));
  for (const auto& values : out) CHECK(values == std::vector<double>{3, 30});
  CHECK(ranks.collectives() == 1);
}

TEST_CASE("gathered positions stand in the order of the group, not of the ranks") {
  Communicator ranks({"rank 0", "rank 1"});
  Group* group = ranks.group("cp", {1, 0});
  std::vector<double> first, second;
  std::vector<Task<void>> tasks;
  tasks.push_back(gather(ranks, *group, 0, first));
  tasks.push_back(gather(ranks, *group, 1, second));
  CHECK_FALSE(ranks.run(tasks));
  CHECK(first == std::vector<double>{1, 0});
  CHECK(second == first);
}

TEST_CASE("ranks that wait for each other are a deadlock that names both, not a hang") {
  Communicator ranks({"rank 4", "rank 7"});
  std::vector<Task<void>> tasks;
  tasks.push_back(receive_then_send(ranks, 0, 1));
  tasks.push_back(receive_then_send(ranks, 1, 0));
  const auto found = ranks.run(tasks);
  REQUIRE(found);
  CHECK(found->code == "deadlock");
  CHECK(found->message ==
        "2 ranks wait for what never comes: rank 4 waits for the activation of microbatch 3 from rank 7; rank 7 waits "
        "for the activation of microbatch 3 from rank 4");
}

TEST_CASE("a rank that stops ends the run for those who wait for it") {
  Communicator ranks({"rank 0", "rank 1"});
  Group* group = ranks.group("tp of stage 2", {0, 1});
  std::vector<double> out;
  std::vector<Task<void>> tasks;
  tasks.push_back(sum(ranks, *group, 0, {1}, out));
  tasks.push_back(stop());
  const auto found = ranks.run(tasks);
  REQUIRE(found);
  CHECK(found->code == "broken");
}

TEST_CASE("members that bring different shapes, or come for different things, are refused") {
  Communicator ranks({"rank 0", "rank 1"});
  Group* group = ranks.group("dp x cp of stage 0", {0, 1});
  std::vector<double> out;
  SECTION("shapes") {
    std::vector<Task<void>> tasks;
    tasks.push_back(sum(ranks, *group, 0, {1, 2}, out));
    tasks.push_back(sum(ranks, *group, 1, {1}, out));
    const auto found = ranks.run(tasks);
    REQUIRE(found);
    CHECK(found->code == "collective-mismatch");
    CHECK(found->message == "dp x cp of stage 0: brings another shape");
  }
  SECTION("operations") {
    std::vector<Task<void>> tasks;
    tasks.push_back(sum(ranks, *group, 0, {1}, out));
    tasks.push_back(gather(ranks, *group, 1, out));
    const auto found = ranks.run(tasks);
    REQUIRE(found);
    CHECK(found->where == "rank 1");
    CHECK(found->message == "dp x cp of stage 0: joins with all-gather what others began as all-reduce");
  }
}

TEST_CASE("a message that nobody asks for is found") {
  Communicator ranks({"rank 0", "rank 1"});
  std::vector<Task<void>> tasks;
  tasks.push_back(send_only(ranks, 0, 1));
  const auto found = ranks.run(tasks);
  REQUIRE(found);
  CHECK(found->code == "message-unread");
  CHECK(found->where == "rank 1");
}
