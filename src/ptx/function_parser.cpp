#include "function_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "declarations.hpp"
#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

constexpr std::size_t kMostScopes = 256;
constexpr std::int64_t kMostRegisters = std::int64_t{1} << 32;

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

bool is_label_ahead(const Cursor& cursor) { return cursor.peek().kind == TokenKind::kName && cursor.peek(1).is(':'); }

}  // namespace

Function FunctionParser::parse(bool is_entry) {
  function_.is_entry = is_entry;
  if (!is_entry && cursor_.peek().is('(')) parse_formals(true);
  function_.place = cursor_.peek().place;
  function_.name = std::string(cursor_.expect_name("the name of a function"));
  if (cursor_.peek().is('(')) parse_formals(false);
  skip_directives();
  if (!cursor_.take_if(';')) {
    function_.has_body = true;
    parse_body();
    resolve_labels();
  }
  return std::move(function_);
}

void FunctionParser::parse_formals(bool are_results) {
  cursor_.expect('(', "before parameters");
  while (!cursor_.failed() && !cursor_.peek().is(')')) {
    Variable variable = parse_parameter(cursor_);
    const bool in_register = variable.space == Space::kRegister;
    if (in_register) scopes_.declare_register(variable.name, variable.type, 1);
    function_.formals.push_back(in_register ? scopes_.find_register(variable.name).value_or(-1) : -1);
    ++(are_results ? function_.results : function_.parameters);
    if (in_register) {
      function_.variables.push_back(std::move(variable));
    } else {
      add_variable(std::move(variable));
    }
    if (!cursor_.take_if(',')) break;
  }
  cursor_.expect(')', "behind parameters");
}

void FunctionParser::add_variable(Variable variable) {
  const bool is_static = variable.space == Space::kGlobal || variable.space == Space::kConst;
  const int number = is_static ? -1 - static_cast<int>(statics_.size()) : static_cast<int>(function_.variables.size());
  const bool is_new = variable.name == "_" || scopes_.declare_variable(variable.name, number);
  if (!is_new) {
    Token at = cursor_.peek();
    at.place = variable.place;
    cursor_.report(at, fmt::format("\"{}\" is declared twice", variable.name), "give each a name of its own");
  }
  (is_static ? statics_ : function_.variables).push_back(std::move(variable));
}

/// .maxntid 128, 1, 1 and its like: limits of launches.
void FunctionParser::skip_directives() {
  while (!cursor_.at_end() && !cursor_.peek().is('{') && !cursor_.peek().is(';')) {
    if (cursor_.peek().is_dot("pragma")) {
      cursor_.skip_to(';');
    } else {
      cursor_.take();
    }
  }
}

// Statements

void FunctionParser::parse_body() {
  cursor_.expect('{', "before the body of a function");
  scopes_.open();
  const std::size_t outermost = scopes_.depth();
  while (!cursor_.failed()) {
    if (cursor_.at_end()) {
      cursor_.report(cursor_.peek(), fmt::format("the body of \"{}\" does not end", function_.name), "close it with }");
    } else if (cursor_.take_if('{')) {
      scopes_.open();
      if (scopes_.depth() > kMostScopes) {
        cursor_.report(cursor_.peek(), fmt::format("more than {} blocks are open", kMostScopes), "");
      }
    } else if (cursor_.take_if('}')) {
      const bool last = scopes_.depth() == outermost;
      scopes_.close();
      if (last) return;
    } else {
      parse_statement();
    }
  }
}

void FunctionParser::parse_statement() {
  if (cursor_.take_if(';')) return;
  if (is_label_ahead(cursor_)) return parse_label();
  if (cursor_.peek().kind == TokenKind::kDot) return parse_directive();
  parse_instruction();
}

void FunctionParser::parse_directive() {
  const Token token = cursor_.peek();
  if (token.text == "reg") return parse_registers();
  if (token.text == "loc" || token.text == "file") return cursor_.skip_line(token.place.line);
  if (token.text == "section") {
    while (!cursor_.at_end() && !cursor_.peek().is('{')) cursor_.take();
    return cursor_.skip_braces();
  }
  if (space_named(token.text)) {
    for (Variable& variable : parse_variables(cursor_, false)) add_variable(std::move(variable));
    return;
  }
  constexpr std::array<std::string_view, 4> kSkipped = {"pragma", "callprototype", "branchtargets", "calltargets"};
  if (std::ranges::find(kSkipped, token.text) != kSkipped.end()) return cursor_.skip_to(';');
  cursor_.report(token, fmt::format("{} begins no statement of a function", shown(token)),
                 "expected an instruction, a label, or a declaration such as .reg");
}

