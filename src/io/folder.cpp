#include "tangram/io/folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "missing_folder.hpp"
#include "tangram/io/file.hpp"

namespace tangram::io {

namespace {

namespace fs = std::filesystem;

constexpr int kMostFolders = 1000;

Diagnostic cannot_make_folder(const std::string& path, int error) {
  Diagnostic diagnostic;
  diagnostic.code = "cannot-write";
  diagnostic.where.file = path;
  diagnostic.message = fmt::format("cannot write the folder: {}", std::generic_category().message(error));
  diagnostic.hint = missing_folder_hint(path, error);
  return diagnostic;
}

Diagnostic already_there(const std::string& path, const char* what) {
  Diagnostic diagnostic;
  diagnostic.code = "folder-exists";
  diagnostic.where.file = path;
  diagnostic.message = what;
  diagnostic.hint = "give a folder that does not exist yet; nothing is overwritten";
  return diagnostic;
}

std::string without_trailing_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Expected<OutputFolder> OutputFolder::open(std::string path) {
  path = without_trailing_slash(std::move(path));
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status) && !fs::is_directory(status)) return fail(already_there(path, "there is a file of this name"));
  if (fs::exists(status) && !fs::is_empty(path, error)) return fail(already_there(path, "the folder is not empty"));
  for (int attempt = 0; attempt < kMostFolders; ++attempt) {
    std::string temporary = fmt::format("{}.{}-{}.tmp", path, ::getpid(), attempt);
    if (::mkdir(temporary.c_str(), 0777) == 0) return OutputFolder(std::move(path), std::move(temporary));
    if (errno != EEXIST) return fail(cannot_make_folder(path, errno));
  }
  return fail(cannot_make_folder(path, EEXIST));
}

OutputFolder::OutputFolder(std::string path, std::string temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

OutputFolder& OutputFolder::operator=(OutputFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  return *this;
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Expected<void> OutputFolder::add(const std::string& name, std::string_view content, bool executable) {
  const fs::path target = fs::path(temporary_) / name;
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) return fail(cannot_make_folder(path_, error.value()));
  auto file = OutputFile::open(target.string());
  if (!file) return fail(std::move(file.error()));
  if (auto written = file->commit(content); !written) return written;
  if (executable) {
    // Whoever may read may run it: the umask has already been applied to the read bits.
    const fs::perms readable = fs::status(target, error).permissions();
    auto wanted = readable;
    if ((readable & fs::perms::owner_read) != fs::perms::none) wanted |= fs::perms::owner_exec;
    if ((readable & fs::perms::group_read) != fs::perms::none) wanted |= fs::perms::group_exec;
    if ((readable & fs::perms::others_read) != fs::perms::none) wanted |= fs::perms::others_exec;
    fs::permissions(target, wanted, error);
    if (error) return fail(cannot_make_folder(path_, error.value()));
  }
  return {};
}

Expected<void> OutputFolder::commit() {
  // Replaces an empty folder and nothing else.
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return fail(cannot_make_folder(path_, errno));
  temporary_.clear();
  return {};
}

}  // namespace tangram::io
