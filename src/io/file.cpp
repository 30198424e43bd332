#include "tangram/io/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "missing_folder.hpp"

namespace tangram::io {

namespace {

Diagnostic file_error(const std::string& path, std::string code, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where.file = path == "-" ? "<stdin>" : path;
  diagnostic.message = std::move(message);
  return diagnostic;
}

std::string reason(int error) { return std::generic_category().message(error); }

Diagnostic cannot_read(const std::string& path, int error) {
  return file_error(path, "cannot-read", fmt::format("cannot read the file: {}", reason(error)));
}

Diagnostic cannot_write(const std::string& path, int error) {
  Diagnostic d = file_error(path, "cannot-write", fmt::format("cannot write the file: {}", reason(error)));
  d.hint = missing_folder_hint(path, error);
  return d;
}

class Descriptor {
 public:
  Descriptor(int value, bool owned) : value_(value), owned_(owned) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (owned_ && value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
  bool owned_;
};

// 0, or errno.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// The file a rename must replace: behind symbolic links. The path itself where nothing is yet; an errno where links
// lead nowhere.
int resolve(std::string& path) {
  std::error_code failure;
  const auto real = std::filesystem::canonical(path, failure);
  if (!failure) path = real.string();
  return failure == std::errc::too_many_symbolic_link_levels ? failure.value() : 0;
}

constexpr int kAttempts = 1000;

}  // namespace

Expected<std::string> read_file(const std::string& path, std::size_t limit_bytes) {
  const bool from_stdin = path == "-";
  const Descriptor file(from_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC), !from_stdin);
  if (file.get() < 0) return fail(cannot_read(path, errno));
  std::string content;
  std::array<char, 1U << 16> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(cannot_read(path, errno));
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > limit_bytes) {
      return fail(file_error(path, "cannot-read", fmt::format("the file is larger than {} bytes", limit_bytes)));
    }
  }
}

Expected<OutputFile> OutputFile::open(std::string path) {
  if (path.empty()) return fail(cannot_write("\"\"", ENOENT));
  if (const int failure = resolve(path); failure != 0) return fail(cannot_write(path, failure));
  struct stat existing{};
  const bool exists = ::stat(path.c_str(), &existing) == 0;
  if (exists && S_ISDIR(existing.st_mode)) return fail(cannot_write(path, EISDIR));
  if (exists && !S_ISREG(existing.st_mode)) {  // a pipe or device is written to, never replaced
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(cannot_write(path, errno));
    return OutputFile(std::move(path), {}, descriptor);
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) return fail(cannot_write(path, errno));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string temporary = fmt::format("{}.{}-{}.tmp", path, ::getpid(), attempt);
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno == EEXIST) continue;
    if (descriptor < 0) return fail(cannot_write(path, errno));
    // A replaced file keeps its permissions; where that is not allowed the usual ones serve.
    if (exists && ::fchmod(descriptor, existing.st_mode & 07777U) != 0) errno = 0;
    return OutputFile(std::move(path), std::move(temporary), descriptor);
  }
  return fail(cannot_write(path, EEXIST));
}

OutputFile::OutputFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Expected<void> OutputFile::commit(std::string_view content) {
  int error = write_all(descriptor_, content);
  // On the disk before the name changes: a crash leaves the old file or the new one.
  if (error == 0 && !temporary_.empty() && ::fsync(descriptor_) != 0) error = errno;
  if (::close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
  if (error == 0 && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      error = errno;
    } else {
      temporary_.clear();
    }
  }
  if (error != 0) return fail(cannot_write(path_, error));
  return {};
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

}  // namespace tangram::io
