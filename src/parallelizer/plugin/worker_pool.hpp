// The workers of one plugin, and the one loop that talks to all of them. Goes in: batches of questions. Comes out:
// their answers. One question at a time per worker; everything waits in a single poll(2).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "batch.hpp"
#include "connection.hpp"
#include "messages.hpp"
#include "tangram/parallelizer/plugin.hpp"

namespace tangram::parallelizer {

class WorkerPool final : public AnswerSource {
 public:
  WorkerPool(PluginSpec spec, PluginOptions options, Launcher& launcher);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool() override;

  [[nodiscard]] const Expected<PluginInfo>& plugin() const override { return plugin_; }
  [[nodiscard]] std::vector<Answer> ask(std::span<const Question> questions, const AnswerCallback& came) override;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { kStarting, kIdle, kAsked, kCancelled, kGone };

  struct Worker {
    Worker(std::unique_ptr<WorkerProcess> process, OutputLog log) : link(std::move(process), std::move(log)) {}
    Connection link;
    State state = State::kStarting;
    Clock::time_point deadline;
    std::int64_t id = 0;        ///< of what it was asked
    std::size_t question = 0;   ///< index in the batch
    std::set<std::string> has;  ///< digests of materials
  };

  void say_hello_first();
  bool start_worker();
  [[nodiscard]] OutputLog next_log();
  void start_workers(const Batch& batch);
  void hand_out(Batch& batch);
  void ask_worker(Worker& worker, std::size_t index, const Question& question);
  void wait_for_events() const;
  void look_at(Worker& worker, Batch* batch);
  void handle(Worker& worker, const Message& message, std::string line, Batch* batch);
  void look_at_clock(Worker& worker, Batch* batch);
  void drop_obsolete(Batch& batch);
  /// The worker is stopped and its question, if any, has failed.
  void lose(Worker& worker, FailureKind kind, const std::string& why, Batch* batch);
  void forget_gone();
  void give_up(Batch& batch);
  void report_progress(const Batch& batch) const;

  PluginSpec spec_;
  PluginOptions options_;
  Launcher& launcher_;
  WorkerCommand command_;
  Expected<PluginInfo> plugin_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t most_workers_ = 1;
  int started_ = 0;        ///< workers, ever: their logs are numbered
  int failed_starts_ = 0;  ///< in a row
  std::string last_start_;
  std::string last_printed_;
  std::int64_t last_id_ = 0;
  std::size_t failures_ = 0;  ///< of all batches
};

/// Everything a worker finds in its environment: a short list of what is inherited, caps on threads, and what makes
/// answers repeat (PYTHONHASHSEED, LC_ALL, TZ).
[[nodiscard]] WorkerCommand worker_command(const PluginSpec& spec);

}  // namespace tangram::parallelizer