/// .reg .b32 %r<100>, %flag;
void FunctionParser::parse_registers() {
  cursor_.take();
  int elements = 1;
  const Type type = parse_type(cursor_, elements);
  do {
    const Token name = cursor_.peek();
    (void)cursor_.expect_name("the name of a register");
    bool is_new = true;
    if (cursor_.take_if('<')) {
      const std::int64_t count = cursor_.expect_integer("a number of registers", 0, kMostRegisters);
      cursor_.expect('>', "behind a number of registers");
      is_new = scopes_.declare_registers(name.text, count, type, elements);
    } else {
      is_new = scopes_.declare_register(name.text, type, elements);
    }
    if (!is_new) {
      cursor_.report(name, fmt::format("register {} is declared twice", shown(name)), "give each a name of its own");
    }
  } while (cursor_.take_if(','));
  cursor_.expect(';', "behind registers");
}

void FunctionParser::parse_label() {
  const Token label = cursor_.take();
  cursor_.take();
  if (cursor_.peek().kind == TokenKind::kDot) {
    const std::string_view directive = cursor_.peek().text;
    if (directive == "branchtargets") return parse_label_directive(label);
    if (directive == "callprototype" || directive == "calltargets") {
      targets_[std::string(label.text)];
      return cursor_.skip_to(';');
    }
  }
  if (!scopes_.declare_label(label.text, static_cast<int>(function_.body.size()))) {
    cursor_.report(label, fmt::format("label {} is declared twice", shown(label)), "give each a name of its own");
  }
}

void FunctionParser::parse_label_directive(const Token& label) {
  cursor_.take();
  std::vector<Token>& targets = targets_[std::string(label.text)];
  do {
    targets.push_back(cursor_.peek());
    (void)cursor_.expect_name("a label");
    pending_.push_back({targets.back(), function_.body.size(), scopes_.current()});
  } while (cursor_.take_if(','));
  cursor_.expect(';', "behind branch targets");
}

void FunctionParser::parse_instruction() {
  Instruction instruction;
  if (cursor_.take_if('@')) {
    Guard guard;
    guard.negated = cursor_.take_if('!');
    const Token token = cursor_.peek();
    const auto reg = scopes_.find_register(cursor_.expect_name("the predicate of a guard"));
    if (!reg) cursor_.report(token, fmt::format("{} is no register", shown(token)), "declare it with .reg .pred");
    guard.reg = reg.value_or(-1);
    instruction.guard = guard;
  }
  instruction.place = cursor_.peek().place;
  instruction.opcode = std::string(cursor_.expect_name("an instruction"));
  while (cursor_.peek().kind == TokenKind::kDot) instruction.modifiers.emplace_back(cursor_.take().text);
  while (!cursor_.failed() && !cursor_.peek().is(';')) {
    instruction.operands.push_back(parse_operand(0));
    if (!cursor_.take_if(',') && !cursor_.peek().is(';')) {
      cursor_.report(cursor_.peek(), fmt::format("expected \",\" or \";\", found {}", shown(cursor_.peek())),
                     "instructions end with a semicolon");
    }
  }
  cursor_.expect(';', "behind an instruction");
  scope_of_.push_back(scopes_.current());
  function_.body.push_back(std::move(instruction));
}

// Operands

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

// Labels

void FunctionParser::resolve_label(Operand& operand, int scope) const {
  for (Operand& part : operand.parts) resolve_label(part, scope);
  if (operand.kind != OperandKind::kFunction) return;
  if (const auto label = scopes_.find_label(operand.name, scope)) {
    operand.kind = OperandKind::kLabel;
    operand.index = *label;
  }
}

void FunctionParser::resolve_labels() {
  if (cursor_.failed()) return;
  for (const Pending& name : pending_) {
    const bool is_call =
        name.instruction < function_.body.size() && at(function_.body, name.instruction).opcode == "call";
    const bool known = scopes_.find_label(name.token.text, name.scope) || targets_.contains(name.token.text) ||
                       module_.find(name.token.text) != nullptr || name.token.text == function_.name;
    if (known || is_call) continue;
    cursor_.report(name.token, fmt::format("{} is declared nowhere", shown(name.token)),
                   "declare registers with .reg and labels with a colon", "unknown-name");
    return;
  }
  for (std::size_t i = 0; i < function_.body.size(); ++i) {
    for (Operand& operand : function_.body[i].operands) resolve_label(operand, scope_of_[i]);
  }
  for (const auto& [label, targets] : targets_) {
    for (const Token& target : targets) {
      const auto found = std::ranges::find_if(pending_, [&](const Pending& name) {
        return name.token.place.line == target.place.line && name.token.place.column == target.place.column;
      });
      if (const auto number = scopes_.find_label(target.text, found->scope)) {
        function_.branch_targets[label].push_back(*number);
      }
    }
  }
}

}  // namespace tangram::ptx
