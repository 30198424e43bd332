#include "worker_pool.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "tangram/base/problem.hpp"

namespace tangram::parallelizer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLastWords{300};    // for a worker that closed its channel to end by itself, with its own status
constexpr milliseconds kCancelGrace{500};  // for one that says it can be cancelled
constexpr milliseconds kByeGrace{500};
constexpr milliseconds kDeadlinePoll{100};  // how often the time is asked for where a deadline ends the search
constexpr int kStartTries = 2;
constexpr std::size_t kMostBeforeHello = std::size_t{4}
                                         << 20;  // libraries warn in kilobytes; what prints on is no plugin

Diagnostics not_available(const std::string& message, const std::string& hint) {
  return {problem(ErrorKind::kPlugin, "plugin-unavailable", message, hint)};
}

std::string too_late(const char* what, milliseconds limit) {
  return fmt::format("no {} within {} s", what, static_cast<double>(limit.count()) / 1000);
}

}  // namespace

WorkerCommand worker_command(const PluginSpec& spec) {
  WorkerCommand command{spec.command, {}, spec.memory_limit};
  std::vector<std::string> inherited{"PATH",        "HOME",         "USER",       "TMPDIR",       "LD_LIBRARY_PATH",
                                     "VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION"};
  inherited.insert(inherited.end(), spec.pass_environment.begin(), spec.pass_environment.end());
  for (const std::string& name : inherited) {
    if (const char* value = std::getenv(name.c_str())) command.environment.emplace_back(name, value);
  }
  const std::string threads = std::to_string(spec.threads);
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                           "VECLIB_MAXIMUM_THREADS", "TANGRAM_THREADS"}) {
    command.environment.emplace_back(name, threads);
  }
  command.environment.emplace_back("PYTHONHASHSEED", "0");  // the order of sets must not decide a plan
  command.environment.emplace_back("PYTHONUNBUFFERED", "1");
  command.environment.emplace_back("LC_ALL", "C.UTF-8");
  command.environment.emplace_back("TZ", "UTC");
  command.environment.emplace_back("TANGRAM_FD", "3");
  command.environment.emplace_back("TANGRAM_PROTOCOL", std::to_string(kProtocol));
  for (const auto& variable : spec.environment) command.environment.push_back(variable);
  return command;
}

WorkerPool::WorkerPool(PluginSpec spec, PluginOptions options, Launcher& launcher)
    : spec_(std::move(spec)),
      options_(std::move(options)),
      launcher_(launcher),
      command_(worker_command(spec_)),
      plugin_(fail(not_available("not started", ""))) {
  most_workers_ = static_cast<std::size_t>(most_workers(spec_, options_));
  say_hello_first();
}

WorkerPool::~WorkerPool() {
  for (const auto& worker : workers_) worker->link.send(bye_line());
  for (const auto& worker : workers_) worker->link.process().stop(kByeGrace);
}

void WorkerPool::say_hello_first() {
  while (!plugin_ && failed_starts_ < kStartTries) {
    if (!start_worker()) continue;
    while (!workers_.empty() && workers_.front()->state == State::kStarting) {
      wait_for_events();
      look_at(*workers_.front(), nullptr);
      forget_gone();
    }
  }
}

bool WorkerPool::start_worker() {
  auto process = launcher_.launch(command_);
  if (!process) {
    ++failed_starts_;
    const Diagnostic& why = process.error().front();
    last_start_ = why.message;
    if (!plugin_) plugin_ = fail(not_available(last_start_, why.hint.empty() ? spec_.install : why.hint));
    return false;
  }
  workers_.push_back(std::make_unique<Worker>(std::move(*process), next_log()));
  workers_.back()->deadline = Clock::now() + spec_.start_timeout;
  return true;
}

OutputLog WorkerPool::next_log() {
  ++started_;
  if (options_.log_folder.empty()) return {};
  return OutputLog(fmt::format("{}/{}-{}.log", options_.log_folder, spec_.name, started_));
}

