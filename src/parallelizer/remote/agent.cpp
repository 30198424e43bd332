#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <thread>

#include "sockets.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/parallelizer/remote.hpp"
#include "wire.hpp"

namespace tangram::parallelizer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kConnectTime{2'000};  // of one address: some lead nowhere from here
constexpr milliseconds kAnswerTime{10'000};
constexpr milliseconds kSendTime{30'000};
constexpr milliseconds kLastOutput{2'000};  // what a worker left in its pipes, to a planner that may be slow
constexpr int kRounds = 3;

Diagnostic agent_error(std::string code, std::string message, std::string hint) {
  return problem(ErrorKind::kPlugin, std::move(code), std::move(message), std::move(hint));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "unknown";
  return name.data();
}

/// Carries bytes from one descriptor to another, as fast as both allow. One chunk is under way at a time.
class Pump {
 public:
  Pump(int from, int to_socket) : from_(from), to_(to_socket) {}

  [[nodiscard]] bool done() const { return done_; }
  /// What it waits for; nothing when it is done.
  [[nodiscard]] pollfd event() const {
    if (done_) return {-1, 0, 0};
    return pending() ? pollfd{to_, POLLOUT, 0} : pollfd{from_, POLLIN, 0};
  }

  void run() {
    while (!done_ && (pending() ? write_some() : read_some())) {
    }
  }

 private:
  [[nodiscard]] bool pending() const { return written_ < read_; }

  bool read_some() {
    const ssize_t got = ::read(from_, chunk_.data(), chunk_.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      finish();
      return false;
    }
    written_ = 0;
    read_ = static_cast<std::size_t>(got);
    return true;
  }

  bool write_some() {
    const char* text = chunk_.data() + written_;
    const ssize_t sent = ::send(to_, text, read_ - written_, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (sent < 0) {
      finish();
      return false;
    }
    written_ += static_cast<std::size_t>(sent);
    return true;
  }

  /// The other end learns that there will be no more.
  void finish() {
    done_ = true;
    shutdown(to_, SHUT_WR);
  }

  int from_;
  int to_;
  bool done_ = false;
  std::array<char, std::size_t{64} << 10> chunk_;
  std::size_t read_ = 0;
  std::size_t written_ = 0;
};

/// A worker of this machine and its two connections to the planner.
class Relay {
 public:
  Relay(WorkerProcess& process, const Descriptor& channel, const Descriptor& output)
      : questions_(channel.number(), process.channel()),
        answers_(process.channel(), channel.number()),
        printed_(process.output(), output.number()) {}

  /// Waits until something moves here or `also` has something to read.
  void step(int also, milliseconds patience) {
    std::array<pollfd, 4> events{questions_.event(), answers_.event(), printed_.event(), pollfd{also, POLLIN, 0}};
    poll(events.data(), events.size(), static_cast<int>(patience.count()));
    for (Pump* pump : {&questions_, &answers_, &printed_}) pump->run();
  }
  [[nodiscard]] bool worker_is_silent() const { return answers_.done(); }
  [[nodiscard]] bool done() const { return answers_.done() && printed_.done(); }

 private:
  Pump questions_;
  Pump answers_;
  Pump printed_;
};

milliseconds left(Clock::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// One connection to a planner, and at most one worker at a time for it.
class Agent {
 public:
  /// `incoming`: the beginning of orders, which came with the planner's answer.
  Agent(Descriptor control, std::string incoming, std::string address, Secret secret)
      : control_(std::move(control)),
        incoming_(std::move(incoming)),
        address_(std::move(address)),
        secret_(std::move(secret)) {}

  void serve() {
    while (auto order = next_order()) {
      if (const auto* start = std::get_if<StartOrder>(&*order)) work(*start);
    }
  }

 private:
  /// Nothing: the planner hung up, or talks nonsense.
  std::optional<Order> next_order() {
    while (control_.open()) {
      if (auto order = take_order(incoming_, broken_)) return order;
      if (broken_ || !receive_some(control_, incoming_, milliseconds(60'000))) control_.reset();
    }
    return std::nullopt;
  }

  void work(const StartOrder& start) {
    auto process = launcher_->launch(start.command);
    if (!process) return report("failed " + one_line(process.error().front().message));
    Descriptor channel = call(Role::kChannel, start.launch);
    Descriptor output = call(Role::kOutput, start.launch);
    if (!channel.open() || !output.open()) return control_.reset();
    report("started");
    Relay relay(**process, channel, output);
    const milliseconds grace = relay_until_stopped(relay);
    const std::string how = stop(**process, relay, grace);
    channel.reset();
    output.reset();
    report("ended " + one_line(how));
  }

  Descriptor call(Role role, std::int64_t launch) const {
    Descriptor socket = connect_to(address_, kConnectTime);
    const std::string greeting = greeting_line({secret_.call, role, std::to_string(launch)});
    if (socket.open() && !send_all(socket, greeting, kSendTime)) socket.reset();
    return socket;
  }

  /// How long the worker may take to end by itself; no time at all when the planner hung up.
  milliseconds relay_until_stopped(Relay& relay) {
    while (control_.open()) {
      relay.step(control_.number(), milliseconds(60'000));
      if (!receive_some(control_, incoming_, milliseconds(0))) control_.reset();
      const auto order = take_order(incoming_, broken_);
      if (broken_) control_.reset();
      if (!order) continue;
      if (const auto* told = std::get_if<StopOrder>(&*order)) return told->grace;
      control_.reset();  // a second worker: nonsense
    }
    return milliseconds(0);
  }

  /// What was sent to it last may still be on the way when the order to stop is here: bytes are carried all the while.
  static std::string stop(WorkerProcess& process, Relay& relay, milliseconds grace) {
    const auto deadline = Clock::now() + grace;
    while (!relay.worker_is_silent() && Clock::now() < deadline) relay.step(-1, left(deadline));
    std::string how = process.stop(left(deadline));
    const auto last = Clock::now() + kLastOutput;
    while (!relay.done() && Clock::now() < last) relay.step(-1, left(last));
    return how;
  }

  void report(const std::string& line) {
    if (control_.open() && !send_all(control_, line + "\n", kSendTime)) control_.reset();
  }

  Descriptor control_;
  std::string incoming_;
  std::string address_;
  Secret secret_;
  bool broken_ = false;
  std::unique_ptr<Launcher> launcher_ = make_local_launcher();
};

/// Whether it is the planner that answers there; `incoming` has what it said beyond that.
bool is_planner(const Descriptor& socket, const Secret& secret, std::string& incoming) {
  if (!send_all(socket, greeting_line({secret.call, Role::kAgent, host_name()}), kSendTime)) return false;
  const auto deadline = Clock::now() + kAnswerTime;
  while (Clock::now() < deadline) {
    if (const auto answer = take_line(incoming)) return *answer == secret.answer;
    if (incoming.size() > kLongestGreeting || !receive_some(socket, incoming, left(deadline))) return false;
  }
  return false;
}

}  // namespace

Expected<void> run_agent(std::span<const std::string> addresses) {
  const char* text = std::getenv(kSecretVariable);
  const auto secret = secret_from(text == nullptr ? "" : text);
  if (!secret) {
    return fail(agent_error("no-secret", fmt::format("{} is not set: nobody to work for", kSecretVariable),
                            "srun or mpirun starts this command: tangram plan ... --workers slurm"));
  }
  for (int round = 0; round < kRounds; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
    for (const std::string& address : addresses) {
      Descriptor control = connect_to(address, kConnectTime);
      std::string incoming;
      if (!control.open() || !is_planner(control, *secret, incoming)) continue;
      Agent(std::move(control), std::move(incoming), address, *secret).serve();
      return {};
    }
  }
  return fail(agent_error("planner-not-reached",
                          fmt::format("{} does not reach the planner at {}", host_name(), fmt::join(addresses, ", ")),
                          "its machine must take TCP connections from the nodes that workers run on"));
}

}  // namespace tangram::parallelizer
