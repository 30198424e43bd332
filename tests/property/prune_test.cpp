// pareto against the definition: a candidate stays exactly when no other dominates it, by comparing all pairs.
#include <algorithm>
#include <array>

#include "support/property.hpp"
#include "tangram/prune/frontier.hpp"

using namespace tangram::prune;
using tangram::testing::holds;

namespace {

using Vector = std::array<std::int64_t, 5>;  ///< all components turned so that smaller is better

Vector vector_of(const Candidate& c) { return {c.T, c.F, c.A, c.o, -c.n_max}; }

bool beats(const Candidate& a, const Candidate& b) {
  const Vector x = vector_of(a);
  const Vector y = vector_of(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] > y[i]) return false;
  }
  return x != y || a.source < b.source;
}

std::vector<Candidate> brute_force(const std::vector<Candidate>& all) {
  std::vector<Candidate> kept;
  for (const Candidate& c : all) {
    if (std::none_of(all.begin(), all.end(), [&](const Candidate& other) { return beats(other, c); }))
      kept.push_back(c);
  }
  std::sort(kept.begin(), kept.end(), [](const Candidate& a, const Candidate& b) {
    return vector_of(a) != vector_of(b) ? vector_of(a) < vector_of(b) : a.source < b.source;
  });
  return kept;
}

/// Values from 0 to `range` - 1: a small range makes ties and equal vectors common, a large one frontiers long.
rc::Gen<std::vector<Candidate>> candidates(int most, int range) {
  return rc::gen::map(rc::gen::container<std::vector<std::array<int, 5>>>(
                          rc::gen::container<std::array<int, 5>>(rc::gen::inRange(0, range))),
                      [most](const std::vector<std::array<int, 5>>& rows) {
                        std::vector<Candidate> out;
                        for (const auto& row : rows) {
                          if (static_cast<int>(out.size()) == most) break;
                          out.push_back({.T = row[0],
                                         .F = row[1],
                                         .A = row[0] + row[2],
                                         .o = row[3],
                                         .n_max = row[4] + 1,
                                         .source = static_cast<std::int32_t>(out.size())});
                        }
                        return out;
                      });
}

}  // namespace

TEST_CASE("property prune: pareto is what the definition says") {
  const int range = GENERATE(2, 3, 5, 20, 1000);
  holds(2000, [range] {
    const auto all = *candidates(200, range);
    RC_ASSERT(pareto(all) == brute_force(all));
  });
}

TEST_CASE("property prune: the order of the candidates does not matter, and pruning twice changes nothing") {
  holds(1000, [] {
    auto all = *candidates(60, 4);
    const auto once = pareto(all);
    std::reverse(all.begin(), all.end());
    RC_ASSERT(pareto(all) == once);
    RC_ASSERT(pareto(once) == once);
  });
}

TEST_CASE("property prune: everything dropped is dominated by something kept") {
  holds(1000, [] {
    const auto all = *candidates(60, 6);
    const auto kept = pareto(all);
    for (const Candidate& c : all) {
      RC_ASSERT(std::any_of(kept.begin(), kept.end(), [&](const Candidate& k) { return dominates(k, c); }));
    }
  });
}