std::vector<Answer> WorkerPool::ask(std::span<const Question> questions, const AnswerCallback& came) {
  Batch batch(questions, failures_, came);
  if (!plugin_) {
    batch.fail_all({FailureKind::kUnavailable, plugin_.error().front().message, last_printed_});
  } else if (failures_ > kForgiven) {
    batch.fail_all({FailureKind::kGivenUp, "not asked any more after other failures", ""});
  }
  while (!batch.done()) {
    if (options_.deadline.has_passed()) {
      give_up(batch);
      break;
    }
    start_workers(batch);
    if (workers_.empty()) {
      batch.fail_all({FailureKind::kCrashed, fmt::format("cannot be started again: {}", last_start_), last_printed_});
      break;
    }
    hand_out(batch);
    wait_for_events();
    for (const auto& worker : workers_) look_at(*worker, &batch);
    drop_obsolete(batch);
    forget_gone();
  }
  failures_ += batch.failures();
  return batch.take_answers();
}

/// As many as there are questions for, unless starting keeps failing.
void WorkerPool::start_workers(const Batch& batch) {
  auto free = static_cast<std::size_t>(std::ranges::count_if(
      workers_, [](const auto& worker) { return worker->state == State::kIdle || worker->state == State::kStarting; }));
  const std::size_t wanted = batch.has_next() ? batch.waiting() : 0;
  while (free < wanted && workers_.size() < most_workers_ && failed_starts_ < kStartTries) {
    if (start_worker()) ++free;
  }
}

void WorkerPool::hand_out(Batch& batch) {
  for (const auto& worker : workers_) {
    if (!batch.has_next()) return;
    if (worker->state != State::kIdle) continue;
    const std::size_t index = batch.take_next();
    ask_worker(*worker, index, batch.question(index));
  }
}

void WorkerPool::ask_worker(Worker& worker, std::size_t index, const Question& question) {
  std::string text;
  for (const auto& material : question.materials) {
    if (worker.has.insert(material->digest).second) text += load_line(*material);
  }
  worker.id = ++last_id_;
  worker.question = index;
  worker.state = State::kAsked;
  worker.deadline = Clock::now() + spec_.query_timeout;
  text += solve_line(worker.id, spec_.query_timeout.count(), question);
  worker.link.send(text);
}

void WorkerPool::wait_for_events() const {
  std::vector<pollfd> events;
  events.reserve(2 * workers_.size());
  Clock::time_point next = Clock::time_point::max();
  for (const auto& worker : workers_) {
    const auto writing = static_cast<short>(worker->link.wants_to_write() ? POLLOUT : 0);
    events.push_back({worker->link.process().channel(), static_cast<short>(POLLIN | writing), 0});
    // Output that was closed would wake us for ever; poll(2) skips negative descriptors.
    events.push_back({worker->link.prints() ? worker->link.process().output() : -1, POLLIN, 0});
    if (worker->state != State::kIdle) next = std::min(next, worker->deadline);
  }
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
  const std::int64_t longest = options_.deadline.seconds() > 0 ? kDeadlinePoll.count() : 60'000;
  const auto patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, longest));
  poll(events.data(), events.size(), patience);
}

void WorkerPool::look_at(Worker& worker, Batch* batch) {
  worker.link.flush();
  worker.link.receive();
  for (auto line = worker.link.next_line(); line && worker.state != State::kGone; line = worker.link.next_line()) {
    const Message message = read_message(*line);
    handle(worker, message, std::move(*line), batch);
  }
  if (worker.state == State::kGone) return;
  if (worker.link.overlong()) {
    lose(worker, FailureKind::kProtocol, "sent a line without an end", batch);
  } else if (worker.link.closed()) {
    const char* how = worker.link.half_a_line()          ? "ended in the middle of a line"
                      : worker.state == State::kStarting ? "ended before hello"
                                                         : "ended without an answer";
    lose(worker, FailureKind::kCrashed, how, batch);
  } else if (worker.state == State::kStarting && worker.link.bytes_printed() > kMostBeforeHello) {
    lose(worker, FailureKind::kProtocol, fmt::format("printed {} MiB and said no hello", kMostBeforeHello >> 20),
         batch);
  } else {
    look_at_clock(worker, batch);
  }
}

