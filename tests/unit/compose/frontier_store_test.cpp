// Which slices are asked for, and which are known not to be worth it.
#include "frontier_store.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

// Has a plan for every slice of at most `fits` blocks, and nothing to say of longer ones.
class Brief final : public parallelizer::Parallelizer {
 public:
  Brief(int fits, bool modelled) : fits_(fits) { info_.modelled = modelled; }

  [[nodiscard]] const parallelizer::ParallelizerInfo& info() const override { return info_; }
  [[nodiscard]] std::vector<parallelizer::Outcome> solve(std::span<const parallelizer::Query> queries) const override {
    std::vector<parallelizer::Outcome> outcomes(queries.size());
    for (std::size_t i = 0; i < queries.size(); ++i) {
      const int blocks = queries[i].slice.block_count();
      longest_ = std::max(longest_, blocks);
      if (blocks <= fits_) outcomes[i].plans.emplace_back().n_max = 1;
    }
    return outcomes;
  }
  [[nodiscard]] int longest_asked() const { return longest_; }

 private:
  int fits_;
  parallelizer::ParallelizerInfo info_;
  mutable int longest_ = 0;
};

int longest_asked(const Brief& brief) {
  constexpr int kBlocks = 40;
  const model::Model model = model_of(kBlocks);
  const SignatureTable signatures(model);
  const std::vector<const parallelizer::Parallelizer*> parallelizers{&brief};
  FrontierStore store(model, signatures, parallelizers, {});
  const std::vector<int> entries{store.want({class_of(8, 1, 1).device, 1, 1, {}, {}}, 1, INT64_MAX / 4)};
  std::vector<int> lengths(kBlocks);
  std::iota(lengths.begin(), lengths.end(), 1);
  store.ask(entries, lengths);
  return brief.longest_asked();
}

}  // namespace

TEST_CASE("what a modelled parallelizer has no plan for, it has none for in longer slices") {
  // Lengths that differ by less than 8 are asked for together.
  const Brief brief(3, /*modelled=*/true);
  CHECK(longest_asked(brief) == 8);
}

TEST_CASE("what another one leaves out says nothing of longer slices") {
  const Brief brief(3, /*modelled=*/false);
  CHECK(longest_asked(brief) == 40);
}

TEST_CASE("slices have one number where, and only where, they have one signature") {
  model::Model model = model_of(14);
  model.types.push_back(model.types.front());
  model.types.back().hidden *= 2;  // its cuts are wider
  for (const int block : {2, 3, 5, 6, 8, 10, 12}) model.blocks[static_cast<std::size_t>(block)] = 1;
  const SignatureTable signatures(model);
  std::map<model::SliceSignature, int> numbers;
  std::vector<int> seen;
  for (int length = 1; length <= 14; ++length) {
    for (int first = 0; first + length <= 14; ++first) {
      const int id = signatures.id(first, first + length);
      const auto [known, is_new] = numbers.try_emplace(model::signature(model, first, first + length), id);
      CHECK(known->second == id);
      if (is_new) seen.push_back(id);
      CHECK(signatures.entry(id).signature == known->first);
    }
  }
  // Numbered as they come.
  CHECK(std::ranges::is_sorted(seen));
  CHECK(static_cast<int>(numbers.size()) == signatures.size());
}

TEST_CASE("slices know how many of the segments that are alike they have") {
  model::Model model = model_of(9);
  model.types.push_back(model.types.front());
  for (const int block : {0, 1, 7}) model.blocks[static_cast<std::size_t>(block)] = 1;
  const SignatureTable signatures(model);
  CHECK(signatures.alike() == 5);  // blocks 2 to 6
  CHECK(signatures.alike_in(signatures.id(0, 2)) == 0);
  CHECK(signatures.alike_in(signatures.id(0, 4)) == 2);
  CHECK(signatures.alike_in(signatures.id(3, 6)) == 3);
  CHECK(signatures.alike_in(signatures.id(2, 7)) == 5);
  CHECK(signatures.alike_in(signatures.id(0, 9)) == 5);
}
