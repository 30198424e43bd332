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
  if (token.text == "section") return cursor_.skip_block();
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
  std::vector<Pending>& targets = targets_[std::string(label.text)];
  do {
    targets.push_back({cursor_.peek(), function_.body.size(), scopes_.current()});
    (void)cursor_.expect_name("a label");
    pending_.push_back(targets.back());
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
    for (const Pending& target : targets) {
      if (const auto number = scopes_.find_label(target.token.text, target.scope)) {
        function_.branch_targets[label].push_back(*number);
      }
    }
  }
}

}  // namespace tangram::ptx
