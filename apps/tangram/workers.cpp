#include "workers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "tangram/base/problem.hpp"
#include "tangram/parallelizer/remote.hpp"

namespace tangram::app {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostSlots = 4096;

/// A count that Slurm puts into the environment of what runs in an allocation.
std::optional<std::int64_t> slurm_count(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1) return std::nullopt;
  return value;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t space = std::min(text.find(' ', from), text.size());
    if (space > from) words.emplace_back(text.substr(from, space - from));
    from = space + 1;
  }
  return words;
}

Diagnostic no_log_folder(const std::string& folder, const std::string& why) {
  return problem(ErrorKind::kInput, "cannot-write", fmt::format("--plugin-log-dir {}: {}", folder, why));
}

Expected<void> make_log_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(no_log_folder(folder, error.message()));
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return fail(no_log_folder(folder, std::error_code(errno, std::generic_category()).message()));
  }
  return {};
}

}  // namespace

int planning_slots(const Settings& settings) {
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return static_cast<int>(std::min(settings.count("jobs").value_or(cores), kMostSlots));
}

int worker_slots(const Settings& settings) {
  if (const auto cores = settings.count("worker-cores")) return static_cast<int>(std::min(*cores, kMostSlots));
  if (settings.text("workers") == "slurm") {
    if (const auto tasks = slurm_count("SLURM_NTASKS")) {
      const std::int64_t each = slurm_count("SLURM_CPUS_PER_TASK").value_or(1);
      return static_cast<int>(std::min(std::min(*tasks, kMostSlots) * std::min(each, kMostSlots), kMostSlots));
    }
  }
  return planning_slots(settings);
}

Expected<parallelizer::PluginOptions> plugin_options(const Settings& settings, int slots, const Progress& progress) {
  parallelizer::PluginOptions options{slots, progress, settings.text("plugin-log-dir")};
  if (options.log_folder.empty()) return options;
  if (auto made = make_log_folder(options.log_folder); !made) return fail(std::move(made.error()));
  return options;
}

Expected<std::unique_ptr<parallelizer::Launcher>> make_launcher(const Settings& settings, int workers, int threads,
                                                                const Progress& progress) {
  const std::string& where = settings.text("workers");
  if (where == "local") return parallelizer::make_local_launcher();
  parallelizer::EngineOptions options;
  options.engine = where == "slurm" ? parallelizer::Engine::kSlurm : parallelizer::Engine::kMpi;
  options.command = words_of(settings.text("worker-launcher"));
  std::error_code ignored;
  options.agent = fs::read_symlink("/proc/self/exe", ignored).string();
  options.workers = workers;
  options.threads = threads;
  if (const auto seconds = settings.amount("worker-wait")) {
    options.patience = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1e3));
  }
  options.progress = progress;
  return parallelizer::make_engine_launcher(std::move(options));
}

}  // namespace tangram::app
