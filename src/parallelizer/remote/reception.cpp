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
constexpr std::size_t kMostStrangers = 2'048;  // an agent has up to three connections that are new at once

/// Whether a stranger stays one, for now.
enum class Heard : std::uint8_t { kMore, kNonsense, kGreeting };

/// Appends to `said` up to the end of the greeting, byte by byte: what follows belongs to the worker's stream.
Heard listen_to(const Descriptor& socket, std::string& said) {
  while (said.size() < kLongestGreeting) {
    char next = 0;
    const ssize_t got = recv(socket.number(), &next, 1, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Heard::kMore;
    if (got <= 0) return Heard::kNonsense;
    if (next == '\n') return Heard::kGreeting;
    said += next;
  }
  return Heard::kNonsense;
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
    accept_strangers();
    if (auto caller = greeted()) return caller;
    if (Clock::now() >= deadline) return std::nullopt;
    wait(deadline);
  }
}

void Reception::accept_strangers() {
  while (strangers_.size() < kMostStrangers) {
    Descriptor socket(accept4(listener_.socket.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    prepare(socket);
    strangers_.push_back({std::move(socket), Clock::now() + kGreetingTime, {}});
  }
}

std::optional<Caller> Reception::greeted() {
  std::optional<Caller> caller;
  const auto now = Clock::now();
  for (Stranger& stranger : strangers_) {
    const Heard heard = listen_to(stranger.socket, stranger.said);
    if (heard == Heard::kMore && now < stranger.deadline) continue;
    auto greeting = heard == Heard::kGreeting ? read_greeting(stranger.said) : std::nullopt;
    if (greeting && equal(greeting->call, secret_.call)) {
      caller = Caller{std::move(stranger.socket), std::move(*greeting)};
      break;
    }
    stranger.socket.reset();
  }
  std::erase_if(strangers_, [](const Stranger& stranger) { return !stranger.socket.open(); });
  return caller;
}

void Reception::wait(Clock::time_point deadline) const {
  std::vector<pollfd> events{{listener_.socket.number(), POLLIN, 0}};
  for (const Stranger& stranger : strangers_) {
    events.push_back({stranger.socket.number(), POLLIN, 0});
    deadline = std::min(deadline, stranger.deadline);
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  poll(events.data(), events.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
}

}  // namespace tangram::parallelizer
