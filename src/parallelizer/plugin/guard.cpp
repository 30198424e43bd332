#include "guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace tangram::parallelizer {
namespace {

// Where the guard keeps its descriptors; the worker finds its channel at the number that the protocol names.
constexpr int kChannel = 3;
constexpr int kOutput = 4;
constexpr int kLife = 5;
constexpr int kStatus = 6;
constexpr int kFirstCopy = 64;    // copies are made out of the way before they are put in place
constexpr int kPatience = 2'000;  // milliseconds that stray descendants may take to vanish

void put_in_place(const GuardJob& job) {
  const int channel = fcntl(job.channel, F_DUPFD, kFirstCopy);
  const int output = fcntl(job.output, F_DUPFD, kFirstCopy);
  const int life = fcntl(job.life, F_DUPFD, kFirstCopy);
  const int status = fcntl(job.status, F_DUPFD, kFirstCopy);
  dup2(channel, kChannel);
  dup2(output, kOutput);
  dup2(life, kLife);
  dup2(status, kStatus);
  fcntl(kStatus, F_SETFD, FD_CLOEXEC);
  close_range(kStatus + 1, ~0U, 0);  // the pipes of other workers among them: their ends must not stay open here
}

void raise_out_of_memory_score() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const auto ignored = write(file, "1000", 4);  // when memory runs out the worker goes, not we
  close(file);
}

void send(GuardReport report) { [[maybe_unused]] const auto ignored = write(kStatus, &report, sizeof report); }

[[noreturn]] void become_worker(const GuardJob& job, pid_t guard) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(127);  // it went before the line above
  raise_out_of_memory_score();
  if (job.memory_limit > 0) {
    const auto bytes = static_cast<rlim_t>(job.memory_limit);
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_RDWR);
  dup2(null, STDIN_FILENO);
  dup2(kOutput, STDOUT_FILENO);
  dup2(kOutput, STDERR_FILENO);
  if (null > kStatus) close(null);
  close(kOutput);
  close(kLife);
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (chdir(job.folder) == 0) execve(job.program, job.arguments, job.environment);
  send({GuardReport::kNotRun, errno});
  _exit(127);
}

/// Kills every direct child: the kernel lists them as numbers between spaces (proc(5), .../children).
void kill_children() {
  const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  pid_t number = 0;
  char text[512];
  for (ssize_t got = read(file, text, sizeof text); got > 0; got = read(file, text, sizeof text)) {
    for (ssize_t i = 0; i < got; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        number = number * 10 + (text[i] - '0');
      } else {
        if (number > 0) kill(number, SIGKILL);
        number = 0;
      }
    }
  }
  close(file);
}

/// Until there is nobody left: each that dies hands its own children to us. They have `grace` milliseconds to go by
/// themselves: other guards may be among them, with workers and folders of their own to see to.
void clear_descendants(int grace) {
  for (int waited = 0; waited < grace + kPatience; ++waited) {
    const pid_t gone = waitpid(-1, nullptr, WNOHANG);
    if (gone > 0) continue;
    if (gone < 0 && errno != EINTR) return;  // ECHILD
    if (waited >= grace) kill_children();
    poll(nullptr, 0, 1);
  }
}

/// Removing a tree takes memory of the heap, which is not ours to use: another program does it.
[[noreturn]] void become_remover(const char* folder) {
  char* const nothing[] = {nullptr};
  execle("/bin/rm", "rm", "-rf", "--", folder, nullptr, nothing);
  _exit(127);
}

/// The status of the worker, once it has ended by itself or our owner wants it gone.
int wait_for_end(pid_t worker, int grace) {
  const int process = static_cast<int>(syscall(SYS_pidfd_open, worker, 0));  // glibc 2.36 declares it as C++
  pollfd events[] = {{kLife, POLLIN, 0}, {process, POLLIN, 0}};
  int status = 0;
  for (;;) {
    poll(events, 2, process < 0 ? 10 : -1);  // a kernel before 5.3: look from time to time
    if (events[0].revents != 0 && grace > 0) {
      kill(worker, SIGTERM);
      poll(&events[1], 1, grace);
    }
    if (events[0].revents != 0) kill(-worker, SIGKILL);
    if (events[0].revents != 0) kill(worker, SIGKILL);  // it may have left its group
    const int options = events[0].revents != 0 ? 0 : WNOHANG;
    if (waitpid(worker, &status, options) == worker) break;
  }
  kill(-worker, SIGKILL);
  return status;
}

}  // namespace

void run_guard(const GuardJob& job) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);  // what a terminal sends to our owner's group is not for us
  setpgid(0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  put_in_place(job);
  const pid_t guard = getpid();
  const pid_t worker = fork();
  if (worker == 0) become_worker(job, guard);
  close(kChannel);
  close(kOutput);
  const int null = open("/dev/null", O_RDWR);  // our owner's streams must not stay open here
  for (int stream = 0; stream <= STDERR_FILENO; ++stream) dup2(null, stream);
  if (worker < 0) {
    send({GuardReport::kNotRun, errno});
    _exit(0);
  }
  const int status = wait_for_end(worker, job.grace);
  clear_descendants(job.grace);
  send({GuardReport::kEnded, status});
  if (job.takes_folder) become_remover(job.folder);
  _exit(0);
}

}  // namespace tangram::parallelizer
