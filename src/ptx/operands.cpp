// Operands of instructions.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "function_parser.hpp"

namespace tangram::ptx {
namespace {

/// PTX ISA, "Special Registers".
bool is_special(std::string_view name) {
  constexpr std::array<std::string_view, 27> kNames = {"tid",
                                                       "ntid",
                                                       "ctaid",
                                                       "nctaid",
                                                       "laneid",
                                                       "warpid",
                                                       "nwarpid",
                                                       "smid",
                                                       "nsmid",
                                                       "gridid",
                                                       "clusterid",
                                                       "nclusterid",
                                                       "cluster_ctaid",
                                                       "cluster_nctaid",
                                                       "clock",
                                                       "clock_hi",
                                                       "clock64",
                                                       "globaltimer",
                                                       "globaltimer_lo",
                                                       "globaltimer_hi",
                                                       "cluster_ctarank",
                                                       "cluster_nctarank",
                                                       "is_explicit_cluster",
                                                       "total_smem_size",
                                                       "aggr_smem_size",
                                                       "dynamic_smem_size",
                                                       "current_graph_exec"};
  constexpr std::array<std::string_view, 4> kFamilies = {"lanemask_", "envreg", "pm", "reserved_smem_"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kFamilies, [&](std::string_view family) { return name.starts_with(family); });
}

}  // namespace

Operand FunctionParser::parse_operand(int depth) {
  constexpr int kDeepest = 8;
  const Token token = cursor_.peek();
  if (depth > kDeepest) {
    cursor_.report(token, "operands are nested too deeply", fmt::format("at most {} levels", kDeepest));
    return {};
  }
  if (cursor_.take_if('{')) return parse_group(OperandKind::kVector, '}', depth);
  if (cursor_.take_if('(')) return parse_group(OperandKind::kList, ')', depth);
  if (cursor_.take_if('[')) return parse_address(depth);
  if (cursor_.take_if('-')) return parse_number(true);
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) return parse_number(false);
  const bool negated = cursor_.take_if('!');
  Operand operand = parse_name();
  operand.negated = negated;
  if (!cursor_.take_if('|')) return operand;
  Operand pair;
  pair.kind = OperandKind::kPair;
  pair.parts.push_back(std::move(operand));
  pair.parts.push_back(parse_name());
  return pair;
}

Operand FunctionParser::parse_group(OperandKind kind, char close, int depth) {
  Operand group;
  group.kind = kind;
  while (!cursor_.failed() && !cursor_.peek().is(close)) {
    group.parts.push_back(parse_operand(depth + 1));
    if (!cursor_.take_if(',')) break;
  }
  cursor_.expect(close, "behind operands");
  return group;
}

/// [a], [a+4], [a+-4], [16], [map, {x, y}]
Operand FunctionParser::parse_address(int depth) {
  Operand address;
  address.kind = OperandKind::kAddress;
  address.parts.push_back(parse_operand(depth + 1));
  while (cursor_.peek().is('+') || cursor_.peek().is('-')) {
    const bool negative = cursor_.take().is('-') != cursor_.take_if('-');
    const Token token = cursor_.take();
    if (token.kind != TokenKind::kInteger) {
      cursor_.report(token, fmt::format("expected an offset, found {}", shown(token)), "a whole number is wanted here");
    }
    const auto offset = static_cast<std::uint64_t>(token.integer);
    address.integer =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(address.integer) + (negative ? 0 - offset : offset));
  }
  while (cursor_.take_if(',')) address.parts.push_back(parse_operand(depth + 1));
  cursor_.expect(']', "behind an address");
  return address;
}

Operand FunctionParser::parse_number(bool negative) {
  const Token token = cursor_.take();
  Operand operand;
  operand.kind = token.kind == TokenKind::kFloat ? OperandKind::kFloat : OperandKind::kInteger;
  operand.single = token.single;
  auto bits = static_cast<std::uint64_t>(token.integer);
  if (token.kind != TokenKind::kInteger && token.kind != TokenKind::kFloat) {
    cursor_.report(token, fmt::format("expected an operand, found {}", shown(token)), "");
  } else if (negative && token.kind == TokenKind::kFloat) {
    bits ^= std::uint64_t{1} << (token.single ? 31 : 63);
  } else if (negative) {
    bits = 0 - bits;
  }
  operand.integer = static_cast<std::int64_t>(bits);
  return operand;
}

Operand FunctionParser::parse_name() {
  const Token token = cursor_.peek();
  if (token.kind != TokenKind::kName) {
    cursor_.report(token, fmt::format("expected an operand, found {}", shown(token)), "");
    return {};
  }
  cursor_.take();
  Operand operand = resolve(token);
  if (operand.kind == OperandKind::kRegister && cursor_.peek().kind == TokenKind::kDot && !cursor_.peek().after_space) {
    return with_component(std::move(operand));
  }
  const bool in_memory = operand.kind == OperandKind::kVariable || operand.kind == OperandKind::kGlobal;
  if (in_memory && cursor_.peek().is('+') && cursor_.peek(1).kind == TokenKind::kInteger) {
    cursor_.take();
    operand.integer = cursor_.take().integer;
  }
  return operand;
}

Operand FunctionParser::with_component(Operand vector) {
  constexpr std::string_view kNames = "xyzwrgba";  // r, g, b, a are the colours of textures
  const Token token = cursor_.take();
  const std::size_t element = token.text.size() == 1 ? kNames.find(token.text[0]) : std::string_view::npos;
  if (element == std::string_view::npos) {
    cursor_.report(token, fmt::format("{} is no element of a vector", shown(token)), "elements are .x, .y, .z, .w");
    return {};
  }
  Operand component;
  component.kind = OperandKind::kComponent;
  component.index = static_cast<int>(element % 4);
  component.parts.push_back(std::move(vector));
  return component;
}

/// Numbers below 0 are those of statics.
Operand FunctionParser::variable_operand(int number, std::string_view name) const {
  Operand operand;
  operand.kind = number < 0 ? OperandKind::kGlobal : OperandKind::kVariable;
  operand.index = number < 0 ? static_cast<int>(module_.variables.size()) - 1 - number : number;
  if (number < 0) operand.name = std::string(name);
  return operand;
}

Operand FunctionParser::resolve(const Token& token) {
  Operand operand;
  if (token.text == "_") return operand;
  if (const auto reg = scopes_.find_register(token.text)) {
    operand.kind = OperandKind::kRegister;
    operand.index = *reg;
  } else if (const auto variable = scopes_.find_variable(token.text)) {
    return variable_operand(*variable, token.text);
  } else if (token.text == "WARP_SZ") {
    operand.kind = OperandKind::kInteger;
    operand.integer = 32;  // PTX ISA, "Predefined Constants"
  } else if (token.text.starts_with('%') && is_special(token.text.substr(1))) {
    operand.kind = OperandKind::kSpecial;
    operand.name = std::string(token.text.substr(1));
    while (cursor_.peek().kind == TokenKind::kDot && !cursor_.peek().after_space) {
      operand.name += "." + std::string(cursor_.take().text);
    }
  } else {
    const auto global = std::ranges::find(module_.variables, token.text, &Variable::name);
    operand.kind = global == module_.variables.end() ? OperandKind::kFunction : OperandKind::kGlobal;
    operand.index = static_cast<int>(global - module_.variables.begin());
    operand.name = std::string(token.text);
    if (operand.kind == OperandKind::kFunction) {
      pending_.push_back({token, function_.body.size(), scopes_.current()});
    }
  }
  return operand;
}

}  // namespace tangram::ptx
