#include "scopes.hpp"

#include <charconv>

#include "tangram/base/at.hpp"

namespace tangram::ptx {
namespace {

std::optional<int> number_in(const std::map<std::string, int, std::less<>>& numbers, std::string_view name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

void Scopes::open() {
  scopes_.push_back({current_, {}, {}, {}, {}});
  current_ = static_cast<int>(scopes_.size()) - 1;
}

bool Scopes::close() {
  const int parent = at(scopes_, current_).parent;
  if (parent < 0) return false;
  current_ = parent;
  return true;
}

std::size_t Scopes::depth() const {
  std::size_t depth = 0;
  for (int scope = current_; scope >= 0; scope = at(scopes_, scope).parent) ++depth;
  return depth;
}

int Scopes::add_register(Scope& scope, std::string_view name, Type type, int elements) {
  const int number = static_cast<int>(function_.registers.size());
  function_.registers.push_back({std::string(name), type, elements});
  scope.registers.emplace(name, number);
  return number;
}

bool Scopes::declare_register(std::string_view name, Type type, int elements) {
  Scope& scope = at(scopes_, current_);
  if (scope.registers.contains(name)) return false;
  add_register(scope, name, type, elements);
  return true;
}

bool Scopes::declare_registers(std::string_view prefix, std::int64_t count, Type type, int elements) {
  return at(scopes_, current_).families.emplace(prefix, Family{count, type, elements}).second;
}

bool Scopes::declare_variable(std::string_view name, int variable) {
  return at(scopes_, current_).variables.emplace(name, variable).second;
}

bool Scopes::declare_label(std::string_view name, int instruction) {
  return at(scopes_, current_).labels.emplace(name, instruction).second;
}

const Scopes::Family* Scopes::family_of(const Scope& scope, std::string_view name) const {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  const std::string_view number = name.substr(digits);
  if (number.empty() || (number.size() > 1 && number[0] == '0')) return nullptr;
  const auto family = scope.families.find(name.substr(0, digits));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (family == scope.families.end() || error != std::errc() || value >= family->second.count) return nullptr;
  return &family->second;
}

std::optional<int> Scopes::find_register(std::string_view name) {
  for (int number = current_; number >= 0; number = at(scopes_, number).parent) {
    Scope& scope = at(scopes_, number);
    if (auto found = number_in(scope.registers, name)) return found;
    if (const Family* family = family_of(scope, name)) return add_register(scope, name, family->type, family->elements);
  }
  return std::nullopt;
}

std::optional<int> Scopes::find_variable(std::string_view name) const {
  for (int number = current_; number >= 0; number = at(scopes_, number).parent) {
    if (auto found = number_in(at(scopes_, number).variables, name)) return found;
  }
  return std::nullopt;
}

std::optional<int> Scopes::find_label(std::string_view name, int scope) const {
  for (int number = scope; number >= 0; number = at(scopes_, number).parent) {
    if (auto found = number_in(at(scopes_, number).labels, name)) return found;
  }
  return std::nullopt;
}

}  // namespace tangram::ptx
