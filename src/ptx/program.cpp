#include "tangram/ptx/program.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tangram::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  int width;
};

constexpr std::array kTypes = {
    TypeRow{"pred", Type::kPred, 0},
    TypeRow{"b8", Type::kB8, 1},
    TypeRow{"b16", Type::kB16, 2},
    TypeRow{"b32", Type::kB32, 4},
    TypeRow{"b64", Type::kB64, 8},
    TypeRow{"b128", Type::kB128, 16},
    TypeRow{"u8", Type::kU8, 1},
    TypeRow{"u16", Type::kU16, 2},
    TypeRow{"u32", Type::kU32, 4},
    TypeRow{"u64", Type::kU64, 8},
    TypeRow{"s8", Type::kS8, 1},
    TypeRow{"s16", Type::kS16, 2},
    TypeRow{"s32", Type::kS32, 4},
    TypeRow{"s64", Type::kS64, 8},
    TypeRow{"f16", Type::kF16, 2},
    TypeRow{"f16x2", Type::kF16x2, 4},
    TypeRow{"bf16", Type::kBf16, 2},
    TypeRow{"bf16x2", Type::kBf16x2, 4},
    TypeRow{"f32", Type::kF32, 4},
    TypeRow{"f64", Type::kF64, 8},
    TypeRow{"tf32", Type::kOther, 4},
    TypeRow{"e4m3", Type::kOther, 1},
    TypeRow{"e5m2", Type::kOther, 1},
    TypeRow{"e4m3x2", Type::kOther, 2},
    TypeRow{"e5m2x2", Type::kOther, 2},
    TypeRow{"u16x2", Type::kOther, 4},
    TypeRow{"s16x2", Type::kOther, 4},
    TypeRow{"texref", Type::kOther, 8},
    TypeRow{"samplerref", Type::kOther, 8},
    TypeRow{"surfref", Type::kOther, 8},
};

const TypeRow* row_of(std::string_view name) {
  const auto* found = std::ranges::find(kTypes, name, &TypeRow::name);
  return found == kTypes.end() ? nullptr : &*found;
}

}  // namespace

int width_of(Type type) {
  const auto* found = std::ranges::find(kTypes, type, &TypeRow::type);
  return type == Type::kOther || found == kTypes.end() ? 0 : found->width;
}

bool is_signed(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

bool is_float(Type type) { return type >= Type::kF16 && type <= Type::kF64; }

std::optional<Type> type_named(std::string_view name) {
  const TypeRow* row = row_of(name);
  return row == nullptr ? std::nullopt : std::optional(row->type);
}

bool Instruction::has(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
}

std::optional<Type> Instruction::type() const {
  for (auto modifier = modifiers.rbegin(); modifier != modifiers.rend(); ++modifier) {
    if (auto type = type_named(*modifier)) return type;
  }
  return std::nullopt;
}

std::optional<Type> Instruction::first_type() const {
  for (const std::string& modifier : modifiers) {
    if (auto type = type_named(modifier)) return type;
  }
  return std::nullopt;
}

int Instruction::vector_length() const {
  constexpr std::array<std::pair<std::string_view, int>, 3> kLengths = {{{"v2", 2}, {"v4", 4}, {"v8", 8}}};
  for (const auto& [name, length] : kLengths) {
    if (has(name)) return length;
  }
  return 1;
}

std::string Instruction::text() const {
  std::string result = opcode;
  for (const std::string& modifier : modifiers) result += "." + modifier;
  return result;
}

const Function* Module::find(std::string_view name) const {
  const Function* found = nullptr;
  for (const Function& function : functions) {
    if (function.name == name && (found == nullptr || function.has_body)) found = &function;
  }
  return found;
}

std::vector<std::string> Module::entries() const {
  std::vector<std::string> names;
  for (const Function& function : functions) {
    if (function.is_entry && function.has_body) names.push_back(function.name);
  }
  return names;
}

}  // namespace tangram::ptx
