#include "frontier.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace tangram::disaggregate {

namespace {

// From the first kernel that has to do with a shared cost to the last one.
int first_of(const SharedCost& who) { return who.writer >= 0 ? who.writer : who.readers.front(); }
int span_of(const SharedCost& who) { return who.readers.back() - first_of(who); }

}  // namespace

Frontier::Frontier(const PricedProblem& priced, int bits)
    : classes_(priced.classes()),
      class_bits_(static_cast<int>(std::bit_width(static_cast<unsigned>(priced.classes() - 1)))) {
  const auto kernels = static_cast<std::size_t>(priced.kernels());
  for (int k = 0; k < priced.kernels(); ++k) class_fields_.push_back({k, -1, -1});
  class_slots_.alive.assign(kernels, 0);
  set_slots_.alive.assign(kernels, 0);
  choose_costs(priced, bits);
  assign_bits();
  make_steps(priced);
}

// Near readers first: they leave room for most others.
void Frontier::choose_costs(const PricedProblem& priced, int bits) {
  const std::vector<SharedCost>& shared = priced.shared();
  std::vector<int> order(shared.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int s) { return std::pair(span_of(at(shared, s)), s); });
  for (const int s : order) {
    const std::size_t readers = at(shared, s).readers.size();
    if (add_if_it_fits(priced, {s, readers}, bits)) continue;
    exact_ = false;
    if (readers > 1 && at(shared, s).writer >= 0) static_cast<void>(add_if_it_fits(priced, {s, 1}, bits));
  }
}

bool Frontier::add_if_it_fits(const PricedProblem& priced, Kept kept, int bits) {
  const SharedCost& who = at(priced.shared(), kept.shared);
  const int last = who.readers[kept.readers - 1];
  // From one kernel to the one before `last`: one field more.
  const auto most_with = [last](const Slots& slots, int from) {
    int most = slots.most;
    for (int k = from; k < last; ++k) most = std::max(most, at(slots.alive, k) + 1);
    return most;
  };
  const int class_from = who.writer >= 0 ? std::max(who.writer, at(class_fields_, who.writer).last) : last;
  const int set_from = kept.readers > 1 ? std::max(0, who.readers.front() - 1) : last;
  const int classes = most_with(class_slots_, class_from);
  const int sets = most_with(set_slots_, set_from);
  if (classes * class_bits_ + sets * classes_ > bits) return false;
  class_slots_.most = classes;
  set_slots_.most = sets;
  for (int k = class_from; k < last; ++k) ++at(class_slots_.alive, k);
  for (int k = set_from; k < last; ++k) ++at(set_slots_.alive, k);
  if (who.writer >= 0) at(class_fields_, who.writer).last = std::max(at(class_fields_, who.writer).last, last);
  kept_.push_back(kept);
  set_fields_.push_back({who.readers.front(), kept.readers > 1 ? last : -1, -1});
  return true;
}

// Each field in the first slot that is free all its life. A kernel reads a class before it writes its own, but a set
// while others end.
void Frontier::assign_bits() {
  const auto assign = [](std::vector<Field>& fields, int base, int bits, bool shares_ends) {
    std::vector<Field*> order;
    for (Field& field : fields) {
      if (field.last >= 0) order.push_back(&field);
    }
    std::ranges::sort(order, {}, [](const Field* field) { return std::pair(field->first, field); });
    std::vector<int> busy_until;  // by slot
    for (Field* field : order) {
      const auto is_free = [&](int last) { return shares_ends ? last <= field->first : last < field->first; };
      const auto slot = std::ranges::find_if(busy_until, is_free);
      field->shift = base + bits * static_cast<int>(slot - busy_until.begin());
      if (slot == busy_until.end()) {
        busy_until.push_back(field->last);
      } else {
        *slot = field->last;
      }
    }
    return base + bits * static_cast<int>(busy_until.size());
  };
  const int of_classes = assign(class_fields_, 0, class_bits_, true);
  assign(set_fields_, of_classes, classes_, false);
}

