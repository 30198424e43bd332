// How ranks meet. Goes in: one coroutine per rank. Comes out: nothing, or what stopped the run. Ranks take turns on one
// thread in a fixed order: every run is the same run, and a rank that waits for what will never come is known at once,
// with its name, instead of hanging.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "matrix.hpp"
#include "tangram/base/at.hpp"
#include "tangram/execute/finding.hpp"
#include "task.hpp"

namespace tangram::execute {

/// Thrown by a rank that cannot go on; ends the whole run, whatever the others wait for.
struct RunStopped {
  Finding finding;
};

enum class Collective : std::uint8_t { kAllReduce, kMaximum, kAllGather, kReduceScatter, kAllToAll, kSumOfSlices };

using Contribution = std::vector<Matrix>;

/// One collective: what each member brought, in the order of the group.
struct Rendezvous {
  Collective operation = Collective::kAllReduce;
  std::vector<Contribution> contributions;
  int arrived = 0;
  std::vector<CallStack*> waiting;
  std::vector<std::optional<Matrix>> combined;  ///< worked out by the first member that asks, shared by all

  /// Sum or element-wise maximum over the members of their k-th matrices.
  [[nodiscard]] const Matrix& total(std::size_t k = 0);
};

/// Ranks that meet, in an order that all of them know.
struct Group {
  std::string name;  ///< "tp of stage 3"
  std::vector<int> members;
  std::shared_ptr<Rendezvous> open;  ///< the next one, as far as members have arrived

  [[nodiscard]] int size() const { return static_cast<int>(members.size()); }
  [[nodiscard]] int position(int rank) const;
};

inline constexpr int kHandover = -1;

struct MessageKey {
  int source = 0;
  int target = 0;
  int transfer = 0;  ///< its place in the list of the boundary
  bool backward = false;
  std::int64_t microbatch = 0;
  int cut = 0;  ///< that it crosses, counted along the chain; kHandover: between an encoder and the language model,
                ///< where `transfer` is the encoder and `microbatch` the sample
  auto operator<=>(const MessageKey&) const = default;
};

class Communicator {
 public:
  /// `names`: how a finding calls the ranks.
  explicit Communicator(std::vector<std::string> names) : names_(std::move(names)), waits_(names_.size()) {}

  /// Lives as long as the communicator. The same name and members give the same group.
  [[nodiscard]] Group* group(std::string name, std::vector<int> members);

  // Awaitables: each is constructed and awaited in one expression by the rank itself.
  struct Exchange {
    Communicator& communicator;
    Group& group;
    int rank;
    std::shared_ptr<Rendezvous> rendezvous;
    [[nodiscard]] bool await_ready() const { return rendezvous->arrived == group.size(); }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> waiting) {
      rendezvous->waiting.push_back(block(waiting.promise()));
    }
    [[nodiscard]] std::shared_ptr<Rendezvous> await_resume() {
      communicator.waits_for(rank) = {};
      return rendezvous;
    }
  };
  [[nodiscard]] Exchange exchange(Group& group, int rank, Collective operation, Contribution contribution);

  struct Receive {
    Communicator& communicator;
    MessageKey key;
    [[nodiscard]] bool await_ready() const { return communicator.mail_.contains(key); }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> waiting) {
      communicator.expect(key, block(waiting.promise()));
    }
    [[nodiscard]] Matrix await_resume();
  };
  [[nodiscard]] Receive receive(const MessageKey& key) { return {*this, key}; }
  /// Never waits: the message is kept until it is asked for.
  void send(const MessageKey& key, Matrix message);

  // Collectives, in the terms of the runtimes. A group of one costs nothing.
  [[nodiscard]] Task<Matrix> all_reduce(Group& group, int rank, Matrix matrix);
  [[nodiscard]] Task<Matrix> maximum(Group& group, int rank, Matrix matrix);
  /// Along the sequence: the members' positions one behind the other.
  [[nodiscard]] Task<Matrix> gather_positions(Group& group, int rank, Matrix matrix, int samples);
  /// The sum of all, and of it the member's piece of the positions.
  [[nodiscard]] Task<Matrix> scatter_positions(Group& group, int rank, Matrix matrix, int samples);

  /// Runs all ranks to their end. The finding of the rank that stopped the run, or of the deadlock.
  [[nodiscard]] std::optional<Finding> run(std::vector<Task<void>>& ranks);

  /// Messages that were sent and never asked for; of a finished run.
  [[nodiscard]] std::optional<Finding> unread() const;
  [[nodiscard]] std::int64_t messages() const { return messages_; }
  [[nodiscard]] std::int64_t collectives() const { return collectives_; }

 private:
  /// What a rank waits for: a collective of a group, or a message.
  struct Wait {
    const Group* group = nullptr;
    Collective operation = Collective::kAllReduce;
    MessageKey message;
  };
  [[nodiscard]] Wait& waits_for(int rank) { return at(waits_, rank); }
  [[nodiscard]] std::string sentence(const Wait& wait) const;
  static CallStack* block(const detail::PromiseBase& promise) {
    promise.stack->blocked = true;
    return promise.stack;
  }
  void expect(const MessageKey& key, CallStack* waiting);
  [[nodiscard]] Finding deadlock(const std::vector<Task<void>>& ranks) const;

  std::vector<std::string> names_;
  std::vector<Wait> waits_;
  std::map<std::pair<std::string, std::vector<int>>, std::unique_ptr<Group>> groups_;
  std::deque<CallStack*> ready_;
  std::map<MessageKey, Matrix> mail_;
  std::map<MessageKey, CallStack*> expected_;
  std::int64_t messages_ = 0;
  std::int64_t collectives_ = 0;
};

}  // namespace tangram::execute
