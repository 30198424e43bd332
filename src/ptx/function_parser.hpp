// Functions. Goes in: the cursor behind .entry or .func. Comes out: the function.
#pragma once

#include "cursor.hpp"
#include "scopes.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

class FunctionParser {
 public:
  /// `module` has what was declared before; all outlive it.
  FunctionParser(Cursor& cursor, const Module& module) : cursor_(cursor), module_(module), scopes_(function_) {}

  /// Up to the end of the body, or of the declaration.
  Function parse(bool is_entry);
  /// Variables in global and constant memory that the body declares: they come behind those of the module.
  [[nodiscard]] std::vector<Variable>& statics() { return statics_; }

 private:
  /// A name that may be a label, which may be declared behind its use.
  struct Pending {
    Token token;
    std::size_t instruction = 0;
    int scope = 0;
  };

  void parse_formals(bool are_results);
  void add_variable(Variable variable);
  void skip_directives();

  void parse_body();
  void parse_statement();
  void parse_directive();
  void parse_registers();
  void parse_label();
  void parse_label_directive(const Token& label);
  void parse_instruction();

  Operand parse_operand(int depth);
  Operand parse_group(OperandKind kind, char close, int depth);
  Operand parse_address(int depth);
  Operand parse_name();
  Operand parse_number(bool negative);
  Operand resolve(const Token& token);
  [[nodiscard]] Operand variable_operand(int number, std::string_view name) const;
  Operand with_component(Operand vector);

  void resolve_labels();
  void resolve_label(Operand& operand, int scope) const;

  Cursor& cursor_;
  const Module& module_;
  Function function_;
  Scopes scopes_;
  std::vector<Variable> statics_;
  std::vector<Pending> pending_;
  std::vector<int> scope_of_;                                         ///< by instruction
  std::map<std::string, std::vector<Pending>, std::less<>> targets_;  ///< of .branchtargets by label
};

}  // namespace tangram::ptx
