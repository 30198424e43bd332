// The cheapest placement on any number of classes: a dynamic program over the kernels in their order. A state says
// where the writers of messages still to be read are, and which classes have a message already.
#pragma once

#include <cstdint>
#include <vector>

#include "priced.hpp"

namespace tangram::disaggregate {

/// How a graph's kernels are gone through; does not depend on prices.
class Frontier {
 public:
  /// States take up to `bits` bits. A cost shared by kernels too far apart for that counts for its first reader only,
  /// or not at all: bounds then stay bounds, and the placement found is a good one.
  explicit Frontier(const PricedProblem& priced, int bits = 14);

  /// Whether every cost counts, so that what is found is cheapest.
  [[nodiscard]] bool is_exact() const { return exact_; }
  /// O(kernels * classes * states), states in practice a few powers of the number of classes.
  [[nodiscard]] Cheapest cheapest(const PricedProblem& priced) const;

 private:
  // A field of the state, set by kernel `first` and read last by kernel `last`: a class, or a set of classes. Fields of
  // a kind share slots of one size.
  struct Field {
    int first = 0;
    int last = -1;  // none: nobody asks for it
    int shift = -1;
  };
  struct Slots {
    std::vector<int>
        alive;  // by kernel, of fields that live there: a set from its first reader on, a class from behind
    int most = 0;
  };
  struct Read {
    int shared = 0;
    int class_shift = -1;  // of the writer's class; -1: no writer
    int set_shift = -1;    // of the classes already charged; -1: nobody else reads it
  };
  struct Step {
    std::vector<Read> reads;
    std::uint32_t keep = 0;  // fields that are read by later kernels, before this one's own are set
    int own_shift = -1;      // where this kernel's class goes; -1: nobody asks for it
  };
  // One cost with the fields it needs.
  struct Kept {
    int shared = 0;
    std::size_t readers = 0;  // so many of them count
  };

  struct Run;

  void choose_costs(const PricedProblem& priced, int bits);
  [[nodiscard]] bool add_if_it_fits(const PricedProblem& priced, Kept kept, int bits);
  void assign_bits();
  void make_steps(const PricedProblem& priced);

  int classes_;
  int class_bits_;
  bool exact_ = true;
  std::vector<Kept> kept_;
  std::vector<Field> class_fields_;  // by kernel
  std::vector<Field> set_fields_;    // by kept cost
  Slots class_slots_;
  Slots set_slots_;
  std::vector<Step> steps_;
};

}  // namespace tangram::disaggregate
