#include "cut.hpp"

#include <algorithm>
#include <cmath>

#include "max_flow.hpp"
#include "tangram/base/assert.hpp"

namespace tangram::disaggregate {

namespace {

// Class 0 is the source's side: an edge is cut, and paid, where it leads from class 0 to class 1.
class CutNetwork {
 public:
  explicit CutNetwork(const PricedProblem& priced) : priced_(priced), network_(priced.kernels() + 2) {
    find_scale();
    for (int k = 0; k < priced.kernels(); ++k) {
      network_.add_edge(source(), k, capacity(priced.kernel(k, 1)));
      network_.add_edge(k, sink(), capacity(priced.kernel(k, 0)));
    }
    for (int s = 0; s < static_cast<int>(priced.shared().size()); ++s) {
      if (at(priced.shared(), s).writer < 0) {
        add_resident(s);
      } else {
        add_message(s);
      }
    }
  }

  Cheapest solve() {
    Cheapest result;
    result.bound = static_cast<double>(network_.maximum_flow(source(), sink())) / scale_;
    for (int k = 0; k < priced_.kernels(); ++k) result.placement.push_back(network_.is_reached(k) ? 0 : 1);
    return result;
  }

 private:
  [[nodiscard]] int source() const { return priced_.kernels(); }
  [[nodiscard]] int sink() const { return priced_.kernels() + 1; }

  // All costs together come to 2^50.
  void find_scale() {
    double sum = 0;
    for (int k = 0; k < priced_.kernels(); ++k) {
      for (const int on : {0, 1}) sum += std::isinf(priced_.kernel(k, on)) ? 0 : priced_.kernel(k, on);
    }
    for (int s = 0; s < static_cast<int>(priced_.shared().size()); ++s) {
      const bool has_writer = at(priced_.shared(), s).writer >= 0;
      sum += has_writer ? priced_.cost(s, 0, 1) + priced_.cost(s, 1, 0) : priced_.cost(s, 0) + priced_.cost(s, 1);
    }
    scale_ = sum > 0 ? std::ldexp(1.0, 50) / sum : 1;
  }

  [[nodiscard]] std::int64_t capacity(double cost) const {
    if (std::isinf(cost)) return FlowNetwork::kUnlimited;
    return static_cast<std::int64_t>(std::floor(cost * scale_));
  }

  void add_message(int shared) {
    const SharedCost& who = at(priced_.shared(), shared);
    const std::int64_t forth = capacity(priced_.cost(shared, 0, 1));
    const std::int64_t back = capacity(priced_.cost(shared, 1, 0));
    if (who.readers.size() == 1) {
      network_.add_edge(who.writer, who.readers.front(), forth);
      network_.add_edge(who.readers.front(), who.writer, back);
      return;
    }
    on_class_1_with_any(who, who.writer, forth);
    on_class_0_with_any(who, who.writer, back);
  }

  void add_resident(int shared) {
    const SharedCost& who = at(priced_.shared(), shared);
    on_class_1_with_any(who, source(), capacity(priced_.cost(shared, 1)));
    on_class_0_with_any(who, sink(), capacity(priced_.cost(shared, 0)));
  }

  // Paid where `from` is on class 0 and any reader on class 1.
  void on_class_1_with_any(const SharedCost& who, int from, std::int64_t cost) {
    const int any = network_.add_node();
    network_.add_edge(from, any, cost);
    for (const int reader : who.readers) network_.add_edge(any, reader, FlowNetwork::kUnlimited);
  }
  // Paid where any reader is on class 0 and `to` on class 1.
  void on_class_0_with_any(const SharedCost& who, int to, std::int64_t cost) {
    const int any = network_.add_node();
    network_.add_edge(any, to, cost);
    for (const int reader : who.readers) network_.add_edge(reader, any, FlowNetwork::kUnlimited);
  }

  const PricedProblem& priced_;
  FlowNetwork network_;
  double scale_ = 1;
};

}  // namespace

Cheapest cheapest_by_cut(const PricedProblem& priced) {
  TANGRAM_ASSERT(priced.classes() == 2);
  return CutNetwork(priced).solve();
}

}  // namespace tangram::disaggregate
