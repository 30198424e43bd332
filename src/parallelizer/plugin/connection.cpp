#include "connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tangram::parallelizer {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::size_t kMostAtOnce = std::size_t{1}
                                    << 20;  // of output, so that a worker that only prints starves nobody

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void Connection::send(std::string_view text) {
  outgoing_ += text;
  flush();
}

void Connection::flush() {
  while (wants_to_write()) {
    const ssize_t sent =
        ::send(process_->channel(), outgoing_.data() + written_, outgoing_.size() - written_, MSG_NOSIGNAL);
    if (sent < 0) {
      if (!would_block()) closed_ = true;
      return;
    }
    written_ += static_cast<std::size_t>(sent);
  }
  outgoing_.clear();
  written_ = 0;
}

void Connection::receive() {
  char chunk[kChunk];
  while (!closed_ && !overlong_) {
    const ssize_t got = recv(process_->channel(), chunk, sizeof chunk, 0);
    if (got > 0) {
      incoming_.append(chunk, static_cast<std::size_t>(got));
      overlong_ = incoming_.size() > kLongestLine && incoming_.find('\n', searched_) == std::string::npos;
    }
    if (got == 0 || (got < 0 && !would_block())) closed_ = true;
    if (got < static_cast<ssize_t>(sizeof chunk)) break;
  }
  receive_output();
}

void Connection::receive_output() {
  char chunk[kChunk];
  for (std::size_t taken = 0; taken < kMostAtOnce;) {
    const ssize_t got = read(process_->output(), chunk, sizeof chunk);
    output_closed_ = output_closed_ || got == 0;
    if (got <= 0) break;
    const std::string_view text(chunk, static_cast<std::size_t>(got));
    taken += text.size();
    bytes_printed_ += text.size();
    printed_ += text;
    log_.append(text);
    if (printed_.size() > kKeptOutput) printed_.erase(0, printed_.size() - kKeptOutput);
  }
}

std::optional<std::string> Connection::next_line() {
  const std::size_t end = incoming_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = incoming_.size();
    return std::nullopt;
  }
  std::string line = incoming_.substr(0, end);
  incoming_.erase(0, end + 1);
  searched_ = 0;
  return line;
}

}  // namespace tangram::parallelizer
