#include "declarations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

namespace tangram::ptx {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;  // beyond the memory of any GPU
constexpr std::int64_t kMostAlignment = 4096;

std::int64_t parse_alignment(Cursor& cursor) { return cursor.expect_integer("an alignment", 1, kMostAlignment); }

/// What may stand between the space and the name, in any order.
void parse_attributes(Cursor& cursor, Variable& variable, int& elements) {
  bool typed = false;
  while (cursor.peek().kind == TokenKind::kDot) {
    if (cursor.take_if_dot("align")) {
      variable.alignment = parse_alignment(cursor);
    } else if (cursor.take_if_dot("attribute")) {
      cursor.skip_parentheses();
    } else if (cursor.take_if_dot("ptr")) {
      variable.is_pointer = true;
    } else if (variable.is_pointer && space_named(cursor.peek().text)) {
      cursor.take();
    } else {
      const bool aligned = variable.alignment > 0;
      variable.type = parse_type(cursor, elements);
      if (!aligned) variable.alignment = std::max(1, width_of(variable.type)) * elements;
      typed = true;
    }
    if (cursor.failed()) return;
  }
  if (!typed) {
    cursor.report(cursor.peek(), fmt::format("expected a type such as .b32, found {}", shown(cursor.peek())), "");
  }
}

/// [4][8] behind a name: the product, or 1.
std::int64_t parse_dimensions(Cursor& cursor, Variable& variable) {
  std::int64_t count = 1;
  while (cursor.take_if('[')) {
    variable.is_array = true;
    if (cursor.take_if(']')) {
      count = 0;
      continue;
    }
    const Token at = cursor.peek();
    const std::int64_t size = cursor.expect_integer("the size of an array", 0, kMostBytes);
    if (size > 0 && count > kMostBytes / size) {
      cursor.report(at, "this array is larger than any memory", fmt::format("at most {} elements", kMostBytes));
      return 0;
    }
    count *= size;
    cursor.expect(']', "behind the size of an array");
  }
  return count;
}

void append(Variable& variable, std::uint64_t bits) {
  for (int byte = 0; byte < std::max(1, width_of(variable.type)); ++byte) {
    variable.contents.push_back(byte < 8 ? static_cast<std::uint8_t>(bits >> (8 * byte)) : std::uint8_t{0});
  }
}

std::uint64_t value_bits(const Token& token, Type type) {
  if (token.kind != TokenKind::kFloat || type == Type::kF64 || token.single) {
    return static_cast<std::uint64_t>(token.integer);
  }
  return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(token.integer)));
}

/// One value, or the address of a symbol, whose bytes only the driver knows.
void parse_value(Cursor& cursor, Variable& variable) {
  const bool negative = cursor.take_if('-');
  const Token token = cursor.take();
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) {
    const std::uint64_t bits = value_bits(token, variable.type);
    append(variable, !negative ? bits
                     : token.kind == TokenKind::kInteger
                         ? 0 - bits
                         : bits ^ (std::uint64_t{1} << (width_of(variable.type) == 8 ? 63 : 31)));
  } else if (token.kind == TokenKind::kName) {
    variable.has_symbolic_value = true;
    append(variable, 0);
    if (cursor.peek().is('(')) cursor.skip_parentheses();
    if (cursor.take_if('+')) (void)cursor.take();
  } else {
    cursor.report(token, fmt::format("expected an initial value, found {}", shown(token)), "");
  }
}

/// = 4, or = {1, {2, 3}}
void parse_initializer(Cursor& cursor, Variable& variable) {
  int depth = 0;
  do {
    if (cursor.take_if('{')) {
      ++depth;
    } else if (cursor.take_if('}')) {
      --depth;
      cursor.take_if(',');
    } else {
      parse_value(cursor, variable);
      if (depth > 0) cursor.take_if(',');
    }
  } while (depth > 0 && !cursor.failed());
}

void parse_declarator(Cursor& cursor, Variable& variable, int elements) {
  variable.place = cursor.peek().place;
  variable.name = std::string(cursor.expect_name("the name of a variable"));
  const std::int64_t count = parse_dimensions(cursor, variable);
  variable.bytes = count * elements * std::max(1, width_of(variable.type));
  if (!cursor.take_if('=')) return;
  parse_initializer(cursor, variable);
  variable.bytes = std::max(variable.bytes, static_cast<std::int64_t>(variable.contents.size()));
}

}  // namespace

std::optional<Space> space_named(std::string_view directive) {
  constexpr std::array<std::pair<std::string_view, Space>, 8> kSpaces = {{{"param", Space::kParam},
                                                                          {"global", Space::kGlobal},
                                                                          {"const", Space::kConst},
                                                                          {"shared", Space::kShared},
                                                                          {"local", Space::kLocal},
                                                                          {"tex", Space::kGlobal},
                                                                          {"reg", Space::kRegister},
                                                                          {"sreg", Space::kRegister}}};
  const std::string_view name = directive.substr(0, directive.find("::"));
  const auto* found = std::ranges::find(kSpaces, name, &std::pair<std::string_view, Space>::first);
  return found == kSpaces.end() ? std::nullopt : std::optional(found->second);
}

Type parse_type(Cursor& cursor, int& elements) {
  elements = cursor.take_if_dot("v2") ? 2 : cursor.take_if_dot("v4") ? 4 : 1;
  const Token token = cursor.peek();
  const auto type = token.kind == TokenKind::kDot ? type_named(token.text) : std::nullopt;
  if (!type) {
    cursor.report(token, fmt::format("expected a type such as .b32, found {}", shown(token)), "");
    return Type::kB32;
  }
  cursor.take();
  return *type;
}

std::vector<Variable> parse_variables(Cursor& cursor, bool is_external) {
  Variable common;
  common.is_external = is_external;
  common.alignment = 0;
  common.space = space_named(cursor.take().text).value_or(Space::kGlobal);
  if (cursor.peek().is('[')) {  // .const[3]: banks of old
    cursor.take();
    (void)cursor.expect_integer("a bank", 0, 10);
    cursor.expect(']', "behind a bank");
  }
  int elements = 1;
  parse_attributes(cursor, common, elements);
  std::vector<Variable> variables;
  do {
    Variable variable = common;
    parse_declarator(cursor, variable, elements);
    variables.push_back(std::move(variable));
  } while (cursor.take_if(','));
  cursor.expect(';', "behind a declaration");
  return variables;
}

Variable parse_parameter(Cursor& cursor) {
  Variable variable;
  variable.alignment = 0;
  const Token token = cursor.take();
  const auto space = token.kind == TokenKind::kDot ? space_named(token.text) : std::nullopt;
  if (space != Space::kParam && space != Space::kRegister) {
    cursor.report(token, fmt::format("expected .param or .reg, found {}", shown(token)), "");
    return variable;
  }
  variable.space = *space;
  int elements = 1;
  parse_attributes(cursor, variable, elements);
  parse_declarator(cursor, variable, elements);
  return variable;
}

}  // namespace tangram::ptx
