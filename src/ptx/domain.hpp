// Which threads come to a place. Goes in: conditions of branches and guards. Comes out: bounds of forms under them, and
// whether exactly the threads that satisfy them come.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "form.hpp"
#include "symbols.hpp"

namespace tangram::ptx {

enum class Relation : std::uint8_t { kAtMostZero, kZero, kNotZero };

struct Constraint {
  Form form;
  Relation relation = Relation::kAtMostZero;

  bool operator==(const Constraint&) const = default;
};

/// What a predicate says. Null stands for one of which nothing is known.
struct Condition {
  enum class Kind : std::uint8_t { kConstant, kCompare, kAnd, kOr, kNot };
  Kind kind = Kind::kConstant;
  bool value = false;     ///< kConstant
  Constraint constraint;  ///< kCompare
  std::shared_ptr<const Condition> left;
  std::shared_ptr<const Condition> right;
};
using Predicate = std::shared_ptr<const Condition>;

[[nodiscard]] Predicate constant(bool value);
[[nodiscard]] Predicate compare(Constraint constraint);
[[nodiscard]] Predicate negation(const Predicate& predicate);
[[nodiscard]] Predicate both(const Predicate& a, const Predicate& b);
[[nodiscard]] Predicate either(const Predicate& a, const Predicate& b);

class Domain {
 public:
  explicit Domain(const Symbols& symbols) : symbols_(&symbols) {}

  /// Takes the predicate for true (or false). `where` is named if it is not known.
  void assume(const Predicate& predicate, bool holds, const Reason& where);
  void assume(const Constraint& constraint);

  /// Nothing comes here.
  [[nodiscard]] bool is_empty() const { return empty_; }
  [[nodiscard]] Range range(const Form& form) const;
  /// True or false where the conditions decide it.
  [[nodiscard]] std::optional<bool> decided(const Predicate& predicate) const;
  [[nodiscard]] std::optional<bool> decided(const Constraint& constraint) const;

  [[nodiscard]] const std::vector<Constraint>& constraints() const { return constraints_; }
  [[nodiscard]] const std::vector<Reason>& reasons() const { return reasons_; }
  [[nodiscard]] const std::vector<Form>& doubts() const { return doubts_; }
  void make_uncertain(const Reason& why);
  /// Holds for all but a first iteration: certain where it is assumed later.
  void doubt(const Form& at_most_zero) { doubts_.push_back(at_most_zero); }
  /// Only what holds in both; uncertain.
  void intersect(const Domain& other, const Reason& why);
  /// Forgets what mentions a symbol.
  void forget(int symbol);

 private:
  [[nodiscard]] Wide highest(const Form& form, int depth) const;

  const Symbols* symbols_;
  std::vector<Constraint> constraints_;
  std::vector<Form> doubts_;
  std::vector<Reason> reasons_;
  bool empty_ = false;
};

}  // namespace tangram::ptx
