#include "tangram/ptx/parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cursor.hpp"
#include "declarations.hpp"
#include "function_parser.hpp"

namespace tangram::ptx {
namespace {

class ModuleParser {
 public:
  ModuleParser(Cursor& cursor, const std::string& file) : cursor_(cursor) { module_.file = file; }

  Module parse() {
    while (!cursor_.at_end()) parse_statement();
    return std::move(module_);
  }

 private:
  void parse_statement() {
    const Token token = cursor_.peek();
    if (token.kind != TokenKind::kDot) return report_stray(token);
    if (cursor_.take_if_dot("version")) {
      module_.version = std::string(cursor_.take().text);
    } else if (cursor_.take_if_dot("target")) {
      parse_target(token);
    } else if (cursor_.take_if_dot("address_size")) {
      module_.address_size = static_cast<int>(cursor_.expect_integer("the size of addresses", 32, 64));
    } else if (token.text == "file" || token.text == "loc") {
      cursor_.skip_line(token.place.line);
    } else if (token.text == "section") {
      cursor_.skip_block();
    } else if (token.text == "pragma" || token.text == "alias") {
      cursor_.skip_to(';');
    } else {
      parse_declaration();
    }
  }

  void report_stray(const Token& token) {
    if (cursor_.take_if(';')) return;
    cursor_.report(token, fmt::format("expected a directive, found {}", shown(token)),
                   "modules consist of .version, .target, variables and functions");
  }

  void parse_target(const Token& at) {
    module_.target = std::string(cursor_.expect_name("a target such as sm_90"));
    while (cursor_.peek().is(',') && cursor_.peek().place.line == at.place.line) {
      cursor_.take();
      (void)cursor_.expect_name("an option of the target");
    }
  }

  /// A variable or a function, with its linkage.
  void parse_declaration() {
    constexpr std::array<std::string_view, 4> kLinkage = {"extern", "visible", "weak", "common"};
    bool is_external = false;
    while (std::ranges::find(kLinkage, cursor_.peek().text) != kLinkage.end()) {
      is_external = is_external || cursor_.peek().text == "extern";
      cursor_.take();
    }
    const Token token = cursor_.peek();
    if (cursor_.take_if_dot("entry") || cursor_.take_if_dot("func")) {
      if (cursor_.take_if_dot("attribute")) cursor_.skip_parentheses();
      (void)cursor_.take_if_dot("noreturn");
      FunctionParser parser(cursor_, module_);
      add_function(parser.parse(token.text == "entry"), token);
      for (Variable& variable : parser.statics()) module_.variables.push_back(std::move(variable));
    } else if (token.kind == TokenKind::kDot && space_named(token.text)) {
      for (Variable& variable : parse_variables(cursor_, is_external)) add_variable(std::move(variable));
    } else {
      cursor_.report(token, fmt::format("{} begins no declaration", shown(token)),
                     "expected .entry, .func, or a variable such as .global .b32 a;");
    }
  }

  void add_function(Function function, const Token& at) {
    const Function* other = module_.find(function.name);
    if (other != nullptr && other->has_body && function.has_body) {
      cursor_.report(at, fmt::format("function \"{}\" has two bodies", function.name), "give each a name of its own");
    }
    module_.functions.push_back(std::move(function));
  }

  /// A variable may be declared .extern first.
  void add_variable(Variable variable) {
    const auto other = std::ranges::find(module_.variables, variable.name, &Variable::name);
    if (other == module_.variables.end()) {
      module_.variables.push_back(std::move(variable));
    } else if (other->is_external) {
      *other = std::move(variable);
    }
  }

  Cursor& cursor_;
  Module module_;
};

}  // namespace

Expected<Module> parse(const std::string& text, const std::string& file) {
  const auto tokens = tokens_of(text, file);
  if (!tokens) return fail(tokens.error());
  Cursor cursor(*tokens, text, file);
  Module module = ModuleParser(cursor, file).parse();
  if (cursor.mistake()) return fail(*cursor.mistake());
  if (module.version.empty()) {
    return fail(mistake_at(text, file, {1, 1}, "bad-ptx", "this is no PTX: it has no .version",
                           "give the text that nvcc --ptx, clang or Triton writes, not a cubin"));
  }
  return module;
}

}  // namespace tangram::ptx
