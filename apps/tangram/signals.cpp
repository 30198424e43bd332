#include "signals.hpp"

#include <pthread.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace tangram::app {

namespace {
constexpr int kStop = SIGUSR2;  // sent by the destructor to its own thread
}

SignalGuard::SignalGuard() {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, kStop}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { wait(); });
}

SignalGuard::~SignalGuard() {
  pthread_kill(thread_.native_handle(), kStop);
  thread_.join();
}

Expected<io::OutputFile> SignalGuard::open(const std::string& path) {
  const std::lock_guard lock(mutex_);  // the waiting thread cannot end the process between the file and its name
  auto output = io::OutputFile::open(path);
  if (output) temporary_ = output->temporary();
  return output;
}

Expected<io::OutputFolder> SignalGuard::open_folder(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto output = io::OutputFolder::open(path);
  if (output) temporary_ = output->temporary();
  return output;
}

void SignalGuard::release() {
  const std::lock_guard lock(mutex_);
  temporary_.clear();
  written_ = true;
}

void SignalGuard::wait() {
  int signal = 0;
  if (sigwait(&signals_, &signal) != 0 || signal == kStop) return;
  const std::lock_guard lock(mutex_);
  std::error_code failure;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, failure);
  constexpr std::string_view kNothing = "\ninterrupted: nothing was written\n";
  constexpr std::string_view kAfter = "\ninterrupted: what was written before stays\n";
  const std::string_view message = written_ ? kAfter : kNothing;
  [[maybe_unused]] const auto ignored = write(STDERR_FILENO, message.data(), message.size());
  _exit(128 + signal);
}

}  // namespace tangram::app
