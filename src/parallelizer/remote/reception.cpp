#include "reception.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace tangram::parallelizer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGreetingTime{5'000};
constexpr std::size_t kMostPending = 2'048;  // an agent has up to three connections that are new at once

/// What is there of a greeting.
enum class Greeted : std::uint8_t { kIncomplete, kInvalid, kComplete };

/// Appends to `received` up to the end of the greeting, byte by byte: what follows belongs to the worker's stream.
Greeted receive_greeting(const Descriptor& socket, std::string& received) {
  while (received.size() < kLongestGreeting) {
    char next = 0;
    const ssize_t got = recv(socket.number(), &next, 1, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Greeted::kIncomplete;
    if (got <= 0) return Greeted::kInvalid;
    if (next == '\n') return Greeted::kComplete;
    received += next;
  }
  return Greeted::kInvalid;
}

/// Takes the same time wherever they differ, so that the secret cannot be guessed piece by piece.
bool equal(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

}  // namespace

std::optional<Caller> Reception::next(milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    accept_pending();
    if (auto caller = greeted()) return caller;
    if (Clock::now() >= deadline) return std::nullopt;
    wait(deadline);
  }
}

void Reception::accept_pending() {
  while (pending_.size() < kMostPending) {
    Descriptor socket(accept4(listener_.socket.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    prepare(socket);
    pending_.push_back({std::move(socket), Clock::now() + kGreetingTime, {}});
  }
}

std::optional<Caller> Reception::greeted() {
  std::optional<Caller> caller;
  const auto now = Clock::now();
  for (PendingConnection& connection : pending_) {
    const Greeted state = receive_greeting(connection.socket, connection.received);
    if (state == Greeted::kIncomplete && now < connection.deadline) continue;
    auto greeting = state == Greeted::kComplete ? read_greeting(connection.received) : std::nullopt;
    if (greeting && equal(greeting->call, secret_.call)) {
      caller = Caller{std::move(connection.socket), std::move(*greeting)};
      break;
    }
    connection.socket.reset();
  }
  std::erase_if(pending_, [](const PendingConnection& connection) { return !connection.socket.open(); });
  return caller;
}

void Reception::wait(Clock::time_point deadline) const {
  std::vector<pollfd> events{{listener_.socket.number(), POLLIN, 0}};
  for (const PendingConnection& connection : pending_) {
    events.push_back({connection.socket.number(), POLLIN, 0});
    deadline = std::min(deadline, connection.deadline);
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  poll(events.data(), events.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
}

}  // namespace tangram::parallelizer
