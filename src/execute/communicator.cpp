#include "communicator.hpp"

#include <algorithm>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

constexpr const char* name_of(Collective operation) {
  switch (operation) {
    case Collective::kAllReduce: return "all-reduce";
    case Collective::kMaximum: return "maximum";
    case Collective::kAllGather: return "all-gather";
    case Collective::kReduceScatter: return "reduce-scatter";
    case Collective::kAllToAll: return "all-to-all";
    case Collective::kSumOfSlices: return "sum of slices";
  }
  return "collective";
}

std::string message_name(const MessageKey& key, const std::vector<std::string>& names) {
  return std::string(key.backward ? "the gradient" : "the activation") +
         (key.cut == kHandover ? " of sample " : " of microbatch ") + std::to_string(key.microbatch) + " from " +
         at(names, key.source);
}

/// What members bring to a sum must have one shape.
bool must_agree(Collective operation) {
  return operation == Collective::kAllReduce || operation == Collective::kMaximum ||
         operation == Collective::kReduceScatter;
}

}  // namespace

const Matrix& Rendezvous::total(std::size_t k) {
  if (combined.size() <= k) combined.resize(k + 1);
  std::optional<Matrix>& total = combined[k];
  if (total) return *total;
  Matrix result = contributions.front()[k];
  for (std::size_t i = 1; i < contributions.size(); ++i) {
    const Matrix& other = contributions[i][k];
    if (operation == Collective::kMaximum) {
      std::ranges::transform(result.values(), other.values(), result.values().begin(),
                             [](double a, double b) { return std::max(a, b); });
    } else {
      result += other;
    }
  }
  return total.emplace(std::move(result));
}

int Group::position(int rank) const { return static_cast<int>(std::ranges::find(members, rank) - members.begin()); }

Group* Communicator::group(std::string name, std::vector<int> members) {
  std::pair<std::string, std::vector<int>> key(std::move(name), std::move(members));
  auto& entry = groups_[key];
  if (!entry) entry = std::make_unique<Group>(Group{key.first, key.second, nullptr});
  return entry.get();
}

Communicator::Exchange Communicator::exchange(Group& group, int rank, Collective operation, Contribution contribution) {
  if (!group.open) {
    group.open = std::make_shared<Rendezvous>();
    group.open->operation = operation;
    group.open->contributions.resize(group.members.size());
  }
  const std::shared_ptr<Rendezvous> rendezvous = group.open;
  const int position = group.position(rank);
  TANGRAM_ASSERT(position < group.size());
  const auto refuse = [&](const std::string& what) {
    throw RunStopped{{"collective-mismatch", at(names_, rank), group.name + ": " + what}};
  };
  if (rendezvous->operation != operation) {
    refuse(std::string("joins with ") + name_of(operation) + " what others began as " + name_of(rendezvous->operation));
  }
  if (must_agree(operation) && rendezvous->arrived > 0) {
    const auto some = std::ranges::find_if(rendezvous->contributions, [](const Contribution& d) { return !d.empty(); });
    for (std::size_t k = 0; k < contribution.size(); ++k) {
      if (some->size() != contribution.size() || !(*some)[k].same_shape(contribution[k]))
        refuse("brings another shape");
    }
  }
  at(rendezvous->contributions, position) = std::move(contribution);
  if (++rendezvous->arrived == group.size()) {
    ++collectives_;
    group.open = nullptr;
    for (CallStack* waiting : rendezvous->waiting) ready_.push_back(waiting);
  } else {
    waits_for(rank) = {&group, operation, {}};
  }
  return {*this, group, rank, rendezvous};
}

void Communicator::expect(const MessageKey& key, CallStack* waiting) {
  expected_[key] = waiting;
  waits_for(key.target) = {nullptr, Collective::kAllReduce, key};
}

Matrix Communicator::Receive::await_resume() {
  communicator.waits_for(key.target) = {};
  auto found = communicator.mail_.extract(key);
  return std::move(found.mapped());
}

void Communicator::send(const MessageKey& key, Matrix message) {
  ++messages_;
  mail_[key] = std::move(message);
  if (const auto waiting = expected_.extract(key)) ready_.push_back(waiting.mapped());
}

Task<Matrix> Communicator::all_reduce(Group& group, int rank, Matrix matrix) {
  if (group.size() == 1) co_return matrix;
  Contribution contribution;
  contribution.push_back(std::move(matrix));
  const auto rendezvous = co_await exchange(group, rank, Collective::kAllReduce, std::move(contribution));
  co_return rendezvous->total();
}

Task<Matrix> Communicator::maximum(Group& group, int rank, Matrix matrix) {
  if (group.size() == 1) co_return matrix;
  Contribution contribution;
  contribution.push_back(std::move(matrix));
  const auto rendezvous = co_await exchange(group, rank, Collective::kMaximum, std::move(contribution));
  co_return rendezvous->total();
}

Task<Matrix> Communicator::gather_positions(Group& group, int rank, Matrix matrix, int samples) {
  if (group.size() == 1) co_return matrix;
  Contribution contribution;
  contribution.push_back(std::move(matrix));
  const auto rendezvous = co_await exchange(group, rank, Collective::kAllGather, std::move(contribution));
  std::vector<const Matrix*> pieces;
  for (const Contribution& member : rendezvous->contributions) pieces.push_back(&member.front());
  co_return join_positions(pieces, samples);
}

Task<Matrix> Communicator::scatter_positions(Group& group, int rank, Matrix matrix, int samples) {
  if (group.size() == 1) co_return matrix;
  const int positions = samples == 0 ? 0 : matrix.rows() / samples;
  Contribution contribution;
  contribution.push_back(std::move(matrix));
  const auto rendezvous = co_await exchange(group, rank, Collective::kReduceScatter, std::move(contribution));
  co_return slice_positions(rendezvous->total(), samples, piece(positions, group.position(rank), group.size()));
}

std::optional<Finding> Communicator::run(std::vector<Task<void>>& ranks) {
  std::vector<CallStack> stacks(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].begin(stacks[r]);
    ready_.push_back(&stacks[r]);
  }
  while (!ready_.empty()) {
    CallStack* next = ready_.front();
    ready_.pop_front();
    next->run();
  }
  // A rank that stopped leaves others waiting for it, so it is asked first.
  try {
    for (const Task<void>& rank : ranks) {
      if (rank.done()) rank.rethrow();
    }
  } catch (const RunStopped& stopped) {
    return stopped.finding;
  }
  const bool all_done = std::ranges::all_of(ranks, [](const Task<void>& rank) { return rank.done(); });
  if (!all_done) return deadlock(ranks);
  return unread();
}

std::string Communicator::sentence(const Wait& wait) const {
  if (wait.group != nullptr) return std::string(name_of(wait.operation)) + " of " + wait.group->name;
  return message_name(wait.message, names_);
}

Finding Communicator::deadlock(const std::vector<Task<void>>& ranks) const {
  constexpr int kShown = 4;
  int waiting = 0;
  std::string text;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].done()) continue;
    if (waiting++ < kShown) text += (text.empty() ? "" : "; ") + names_[r] + " waits for " + sentence(waits_[r]);
  }
  return {"deadlock", "execution", std::to_string(waiting) + " ranks wait for what never comes: " + text};
}

std::optional<Finding> Communicator::unread() const {
  if (mail_.empty()) return std::nullopt;
  const MessageKey& key = mail_.begin()->first;
  return Finding{
      "message-unread", at(names_, key.target),
      "never asks for " + message_name(key, names_) + " (" + std::to_string(mail_.size()) + " such messages)"};
}

}  // namespace tangram::execute
