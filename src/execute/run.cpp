#include "run.hpp"

#include <set>

namespace tangram::execute {

namespace {

std::vector<std::string> names_of(const Job& job) {
  std::vector<std::string> names;
  names.reserve(job.ranks.size());
  for (const JobRank& rank : job.ranks) names.push_back("rank " + std::to_string(rank.number));
  return names;
}

/// Matrices that more than one part holds: those of mixed stages, of several pipelines, and tied embeddings.
std::map<std::string, Holders> shared_matrices(const Job& job, Run& run) {
  struct Found {
    std::set<const JobPart*> parts;
    std::vector<int> members;
    std::vector<const Parameter*> pieces;
  };
  std::map<std::string, Found> all;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    for (const Parameter& p : run.ranks[r]->parameters()) {
      if (p.encoder >= 0) continue;  // its copies are all who hold it
      Found& found = all[p.name];
      found.parts.insert(&job.part_of(job.ranks[r]));
      found.members.push_back(static_cast<int>(r));
      found.pieces.push_back(&p);
    }
  }
  std::map<std::string, Holders> shared;
  for (auto& [name, found] : all) {
    if (found.parts.size() < 2) continue;
    Group* group = run.communicator->group("all holders of " + name, std::move(found.members));
    shared[name] = {group, std::move(found.pieces)};
  }
  return shared;
}

}  // namespace

Run run(const Job& job, const Misbehaviour& misbehaviour) {
  Run result;
  result.communicator = std::make_unique<Communicator>(names_of(job));
  try {
    for (std::size_t r = 0; r < job.ranks.size(); ++r) {
      result.ranks.push_back(
          std::make_unique<RankProgram>(job, static_cast<int>(r), *result.communicator, misbehaviour));
    }
  } catch (const RunStopped& stopped) {
    result.stopped = stopped.finding;
    return result;
  }
  const std::map<std::string, Holders> shared = shared_matrices(job, result);
  std::vector<Task<void>> tasks;
  for (const auto& rank : result.ranks) {
    rank->set_holders(&shared);
    tasks.push_back(rank->run());
  }
  result.stopped = result.communicator->run(tasks);
  for (const auto& rank : result.ranks) {
    result.loss += rank->loss();
    rank->set_holders(nullptr);
  }
  result.messages = result.communicator->messages();
  result.collectives = result.communicator->collectives();
  return result;
}

}  // namespace tangram::execute
