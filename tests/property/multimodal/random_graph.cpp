#include "random_graph.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "definition.hpp"
#include "support/random.hpp"
#include "tangram/base/at.hpp"

namespace tangram::tests {

namespace {

using multimodal::Price;
using multimodal::Stage;
using multimodal::StageGraph;
using testing::pick;

constexpr std::int64_t kMuchMemory = 1000;

class TreeMaker {
 public:
  TreeMaker(std::mt19937_64& random, const TreeFlavour& flavour) : random_(random), flavour_(flavour) {}

  RandomTree make() {
    constexpr std::array<double, 3> kEncoderShares{0.3, 0.6, 1.0};
    constexpr std::array<double, 2> kGeneratorShares{0.3, 0.8};
    const int encoders = pick(random_, 1, flavour_.most_encoders);
    for (int i = 0; i < encoders; ++i) {
      const int stages = pick(random_, 1, flavour_.most_encoder_stages);
      tree_.encoders.push_back(module(stages, at(kEncoderShares, pick(random_, 0, 2)), flavour_.frozen));
    }
    tree_.language = module(pick(random_, 1, flavour_.most_language_stages), 1, false);
    const int generators = pick(random_, 0, flavour_.most_generators);
    for (int i = 0; i < generators; ++i) {
      tree_.generators.push_back(module(pick(random_, 1, 2), at(kGeneratorShares, pick(random_, 0, 1)), false));
    }
    for (const auto& encoder : tree_.encoders) connect(encoder.back(), tree_.language.front());
    for (const auto& generator : tree_.generators) connect(tree_.language.back(), generator.front());
    return std::move(tree_);
  }

 private:
  std::vector<int> module(int stages, double share, bool frozen) {
    std::vector<int> numbers;
    for (int i = 0; i < stages; ++i) {
      numbers.push_back(static_cast<int>(tree_.graph.stages.size()));
      tree_.graph.stages.push_back(stage(share, frozen));
      if (i > 0) connect(numbers.back() - 1, numbers.back());
    }
    return numbers;
  }

  Stage stage(double share, bool frozen) {
    const double ratio = flavour_.uneven_ratio ? pick(random_, 1, 3) : 2;
    const double mean = flavour_.scale * share * (1 + flavour_.spread * (2 * part() - 1));
    Stage made;
    made.plan.T = std::max<std::int64_t>(2, std::llround(mean));
    made.plan.F = std::max<std::int64_t>(1, std::llround(mean / (1 + ratio)));
    made.plan.A = made.plan.T + std::llround(mean * 0.5 * part());
    made.plan.o = std::llround(flavour_.scale * 0.05);
    made.plan.n_max = kMuchMemory;
    if (!frozen) return made;
    made.prefetch = 2;
    made.plan.T = made.plan.A = made.plan.F;
    return made;
  }

  void connect(int from, int to) {
    Price price;
    price.latency = std::llround(flavour_.latency * flavour_.scale * part());
    if (flavour_.occupied_links) price.occupancy = std::llround(static_cast<double>(price.latency) * part());
    tree_.graph.edges.push_back({from, to, price});
  }

  double part() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  std::mt19937_64& random_;
  const TreeFlavour& flavour_;
  RandomTree tree_;
};

}  // namespace

RandomTree random_tree(std::mt19937_64& random, const TreeFlavour& flavour) {
  return TreeMaker(random, flavour).make();
}

void limit_memory(StageGraph& graph, std::int64_t period, std::mt19937_64& random, int more) {
  const std::vector<std::int64_t> needed = least_in_flight(graph, period);
  for (std::size_t s = 0; s < needed.size(); ++s) graph.stages[s].plan.n_max = needed[s] + pick(random, 0, more);
}

std::int64_t slowest_stage(const StageGraph& graph) {
  std::int64_t slowest = 0;
  for (const Stage& stage : graph.stages) slowest = std::max(slowest, stage.plan.T);
  return slowest;
}

}  // namespace tangram::tests
