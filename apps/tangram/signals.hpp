// SIGINT and SIGTERM. A thread waits for them, removes what is half-written, and ends the process with 130 or 143.
#pragma once

#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace tangram::app {

/// Lives in main, before any other thread starts: threads inherit that they do not handle these signals themselves.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  /// Removed when a signal ends the process; "" for nothing. Plans have one output file.
  void protect(std::string temporary_file);

 private:
  void wait();

  sigset_t signals_{};
  std::mutex mutex_;
  std::string temporary_file_;
  std::thread thread_;
};

}  // namespace tangram::app
