#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "descriptor.hpp"
#include "guard.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/parallelizer/launcher.hpp"

namespace tangram::parallelizer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMostForGuard{3'000};  // it kills and reaps: longer than its own patience

Diagnostic system_failure(const std::string& what) {
  return problem(ErrorKind::kPlugin, "worker-not-started", fmt::format("{}: {}", what, std::strerror(errno)));
}

/// Both ends of a pipe or a socket pair.
struct Ends {
  Descriptor ours;
  Descriptor theirs;
};

/// A private folder. The guard takes it along with the worker; we do where no guard came to be.
class Folder {
 public:
  static Expected<Folder> make() {
    std::error_code ignored;
    std::string path = (std::filesystem::temp_directory_path(ignored) / "tangram-worker-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) return fail(system_failure(path));
    return Folder(path);
  }
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Folder& operator=(Folder&&) = delete;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

std::string describe(const GuardReport& report) {
  if (report.kind == GuardReport::kNotRun) return fmt::format("cannot be run: {}", std::strerror(report.value));
  if (WIFSIGNALED(report.value)) {
    const int signal = WTERMSIG(report.value);
    const char* words = sigdescr_np(signal);
    return fmt::format("signal {} ({})", signal, words == nullptr ? "unknown" : words);
  }
  return fmt::format("exit {}", WEXITSTATUS(report.value));
}

class LocalProcess final : public WorkerProcess {
 public:
  LocalProcess(pid_t guard, milliseconds grace, std::optional<Folder> folder, Descriptor channel, Descriptor output,
               Descriptor life, Descriptor status)
      : guard_(guard),
        grace_(grace),
        folder_(std::move(folder)),
        channel_(std::move(channel)),
        output_(std::move(output)),
        life_(std::move(life)),
        status_(std::move(status)) {}
  ~LocalProcess() override { stop(milliseconds(0)); }

  [[nodiscard]] int channel() const override { return channel_.number(); }
  [[nodiscard]] int output() const override { return output_.number(); }

  std::string stop(milliseconds grace) override {
    if (guard_ < 0) return end_;
    const bool by_itself = read_report(grace);
    life_.reset();
    if (!by_itself && !read_report(2 * grace_ + kMostForGuard)) kill(guard_, SIGKILL);
    waitpid(guard_, nullptr, 0);
    guard_ = -1;
    end_ = by_itself ? describe(report_) : "killed";
    return end_;
  }

 private:
  /// The last report wins: that the program could not be run is told by the worker, its end by the guard.
  bool read_report(milliseconds patience) {
    GuardReport report;
    pollfd event{status_.number(), POLLIN, 0};
    while (poll(&event, 1, static_cast<int>(patience.count())) > 0) {
      if (read(status_.number(), &report, sizeof report) != sizeof report) return true;  // the guard is gone
      const bool ended = report.kind == GuardReport::kEnded;
      if (!ended || report_.kind != GuardReport::kNotRun) report_ = report;
      if (ended) return true;
    }
    return false;
  }

  pid_t guard_;
  milliseconds grace_;
  std::optional<Folder> folder_;  ///< its own; none where it runs in another
  Descriptor channel_;
  Descriptor output_;
  Descriptor life_;
  Descriptor status_;
  GuardReport report_;
  std::string end_;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

class LocalLauncher final : public Launcher {
 public:
  [[nodiscard]] Expected<std::unique_ptr<WorkerProcess>> launch(const WorkerCommand& command) override {
    std::string program = find_program(command);
    if (program.empty()) {
      errno = ENOENT;
      return fail(system_failure(command.arguments.front()));
    }
    std::optional<Folder> own;
    if (command.folder.empty()) {
      auto made = Folder::make();
      if (!made) return fail(std::move(made.error()));
      own.emplace(std::move(*made));
    }
    Ends channel;
    Ends output;
    Ends life;
    Ends status;
    if (!open_ends(channel, output, life, status)) return fail(system_failure("pipes to a worker"));

    std::vector<std::string> arguments = command.arguments;
    std::vector<std::string> variables;
    variables.reserve(command.environment.size());
    for (const auto& [name, value] : command.environment) variables.push_back(fmt::format("{}={}", name, value));
    const std::vector<char*> argument_pointers = pointers(arguments);
    const std::vector<char*> variable_pointers = pointers(variables);
    GuardJob job;
    job.life = life.theirs.number();
    job.status = status.theirs.number();
    job.channel = channel.theirs.number();
    job.output = output.theirs.number();
    job.program = program.c_str();
    job.folder = own ? own->path().c_str() : command.folder.c_str();
    job.takes_folder = own.has_value();
    job.arguments = argument_pointers.data();
    job.environment = variable_pointers.data();
    job.grace = static_cast<int>(command.grace.count());
    job.memory_limit = command.memory_limit.value_or(Bytes(0)).value();

    const pid_t guard = fork();
    if (guard == 0) run_guard(job);
    if (guard < 0) return fail(system_failure("fork"));
    return std::make_unique<LocalProcess>(guard, command.grace, std::move(own), std::move(channel.ours),
                                          std::move(output.ours), std::move(life.ours), std::move(status.ours));
  }

 private:
  static bool open_ends(Ends& channel, Ends& output, Ends& life, Ends& status) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
    channel = {Descriptor(pair[0]), Descriptor(pair[1])};
    for (Ends* ends : {&output, &status}) {
      if (pipe2(pair, O_CLOEXEC) != 0) return false;
      *ends = {Descriptor(pair[0]), Descriptor(pair[1])};
    }
    if (pipe2(pair, O_CLOEXEC) != 0) return false;
    life = {Descriptor(pair[1]), Descriptor(pair[0])};  // we hold the end for writing and never write
    make_non_blocking(channel.ours);
    make_non_blocking(output.ours);
    return true;
  }
};

}  // namespace

std::string find_program(const WorkerCommand& command) {
  const std::string& name = command.arguments.front();
  if (name.find('/') != std::string::npos) return name;
  std::string path;
  for (const auto& [key, value] : command.environment) {
    if (key == "PATH") path = value;
  }
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t colon = std::min(path.find(':', from), path.size());
    const std::string candidate = path.substr(from, colon - from) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    from = colon + 1;
  }
  return "";
}

std::unique_ptr<Launcher> make_local_launcher() { return std::make_unique<LocalLauncher>(); }

}  // namespace tangram::parallelizer
