#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "../plugin/connection.hpp"
#include "../plugin/messages.hpp"
#include "engine.hpp"
#include "reception.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::parallelizer {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLook{100};           // between looks at the engine while agents are waited for
constexpr milliseconds kStragglers{10'000};  // from the first agent on: an engine starts all of a job's tasks together
constexpr milliseconds kLookForWorker{10};   // between looks at what its agent says
constexpr milliseconds kLaunchTime{30'000};  // of one worker by its agent
constexpr milliseconds kSendTime{30'000};
constexpr milliseconds kStopTime{8'000};  // of the agent beyond the worker's grace: kill, reap, last words
constexpr milliseconds kLastBytes{200};   // until what the worker said last is here, too
constexpr milliseconds kVersionTime{10'000};
constexpr milliseconds kGrace{5'000};         // for the engine, once its agents are told to go
constexpr milliseconds kEngineGrace{10'000};  // once it is told to go itself
constexpr std::size_t kMostWords = 400;       // of an engine's, in an error
constexpr int kEngineStarts = 2;              // a job that ends early is replaced once

Diagnostics engine_failure(std::string code, std::string message, std::string hint) {
  return {problem(ErrorKind::kPlugin, std::move(code), std::move(message), std::move(hint))};
}

/// Without spaces and the dashes that mpirun frames its messages with.
std::string_view bare(std::string_view line) {
  const std::size_t first = line.find_first_not_of("- \t\r");
  return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

/// The first paragraph of what an engine printed, as one line: advice comes after it.
std::string complaint_of(std::string_view text) {
  std::string words;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (bare(line).empty() && !words.empty()) break;
    if (bare(line).empty()) continue;
    if (!words.empty()) words += ' ';
    words += bare(line);
  }
  const bool fits = words.size() <= kMostWords;
  return excerpt(fits ? words : "..." + words.substr(words.size() - kMostWords), words.size());
}

std::string last_line_of(std::string_view text) {
  std::string last;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!bare(line).empty()) last = bare(line);
  }
  return last;
}

/// Our own environment, and what is put into it.
std::vector<std::pair<std::string, std::string>> environment_with(const std::string& name, const std::string& value) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || text.substr(0, equals) == name) continue;
    variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  if (!name.empty()) variables.emplace_back(name, value);
  return variables;
}

/// The engine's own command runs where the user is: its options may name files there. It is given time to go, also when
/// the planner is killed: srun would leave its allocation behind.
WorkerCommand engine_process(std::vector<std::string> words, const std::string& secret) {
  std::error_code ignored;
  std::string folder = std::filesystem::current_path(ignored).string();
  return {std::move(words), environment_with(secret.empty() ? "" : kSecretVariable, secret), std::nullopt,
          folder.empty() ? "/" : std::move(folder), kEngineGrace};
}

/// What an agent is to the planner.
struct Agent {
  Descriptor control;  ///< closed: the agent is lost
  std::string host;
  std::string incoming;
  bool busy = false;

  [[nodiscard]] bool idle() const { return control.open() && !busy; }

  void say(const std::string& text) {
    if (control.open() && !send_all(control, text, kSendTime)) control.reset();
  }
  void notice_loss() {
    if (idle() && !receive_some(control, incoming, milliseconds(0))) control.reset();
  }
  /// What it reports within `patience`.
  std::optional<std::string> hear(milliseconds patience) {
    const auto deadline = Clock::now() + patience;
    for (;;) {
      if (auto line = take_line(incoming)) return line;
      if (!control.open() || incoming.size() > kLongestGreeting + kKeptOutput) return std::nullopt;
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      if (!receive_some(control, incoming, std::max(milliseconds(0), left))) control.reset();
      if (Clock::now() >= deadline && incoming.find('\n') == std::string::npos) return std::nullopt;
    }
  }
};

class RemoteProcess final : public WorkerProcess {
 public:
  RemoteProcess(std::shared_ptr<Agent> agent, Descriptor channel, Descriptor output)
      : agent_(std::move(agent)), channel_(std::move(channel)), output_(std::move(output)) {}
  ~RemoteProcess() override { stop(milliseconds(0)); }

  [[nodiscard]] int channel() const override { return channel_.number(); }
  [[nodiscard]] int output() const override { return output_.number(); }

  std::string stop(milliseconds grace) override {
    if (!agent_) return end_;
    agent_->say(to_text(StopOrder{grace}));
    const auto line = agent_->hear(grace + kStopTime);
    constexpr std::string_view kEnded = "ended ";
    if (line && line->starts_with(kEnded)) {
      end_ = line->substr(kEnded.size());
      agent_->busy = false;
      wait_for_last_bytes();
    } else {
      end_ = fmt::format("lost with its agent on {}", agent_->host);
      agent_->control.reset();  // an agent that hears no planner kills its worker
    }
    agent_.reset();
    return end_;
  }

 private:
  /// The agent closed these before it said so over a connection of its own.
  void wait_for_last_bytes() const {
    const auto deadline = Clock::now() + kLastBytes;
    for (const int socket : {channel_.number(), output_.number()}) {
      pollfd event{socket, POLLRDHUP, 0};
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
      poll(&event, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    }
  }

  std::shared_ptr<Agent> agent_;  ///< none: stopped
  Descriptor channel_;
  Descriptor output_;
  std::string end_;
};

class EngineLauncher final : public Launcher {
 public:
  EngineLauncher(EngineOptions options, MpiKind mpi, Reception reception)
      : options_(std::move(options)), mpi_(mpi), reception_(std::move(reception)) {}
  EngineLauncher(const EngineLauncher&) = delete;
  EngineLauncher& operator=(const EngineLauncher&) = delete;
  ~EngineLauncher() override {
    for (const auto& agent : agents_) agent->control.reset();
    if (engine_) engine_->process().stop(agents_.empty() ? milliseconds(0) : kGrace);
  }

  [[nodiscard]] Expected<std::unique_ptr<WorkerProcess>> launch(const WorkerCommand& command) override {
    if (auto running = keep_running(); !running) return fail(std::move(running.error()));
    while (auto caller = reception_.next(milliseconds(0))) welcome(*caller);
    while (const std::shared_ptr<Agent> agent = idle_agent()) {
      auto started = start(agent, command);
      if (started || agent->control.open()) return started;  // otherwise that agent is lost: another may do
    }
    return fail(engine_failure("no-agent", fmt::format("{}: no further worker is to be had", name()), ""));
  }

 private:
  /// Shared: others may call meanwhile, and move the list.
  [[nodiscard]] std::shared_ptr<Agent> idle_agent() const {
    const auto idle = std::ranges::find_if(agents_, [](const auto& one) { return one->idle(); });
    return idle == agents_.end() ? nullptr : *idle;
  }

  [[nodiscard]] std::string name() const { return std::filesystem::path(engine_program(options_)).filename().string(); }

  /// An engine with agents. A job that ended, with all of its agents, is started once more.
  Expected<void> keep_running() {
    for (const auto& agent : agents_) agent->notice_loss();
    std::erase_if(agents_, [](const auto& agent) { return !agent->control.open(); });
    if (engine_) engine_->receive();  // it must not wait for us to read what it prints
    if (!agents_.empty()) return {};
    if (failure_) return fail(*failure_);
    auto started = start_engine();
    if (!started) failure_ = started.error();
    return started;
  }

  Expected<void> start_engine() {
    if (starts_ == kEngineStarts) return fail(over(fmt::format("{} ended again", name())));
    ++starts_;
    engine_.reset();
    auto process = local_->launch(
        engine_process(engine_command(options_, mpi_, reception_.addresses()), to_text(reception_.secret())));
    if (!process) return fail(std::move(process.error()));
    return wait_for_agents(engine_.emplace(std::move(*process)));
  }

  /// All of them, or those that are there a while after the first.
  Expected<void> wait_for_agents(Connection& engine) {
    auto deadline = Clock::now() + options_.patience;
    const auto wanted = static_cast<std::size_t>(options_.workers);
    while (agents_.size() < wanted && Clock::now() < deadline) {
      const bool first = agents_.empty();
      if (auto caller = reception_.next(kLook)) welcome(*caller);
      if (first && !agents_.empty()) deadline = std::min(deadline, Clock::now() + kStragglers);
      engine.receive();
      if (agents_.empty() && (engine.closed() || !engine.prints())) {
        const std::string how = engine.process().stop(kGrace);
        engine.receive();
        return fail(over(fmt::format("{} started no worker: {}", name(), how)));
      }
      report_progress(engine, wanted);
    }
    if (agents_.empty()) {
      return fail(over(fmt::format("{}: no worker has called within {} s", name(),
                                   static_cast<double>(options_.patience.count()) / 1000)));
    }
    return {};
  }

  [[nodiscard]] Diagnostics over(std::string what) const {
    const std::string said = engine_ ? complaint_of(engine_->printed()) : std::string();
    if (!said.empty()) what += fmt::format(": {}", said);
    return engine_failure("no-agents", std::move(what),
                          "its options are those of --worker-launcher; --worker-wait says how long it may take");
  }

  void report_progress(const Connection& engine, std::size_t wanted) const {
    if (!options_.progress) return;
    const std::string said = last_line_of(engine.printed());
    options_.progress(
        fmt::format("{}: {} of {} workers{}{}", name(), agents_.size(), wanted, said.empty() ? "" : "; ", said));
  }

  void welcome(Caller& caller) {
    if (caller.greeting.role != Role::kAgent) return;  // a worker's connection that nobody waits for any more
    auto agent = std::make_shared<Agent>();
    agent->control = std::move(caller.socket);
    agent->host = caller.greeting.of;
    agent->say(reception_.secret().answer + "\n");
    agents_.push_back(std::move(agent));
  }

  /// The agent reports, and opens two connections, in whatever order they come here.
  Expected<std::unique_ptr<WorkerProcess>> start(const std::shared_ptr<Agent>& agent, const WorkerCommand& command) {
    const std::string number = std::to_string(++launches_);
    agent->say(to_text(StartOrder{launches_, command}));
    Descriptor channel;
    Descriptor output;
    bool started = false;
    const auto deadline = Clock::now() + kLaunchTime;
    while (Clock::now() < deadline && agent->control.open()) {
      if (auto caller = reception_.next(kLookForWorker)) {
        const Greeting& greeting = caller->greeting;
        if (greeting.role == Role::kAgent) welcome(*caller);
        if (greeting.role == Role::kChannel && greeting.of == number) channel = std::move(caller->socket);
        if (greeting.role == Role::kOutput && greeting.of == number) output = std::move(caller->socket);
      }
      if (const auto line = agent->hear(milliseconds(0))) {
        constexpr std::string_view kFailed = "failed ";
        if (line->starts_with(kFailed)) return fail(not_started(*agent, line->substr(kFailed.size())));
        started = started || *line == "started";
      }
      if (!started || !channel.open() || !output.open()) continue;
      agent->busy = true;
      return std::make_unique<RemoteProcess>(agent, std::move(channel), std::move(output));
    }
    agent->control.reset();
    return fail(not_started(*agent, "the agent is lost"));
  }

  static Diagnostics not_started(const Agent& agent, const std::string& why) {
    return engine_failure("worker-not-started", fmt::format("on {}: {}", agent.host, why), "");
  }

  EngineOptions options_;
  MpiKind mpi_;
  Reception reception_;
  std::unique_ptr<Launcher> local_ = make_local_launcher();
  std::optional<Connection> engine_;
  std::vector<std::shared_ptr<Agent>> agents_;
  std::optional<Diagnostics> failure_;  ///< why there will be no agents any more
  int starts_ = 0;
  std::int64_t launches_ = 0;
};

/// What `mpirun --version` prints.
std::string version_of(const EngineOptions& options) {
  auto process = make_local_launcher()->launch(engine_process({engine_program(options), "--version"}, ""));
  if (!process) return "";
  Connection link(std::move(*process));
  const auto deadline = Clock::now() + kVersionTime;
  while (link.prints() && Clock::now() < deadline) {
    pollfd event{link.process().output(), POLLIN, 0};
    poll(&event, 1, static_cast<int>(kLook.count()));
    link.receive();
  }
  return link.printed();
}

}  // namespace

Expected<std::unique_ptr<Launcher>> make_engine_launcher(EngineOptions options) {
  const std::string program = find_program(engine_process({engine_program(options)}, ""));
  if (program.empty() || access(program.c_str(), X_OK) != 0) {
    const bool is_path = !program.empty();
    return fail(engine_failure(
        "engine-missing", fmt::format("{} is {}", engine_program(options), is_path ? "no program" : "not on the PATH"),
        install_hint(options.engine)));
  }
  auto listener = listen_anywhere();
  if (!listener) return fail(std::move(listener.error()));
  const MpiKind mpi = options.engine == Engine::kMpi ? mpi_kind(version_of(options)) : MpiKind::kOther;
  return std::make_unique<EngineLauncher>(std::move(options), mpi, Reception(std::move(*listener), make_secret()));
}

}  // namespace tangram::parallelizer
