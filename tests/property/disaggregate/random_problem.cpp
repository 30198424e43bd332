#include "random_problem.hpp"

#include <algorithm>

#include "support/random.hpp"
#include "tangram/base/at.hpp"

namespace tangram::tests {

namespace {

using disaggregate::Buffer;
using disaggregate::BufferKind;
using disaggregate::Problem;
using testing::pick;

bool happens(std::mt19937_64& random, int percent) { return pick(random, 1, 100) <= percent; }

void add_classes(Problem& problem, std::mt19937_64& random, const ProblemFlavour& flavour) {
  const int classes = pick(random, flavour.least_classes, flavour.most_classes);
  for (int c = 0; c < classes; ++c) {
    disaggregate::GpuClass& added = problem.classes.emplace_back();
    added.name = "gpu" + std::to_string(c);
    added.count = happens(random, 30) ? 2 : 1;
    if (flavour.tight_memory && happens(random, 60)) added.memory = pick(random, 5, 60);
  }
  problem.links = {classes, classes};
  const bool are_free = happens(random, 20);
  for (disaggregate::Link& link : problem.links) {
    if (are_free) continue;
    link.bytes_per_second = pick(random, 1, 10);
    link.seconds_per_message = pick(random, 0, 2);
    link.gpu_seconds = pick(random, 0, 2) * 0.5;
    link.lanes = happens(random, 20) ? 2 : 1;
  }
}

void add_kernels(Problem& problem, std::mt19937_64& random, const ProblemFlavour& flavour) {
  const int phases = pick(random, 1, 2);
  for (int f = 0; f < phases; ++f) {
    const int in_flight = flavour.few_in_flight ? pick(random, 1, 4) : 1'000'000;
    problem.phases.push_back({"phase" + std::to_string(f), pick(random, 1, 3) * 0.5, in_flight});
  }
  const int kernels = pick(random, 1, flavour.most_kernels);
  const int of_first = phases == 1 ? kernels : pick(random, 0, kernels);
  for (int k = 0; k < kernels; ++k) {
    disaggregate::Kernel& added = problem.kernels.emplace_back();
    added.phase = k < of_first ? 0 : 1;
    for (int c = 0; c < problem.class_count(); ++c) {
      added.seconds.push_back(happens(random, 5) ? disaggregate::kNever : pick(random, 1, 20));
    }
    added.seconds[static_cast<std::size_t>(pick(random, 0, problem.class_count() - 1))] = pick(random, 1, 20);
  }
}

// Some of the kernels [first, last).
std::vector<int> some(std::mt19937_64& random, int first, int last, int percent) {
  std::vector<int> chosen;
  for (int k = first; k < last; ++k) {
    if (happens(random, percent)) chosen.push_back(k);
  }
  return chosen;
}

void add_messages(Problem& problem, std::mt19937_64& random) {
  const int kernels = problem.kernel_count();
  for (int k = 0; k + 1 < kernels; ++k) {
    if (happens(random, 20)) continue;
    Buffer message;
    message.writer = k;
    message.bytes = pick(random, 0, 12);
    const bool stays = happens(random, 80);
    for (const int reader : some(random, k + 1, std::min(kernels, k + 5), 40)) {
      const bool is_same = at(problem.kernels, reader).phase == at(problem.kernels, k).phase;
      if (is_same == stays) message.readers.push_back(reader);
    }
    if (!stays) message.messages = 0.5;
    problem.buffers.push_back(std::move(message));
  }
}

void add_resident(Problem& problem, std::mt19937_64& random) {
  const int count = pick(random, 0, 5);
  for (int i = 0; i < count; ++i) {
    Buffer held;
    held.kind = happens(random, 60) ? BufferKind::kWeight : BufferKind::kCache;
    held.bytes = pick(random, 1, 12);
    held.readers = some(random, 0, problem.kernel_count(), 25);
    problem.buffers.push_back(std::move(held));
  }
}

}  // namespace

Problem random_problem(std::mt19937_64& random, const ProblemFlavour& flavour) {
  Problem problem;
  add_classes(problem, random, flavour);
  add_kernels(problem, random, flavour);
  add_messages(problem, random);
  add_resident(problem, random);
  return problem;
}

}  // namespace tangram::tests
