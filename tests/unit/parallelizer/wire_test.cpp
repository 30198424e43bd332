#include "remote/wire.hpp"

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using std::chrono::milliseconds;

TEST_CASE("secrets are new each time and survive the environment") {
  const Secret secret = make_secret();
  CHECK(secret.call.size() == 32);
  CHECK(secret.call != secret.answer);
  CHECK(secret != make_secret());
  CHECK(secret_from(to_text(secret)) == secret);
  CHECK_FALSE(secret_from(""));
  CHECK_FALSE(secret_from(secret.call));
  CHECK_FALSE(secret_from(to_text(secret) + "0"));
}

TEST_CASE("a greeting names who calls and for what") {
  const Greeting greeting{"0123", Role::kChannel, "17"};
  std::string line = greeting_line(greeting);
  CHECK(line == "tangram-worker/1 0123 channel 17\n");
  line.pop_back();
  CHECK(read_greeting(line) == greeting);
  CHECK_FALSE(read_greeting(""));
  CHECK_FALSE(read_greeting("GET / HTTP/1.1"));
  CHECK_FALSE(read_greeting("tangram-worker/2 0123 channel 17"));
  CHECK_FALSE(read_greeting("tangram-worker/1 0123 cook 17"));
  CHECK_FALSE(read_greeting("tangram-worker/1 0123 channel 17 18"));
}

TEST_CASE("orders survive the wire byte by byte, whatever is in them") {
  StartOrder start;
  start.launch = 7;
  start.command.arguments = {"python3", "a planner.py", "", "line\nbreak"};
  start.command.environment = {{"PATH", "/bin:/usr/bin"}, {"EMPTY", ""}, {"LATIN", "caf\xe9"}, {"EQUAL", "a=b"}};
  start.command.memory_limit = Bytes(1 << 30);
  const std::string sent = to_text(start) + to_text(StopOrder{milliseconds(300)});

  std::string incoming;
  std::vector<Order> orders;
  bool broken = false;
  for (const char byte : sent) {
    incoming += byte;
    while (auto order = take_order(incoming, broken)) orders.push_back(std::move(*order));
    REQUIRE_FALSE(broken);
  }
  CHECK(incoming.empty());
  REQUIRE(orders.size() == 2);
  const auto& read = std::get<StartOrder>(orders[0]);
  CHECK(read.launch == 7);
  CHECK(read.command.arguments == start.command.arguments);
  CHECK(read.command.environment == start.command.environment);
  CHECK(read.command.memory_limit == start.command.memory_limit);
  CHECK(std::get<StopOrder>(orders[1]).grace == milliseconds(300));
}

TEST_CASE("what is no order is told from one that is not all there") {
  const auto is_broken = [](std::string text) {
    bool broken = false;
    CHECK_FALSE(take_order(text, broken));
    return broken;
  };
  CHECK_FALSE(is_broken("sta"));
  CHECK_FALSE(is_broken("start 1 0 1 0 4\npy"));
  CHECK(is_broken("fetch\n"));
  CHECK(is_broken("stop\n"));
  CHECK(is_broken("stop -1\n"));
  CHECK(is_broken("start 1 0 0 0 0\n"));                           // no program
  CHECK(is_broken("start 1 0 1 0 99999999999\n"));                 // longer than any command line
  CHECK(is_broken("start 1 0 2 0 3\npy" + std::string(1, '\0')));  // one word where two are announced
  CHECK(is_broken("start 1 0 1 1 6\npy" + std::string(1, '\0') + "no" + std::string(1, '\0')));  // no '='
  CHECK(is_broken(std::string(1000, 'x')));
}
