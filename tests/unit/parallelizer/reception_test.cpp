#include "remote/reception.hpp"

#include "support/catch.hpp"

using namespace tangram::parallelizer;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kLong{5'000};

Reception open_reception(const Secret& secret) {
  auto listener = listen_anywhere();
  REQUIRE(listener);
  return {std::move(*listener), secret};
}

/// A reception, and calls to it.
struct Fixture {
  Secret secret = make_secret();
  Reception reception = open_reception(secret);

  [[nodiscard]] Descriptor call(const std::string& text) const {
    Descriptor socket = connect_to(reception.addresses().front(), kLong);
    REQUIRE(socket.open());
    REQUIRE(send_all(socket, text, kLong));
    return socket;
  }
  [[nodiscard]] std::string greeting(Role role = Role::kAgent) const {
    return greeting_line({secret.call, role, "here"});
  }
};

bool hung_up(const Descriptor& socket) {
  std::string ignored;
  return !receive_some(socket, ignored, kLong);
}

}  // namespace

TEST_CASE_METHOD(Fixture, "who knows the secret is let in, with what follows the greeting untouched") {
  const Descriptor caller = call(greeting(Role::kChannel) + "{\"type\":\"hello\"}\n");
  const auto met = reception.next(kLong);
  REQUIRE(met);
  CHECK(met->greeting.role == Role::kChannel);
  CHECK(met->greeting.of == "here");
  std::string rest;
  CHECK(receive_some(met->socket, rest, kLong));
  CHECK(rest == "{\"type\":\"hello\"}\n");
}

TEST_CASE_METHOD(Fixture, "strangers are hung up on, and hold nobody up") {
  const Descriptor silent = call("");
  const Descriptor slow = call(greeting().substr(0, 20));
  const Descriptor liar = call(greeting_line({std::string(32, '0'), Role::kAgent, "here"}));
  const Descriptor chatty = call(std::string(10'000, 'x'));
  const Descriptor browser = call("GET / HTTP/1.1\n");
  const Descriptor honest = call(greeting());
  const auto met = reception.next(kLong);
  REQUIRE(met);
  CHECK(met->greeting.call == secret.call);
  CHECK_FALSE(reception.next(milliseconds(50)));
  CHECK(hung_up(liar));
  CHECK(hung_up(chatty));
  CHECK(hung_up(browser));
  REQUIRE(send_all(slow, greeting().substr(20), kLong));  // it was only slow
  CHECK(reception.next(kLong));
}

TEST_CASE_METHOD(Fixture, "nobody is there where nobody listens") {
  CHECK_FALSE(connect_to("127.0.0.1:1", milliseconds(200)).open());
  CHECK_FALSE(connect_to("no address", milliseconds(200)).open());
  CHECK_FALSE(connect_to("", milliseconds(200)).open());
}
