// Lines to and from a worker, without ever waiting for it. Goes in: lines to send. Comes out: whole lines that came,
// and the last of what the worker printed.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "output_log.hpp"
#include "tangram/parallelizer/launcher.hpp"

namespace tangram::parallelizer {

/// A line may have so many bytes; more is a protocol error, so that a worker cannot fill our memory.
inline constexpr std::size_t kLongestLine = std::size_t{64} << 20;
/// So much of what a worker prints is kept.
inline constexpr std::size_t kKeptOutput = std::size_t{64} << 10;

class Connection {
 public:
  explicit Connection(std::unique_ptr<WorkerProcess> process, OutputLog log = {})
      : process_(std::move(process)), log_(std::move(log)) {}

  void send(std::string_view text);  ///< queued, and written as far as the other end takes it
  void flush();
  [[nodiscard]] bool wants_to_write() const { return written_ < outgoing_.size(); }

  void receive();  ///< takes what is there from the channel and from the output
  [[nodiscard]] std::optional<std::string> next_line();
  [[nodiscard]] bool closed() const { return closed_; }          ///< the other end has: there will be no more lines
  [[nodiscard]] bool overlong() const { return overlong_; }      ///< a line without an end
  [[nodiscard]] bool prints() const { return !output_closed_; }  ///< it may still print
  [[nodiscard]] bool half_a_line() const { return !incoming_.empty(); }

  [[nodiscard]] const std::string& printed() const { return printed_; }  ///< the last of it
  [[nodiscard]] std::size_t bytes_printed() const { return bytes_printed_; }
  [[nodiscard]] WorkerProcess& process() { return *process_; }

 private:
  void receive_output();

  std::unique_ptr<WorkerProcess> process_;
  OutputLog log_;
  std::string outgoing_;
  std::size_t written_ = 0;
  std::string incoming_;
  std::size_t searched_ = 0;  ///< no line end before
  std::string printed_;
  std::size_t bytes_printed_ = 0;
  bool closed_ = false;
  bool output_closed_ = false;
  bool overlong_ = false;
};

}  // namespace tangram::parallelizer
