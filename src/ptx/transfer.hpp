// What instructions do to values. Goes in: an instruction and the state before it. Comes out: the state behind it, and
// the addresses that it touches.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "integers.hpp"
#include "opcodes.hpp"
#include "state.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {

/// As registers hold it: 1 of predicates, at least 8 of others.
[[nodiscard]] int bits_of(Type type);

class Transfer {
 public:
  /// All outlive it. Scalars and pointers are the launch's.
  Transfer(const Function& body, const Launch& launch, Symbols& symbols)
      : body_(body), launch_(launch), symbols_(symbols) {}

  /// While it is set, iterations have no bound and nothing is taken to wrap around (README.md, "Loops").
  /// The answer is what it was before.
  bool set_tentative(bool is_tentative) { return std::exchange(is_tentative_, is_tentative); }

  void apply(int number, State& state) const;
  [[nodiscard]] Value address(int number, const Operand& address, const State& state) const;
  /// The predicate of a guard, true where the instruction runs.
  [[nodiscard]] Predicate guard(const Guard& guard, const State& state) const;
  /// A value of which nothing but its register's width is known, behind `base`.
  [[nodiscard]] Value unknown(int place, int slot, int base, int bits, const Reason& why) const;

 private:
  using Format = Integers::Format;

  /// An instruction where it stands.
  struct Site {
    int number;
    const Instruction& instruction;
    const State& state;

    [[nodiscard]] const Operand& operand(std::size_t i) const { return instruction.operands[i]; }
    [[nodiscard]] std::size_t size() const { return instruction.operands.size(); }
  };

  void assign(const Operand& target, Value value, State& state, int number) const;
  void assign_results(const Site& site, State& state) const;
  void store_argument(const Site& site, State& state) const;
  void call(const Site& site, State& state) const;

  [[nodiscard]] Value evaluate(const Site& site, OpcodeClass what) const;
  [[nodiscard]] Value read(const Operand& operand, const State& state, int number) const;
  [[nodiscard]] Value special(std::string_view name, int number) const;
  [[nodiscard]] Value load(const Site& site, std::int64_t extra) const;
  [[nodiscard]] Value argument(int parameter, std::int64_t offset, const Site& site) const;
  [[nodiscard]] Value conversion(const Site& site) const;
  [[nodiscard]] Value move(const Site& site) const;
  [[nodiscard]] Value add(const Site& site, const Value& a, const Value& b, std::int64_t sign) const;
  [[nodiscard]] Value product(const Site& site) const;
  [[nodiscard]] Value shift(const Site& site) const;
  [[nodiscard]] Value division(const Site& site) const;
  [[nodiscard]] Value bits(const Site& site) const;
  [[nodiscard]] Value field(const Site& site) const;
  [[nodiscard]] Value extreme(const Site& site) const;
  [[nodiscard]] Value negative(const Site& site) const;
  [[nodiscard]] Value selection(const Site& site) const;
  [[nodiscard]] Predicate comparison(const Site& site) const;
  [[nodiscard]] Predicate relation(std::string_view name, const Site& site) const;
  [[nodiscard]] Predicate logic(const Site& site) const;
  [[nodiscard]] Predicate predicate(const Operand& operand, const State& state) const;
  [[nodiscard]] const Reason* cause(const Site& site) const;
  [[nodiscard]] Value opaque(const Site& site, Range range, std::string_view why = {}) const;
  [[nodiscard]] Value opaque(const Site& site) const;

  [[nodiscard]] Integers integers(const State& state) const { return {symbols_, state.domain, is_tentative_}; }
  [[nodiscard]] static Format format_of(const Instruction& instruction);
  [[nodiscard]] std::optional<std::int64_t> constant_operand(const Site& site, std::size_t i) const;
  [[nodiscard]] std::optional<Form> form_operand(const Site& site, std::size_t i) const;

  const Function& body_;
  const Launch& launch_;
  Symbols& symbols_;
  bool is_tentative_ = false;
};

}  // namespace tangram::ptx
