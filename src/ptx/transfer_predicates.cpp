#include "transfer.hpp"

#include "tangram/base/at.hpp"

namespace tangram::ptx {

Predicate Transfer::relation(std::string_view name, const Site& site) const {
  const Format type = format_of(site.instruction);
  const bool is_unsigned_name = name == "lo" || name == "ls" || name == "hi" || name == "hs";
  const bool needs_order = name != "eq" && name != "ne";
  const Value left = read(site.operand(1), site.state, site.number);
  const Value right = read(site.operand(2), site.state, site.number);
  if (!left.is_single() || !right.is_single()) return nullptr;
  const Choice& a = left.choices.front();
  const Choice& b = right.choices.front();
  std::optional<Form> gap;
  if (a.base == kNumber && b.base == kNumber) {
    const Format format{type.bits, type.is_signed && !is_unsigned_name};
    const auto x = integers(site.state).seen(a.offset, format);
    const auto y = integers(site.state).seen(b.offset, format);
    if (x && y) {
      gap = difference(*x, *y);
    } else if (!needs_order) {  // equal modulo 2^width
      const auto rest = difference(a.offset, b.offset);
      gap = rest ? integers(site.state).seen(*rest, {type.bits, true}) : std::nullopt;
    }
  } else if (a.base == b.base && a.base >= 0) {
    gap = difference(a.offset, b.offset);
  } else if (!needs_order && (a.base >= 0) != (b.base >= 0)) {  // a pointer to an object is not null
    const Choice& number = a.base >= 0 ? b : a;
    if (number.base == kNumber && number.offset == Form(0)) return constant(name == "ne");
  }
  if (!gap) return nullptr;
  const auto reversed = gap->times(-1);
  if (!reversed) return nullptr;
  if (name == "eq") return compare({*gap, Relation::kZero});
  if (name == "ne") return compare({*gap, Relation::kNotZero});
  if (name == "lt" || name == "lo") return compare({gap->plus(1), Relation::kAtMostZero});
  if (name == "le" || name == "ls") return compare({*gap, Relation::kAtMostZero});
  if (name == "gt" || name == "hi") return compare({reversed->plus(1), Relation::kAtMostZero});
  if (name == "ge" || name == "hs") return compare({*reversed, Relation::kAtMostZero});
  return nullptr;
}

/// setp.lt.and.s32 p, a, b, q
Predicate Transfer::comparison(const Site& site) const {
  const auto type = site.instruction.type();
  if (site.size() < 3 || site.instruction.modifiers.empty() || !type || is_float(*type)) return nullptr;
  const Predicate holds = relation(site.instruction.modifiers.front(), site);
  if (site.size() < 4) return holds;
  const Predicate other = predicate(site.operand(3), site.state);
  if (site.instruction.has("and")) return both(holds, other);
  return site.instruction.has("or") ? either(holds, other) : nullptr;
}

Predicate Transfer::logic(const Site& site) const {
  const std::string& opcode = site.instruction.opcode;
  if (site.size() < 2) return nullptr;
  const Predicate first = predicate(site.operand(1), site.state);
  if (opcode == "mov") return first;
  if (opcode == "not") return negation(first);
  if (site.size() < 3) return nullptr;
  const Predicate second = predicate(site.operand(2), site.state);
  if (opcode == "and") return both(first, second);
  if (opcode == "or") return either(first, second);
  if (opcode == "xor") {
    const auto known = site.state.domain.decided(second);
    if (known) return *known ? negation(first) : first;
  }
  return nullptr;
}

}  // namespace tangram::ptx
