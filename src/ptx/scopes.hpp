// What names mean within a function. Goes in: declarations, as blocks open and close. Comes out: the number of the
// register, variable or label that a name stands for where it is used.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

class Scopes {
 public:
  explicit Scopes(Function& function) : function_(function) { open(); }

  void open();
  /// False where only the outermost is open.
  bool close();
  [[nodiscard]] int current() const { return current_; }
  [[nodiscard]] std::size_t depth() const;

  // All are false where the scope has such a name already.
  bool declare_register(std::string_view name, Type type, int elements);
  /// %r<100>: %r0 to %r99. Registers come to be when they are first used.
  bool declare_registers(std::string_view prefix, std::int64_t count, Type type, int elements);
  bool declare_variable(std::string_view name, int variable);
  bool declare_label(std::string_view name, int instruction);

  [[nodiscard]] std::optional<int> find_register(std::string_view name);
  [[nodiscard]] std::optional<int> find_variable(std::string_view name) const;
  /// As seen from a scope: labels may be declared after they are used.
  [[nodiscard]] std::optional<int> find_label(std::string_view name, int scope) const;

 private:
  struct Family {
    std::int64_t count = 0;
    Type type = Type::kB32;
    int elements = 1;
  };
  using Numbers = std::map<std::string, int, std::less<>>;
  struct Scope {
    int parent = -1;
    Numbers registers;
    Numbers variables;
    Numbers labels;
    std::map<std::string, Family, std::less<>> families;
  };

  int add_register(Scope& scope, std::string_view name, Type type, int elements);
  [[nodiscard]] const Family* family_of(const Scope& scope, std::string_view name) const;

  Function& function_;
  std::vector<Scope> scopes_;
  int current_ = -1;
};

}  // namespace tangram::ptx
