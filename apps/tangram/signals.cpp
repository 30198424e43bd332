#include "signals.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

namespace tangram::app {

namespace {

constexpr int kStop = SIGUSR2;  // sent by the destructor to its own thread

void go_on(int) {}

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Signals that end a process and are sent to it, not raised by a fault of its own. Those that whoever started it wants
// ignored stay ignored, as nohup does with SIGHUP.
sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  const auto add = [&](int signal) {
    if (!is_ignored(signal)) sigaddset(&signals, signal);
  };
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTRAP, SIGABRT, SIGSYS, SIGUSR1, SIGALRM, SIGTERM, SIGSTKFLT,
                           SIGXCPU, SIGVTALRM, SIGPROF, SIGIO, SIGPWR}) {
    add(signal);
  }
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) add(signal);
  sigaddset(&signals, kStop);
  return signals;
}

// A write to a closed pipe or above the limit of a file's size then fails like any other, and what is half-written is
// removed. A handler, unlike SIG_IGN, is not inherited by the programs that are started.
void let_writes_fail() {
  struct sigaction action{};
  action.sa_handler = go_on;
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    if (!is_ignored(signal)) sigaction(signal, &action, nullptr);
  }
}

// A stream that was closed by whoever started the program would be the first file that is opened. What stands there
// instead refuses what the stream is for: closed streams are errors, not silence.
void fill_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int filled = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

SignalGuard::SignalGuard() : signals_(ending_signals()) {
  fill_closed_streams();
  let_writes_fail();
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { wait(); });
}

SignalGuard::~SignalGuard() {
  stopping_ = true;
  pthread_kill(thread_.native_handle(), kStop);
  thread_.join();
}

Expected<io::OutputFile> SignalGuard::open(const std::string& path) {
  const std::lock_guard lock(mutex_);  // the waiting thread cannot end the process between the file and its name
  auto output = io::OutputFile::open(path);
  if (output) temporaries_.push_back(output->temporary());
  return output;
}

Expected<io::OutputFolder> SignalGuard::open_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto output = io::OutputFolder::open(path);
  if (output) temporaries_.push_back(output->temporary());
  return output;
}

void SignalGuard::release(std::string_view temporary) {
  const std::lock_guard lock(mutex_);
  std::erase(temporaries_, temporary);
  written_ = true;
}

void SignalGuard::release() {
  const std::lock_guard lock(mutex_);
  temporaries_.clear();
  written_ = true;
}

void SignalGuard::wait() {
  int signal = 0;
  if (sigwait(&signals_, &signal) != 0 || stopping_) return;
  const std::lock_guard lock(mutex_);
  std::error_code failure;
  for (const std::string& temporary : temporaries_) {
    if (!temporary.empty()) std::filesystem::remove_all(temporary, failure);
  }
  constexpr std::string_view kNothing = "\ninterrupted: nothing was written\n";
  constexpr std::string_view kAfter = "\ninterrupted: what was written before stays\n";
  const std::string_view message = written_ ? kAfter : kNothing;
  [[maybe_unused]] const auto ignored = write(STDERR_FILENO, message.data(), message.size());
  _exit(128 + signal);
}

}  // namespace tangram::app