void Frontier::make_steps(const PricedProblem& priced) {
  steps_.resize(class_fields_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const SharedCost& who = at(priced.shared(), kept_[i].shared);
    for (std::size_t r = 0; r < kept_[i].readers; ++r) {
      const int class_shift = who.writer >= 0 ? at(class_fields_, who.writer).shift : -1;
      at(steps_, who.readers[r]).reads.push_back({kept_[i].shared, class_shift, set_fields_[i].shift});
    }
  }
  const auto keep = [this](const Field& field, int bits) {
    if (field.shift < 0) return;
    const std::uint32_t mask = ((1U << bits) - 1) << field.shift;
    for (int k = field.first; k < field.last; ++k) at(steps_, k).keep |= mask;
  };
  for (const Field& field : class_fields_) keep(field, class_bits_);
  for (const Field& field : set_fields_) keep(field, classes_);
  for (int k = 0; k < static_cast<int>(steps_.size()); ++k) at(steps_, k).own_shift = at(class_fields_, k).shift;
}

// The states behind each kernel, one after the other.
struct Frontier::Run {
  struct State {
    std::uint32_t fields = 0;
    int before = -1;  // of the kernel before
    int on = 0;
    double cost = 0;
  };

  Run(const Frontier& frontier, const PricedProblem& priced)
      : frontier_(frontier), priced_(priced), class_mask_((1U << frontier.class_bits_) - 1) {
    states_.push_back({{}});
    for (int k = 0; k < priced.kernels(); ++k) extend(k);
  }

  [[nodiscard]] Cheapest best() const {
    const auto last = std::ranges::min_element(states_.back(), {}, &State::cost);
    Cheapest result{Placement(states_.size() - 1, 0), last->cost};
    int number = static_cast<int>(last - states_.back().begin());
    for (int k = priced_.kernels() - 1; k >= 0; --k) {
      const State& state = at(at(states_, k + 1), number);
      at(result.placement, k) = state.on;
      number = state.before;
    }
    return result;
  }

 private:
  void extend(int kernel) {
    const Step& step = at(frontier_.steps_, kernel);
    const std::vector<State> from = states_.back();
    std::vector<State>& to = states_.emplace_back();
    for (int before = 0; before < static_cast<int>(from.size()); ++before) {
      for (int on = 0; on < priced_.classes(); ++on) {
        if (priced_.kernel(kernel, on) == kNever) continue;
        State next = at(from, before);
        next.before = before;
        next.on = on;
        next.cost += priced_.kernel(kernel, on);
        for (const Read& read : step.reads) charge(read, next);
        next.fields &= step.keep;
        if (step.own_shift >= 0) {
          next.fields &= ~(class_mask_ << step.own_shift);
          next.fields |= static_cast<std::uint32_t>(on) << step.own_shift;
        }
        keep_cheapest(next, to);
      }
    }
    for (const State& state : to) place_of(state.fields) = -1;
  }

  void charge(const Read& read, State& state) const {
    const std::uint32_t mine = 1U << state.on;
    if (read.set_shift >= 0) {
      const bool is_charged = (state.fields >> read.set_shift & mine) != 0;
      state.fields |= mine << read.set_shift;
      if (is_charged) return;
    }
    if (read.class_shift < 0) {
      state.cost += priced_.cost(read.shared, state.on);
      return;
    }
    const int from = static_cast<int>(state.fields >> read.class_shift & class_mask_);
    if (from != state.on) state.cost += priced_.cost(read.shared, from, state.on);
  }

  void keep_cheapest(const State& state, std::vector<State>& to) {
    int& place = place_of(state.fields);
    if (place < 0) {
      place = static_cast<int>(to.size());
      to.push_back(state);
    } else if (state.cost < at(to, place).cost) {
      at(to, place) = state;
    }
  }

  int& place_of(std::uint32_t fields) {
    if (fields >= place_.size()) place_.resize(fields + std::size_t{1}, -1);
    return place_[fields];
  }

  const Frontier& frontier_;
  const PricedProblem& priced_;
  std::uint32_t class_mask_;
  std::vector<std::vector<State>> states_;
  std::vector<int> place_;  // by fields: among the states that are made; -1: not yet
};

Cheapest Frontier::cheapest(const PricedProblem& priced) const { return Run(*this, priced).best(); }

}  // namespace tangram::disaggregate
