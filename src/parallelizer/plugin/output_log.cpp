#include "output_log.hpp"

#include <cerrno>

namespace tangram::parallelizer {

OutputLog::OutputLog(const std::string& file)
    : file_(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {}

void OutputLog::append(std::string_view printed) {
  if (!file_.open()) return;
  const std::string_view kept = printed.substr(0, left_);
  write(kept);
  left_ -= kept.size();
  if (kept.size() == printed.size()) return;
  write("\n... more was printed than a log may hold\n");
  file_.reset();
}

void OutputLog::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return file_.reset();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace tangram::parallelizer