void WorkerPool::handle(Worker& worker, const Message& message, std::string line, Batch* batch) {
  switch (message.type) {
    case MessageType::kHello:
      if (worker.state != State::kStarting) return;
      worker.state = State::kIdle;
      failed_starts_ = 0;
      if (!plugin_) plugin_ = message.info;
      return;
    case MessageType::kUnavailable:
      if (worker.state != State::kStarting) return;
      failed_starts_ = kStartTries;  // it said so itself: asking again brings nothing
      lose(worker, FailureKind::kUnavailable, message.text, batch);
      return;
    case MessageType::kAnswer:
      if (worker.state == State::kCancelled && message.id == worker.id) {
        worker.state = State::kIdle;
      } else if (worker.state == State::kAsked && message.id == worker.id && batch != nullptr) {
        worker.state = State::kIdle;
        batch->answer(worker.question, std::move(line));
        report_progress(*batch);
      } else {
        lose(worker, FailureKind::kProtocol,
             fmt::format("answered question {}, which it was not asked", message.id.value_or(0)), batch);
      }
      return;
    case MessageType::kProgress:
      if (options_.progress) options_.progress(fmt::format("{}: {}", spec_.name, excerpt(message.text)));
      return;
    case MessageType::kOther: return;
    case MessageType::kGarbage: lose(worker, FailureKind::kProtocol, "said " + message.text, batch); return;
  }
}

void WorkerPool::look_at_clock(Worker& worker, Batch* batch) {
  if (worker.state == State::kIdle || Clock::now() < worker.deadline) return;
  if (worker.state == State::kAsked && batch != nullptr && plugin_ && plugin_->capabilities.cancel) {
    batch->fail(worker.question,
                {FailureKind::kTimedOut, too_late("answer", spec_.query_timeout), worker.link.printed()});
    worker.link.send(cancel_line(worker.id));
    worker.state = State::kCancelled;
    worker.deadline = Clock::now() + kCancelGrace;
    return;
  }
  const bool starting = worker.state == State::kStarting;
  lose(worker, FailureKind::kTimedOut,
       starting ? too_late("hello", spec_.start_timeout) : too_late("answer", spec_.query_timeout), batch);
}

/// Workers on questions whose answers do not count any more.
void WorkerPool::drop_obsolete(Batch& batch) {
  for (const auto& worker : workers_) {
    if (worker->state != State::kAsked || !batch.is_moot(worker->question)) continue;
    worker->link.process().stop(milliseconds(0));
    worker->state = State::kGone;
  }
}

void WorkerPool::lose(Worker& worker, FailureKind kind, const std::string& why, Batch* batch) {
  const State state = worker.state;
  worker.state = State::kGone;
  const bool by_itself = kind == FailureKind::kCrashed || kind == FailureKind::kUnavailable;
  const std::string end = worker.link.process().stop(by_itself ? kLastWords : milliseconds(0));
  worker.link.receive();
  last_printed_ = worker.link.printed();
  const std::string message = kind == FailureKind::kCrashed ? fmt::format("{}: {}", why, end) : why;
  if (state == State::kStarting) {
    ++failed_starts_;
    last_start_ = message;
    if (!plugin_) plugin_ = fail(not_available(message, spec_.install));
  } else if (state == State::kAsked && batch != nullptr) {
    batch->fail(worker.question, {kind, message, last_printed_});
  }
}

/// Nobody waits for answers any more.
void WorkerPool::give_up(Batch& batch) {
  for (const auto& worker : workers_) {
    if (worker->state != State::kAsked) continue;
    worker->link.process().stop(milliseconds(0));
    worker->state = State::kGone;
  }
  forget_gone();
  batch.fail_all({FailureKind::kGivenUp, "the time limit was over", ""});
}

void WorkerPool::forget_gone() {
  std::erase_if(workers_, [](const auto& worker) { return worker->state == State::kGone; });
}

void WorkerPool::report_progress(const Batch& batch) const {
  if (!options_.progress) return;
  const std::size_t all = batch.answered() + batch.waiting() + batch.asked();
  options_.progress(fmt::format("{}: {} of {} queries", spec_.name, batch.answered(), all));
}

int most_workers(const PluginSpec& spec, const PluginOptions& options) {
  return std::clamp(options.slots / std::max(1, spec.threads), 1, spec.max_workers);
}

std::unique_ptr<AnswerSource> make_worker_pool(const PluginSpec& spec, const PluginOptions& options,
                                               Launcher& launcher) {
  return std::make_unique<WorkerPool>(spec, options, launcher);
}

}  // namespace tangram::parallelizer
