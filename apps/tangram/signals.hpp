// Signals that end the process, and its streams. A thread waits for the signals, removes what is half-written, and ends
// the process with 128 + the signal's number (SIGINT: 130, SIGTERM: 143).
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/folder.hpp"

namespace tangram::app {

/// Lives in main, before any other thread starts: threads inherit that they do not handle these signals themselves.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  /// Opens an output whose temporary file is removed when a signal ends the process, at whatever moment it comes.
  [[nodiscard]] Expected<io::OutputFile> open(const std::string& path);
  [[nodiscard]] Expected<io::OutputFolder> open_folder(const std::string& path);
  /// The output with this temporary name is written, it is not to be removed any more.
  void release(std::string_view temporary);
  /// All outputs are.
  void release();

 private:
  void wait();

  sigset_t signals_{};
  std::mutex mutex_;
  std::vector<std::string> temporaries_;
  bool written_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace tangram::app
