// A PTX module as its text has it. Goes in: what parse() (tangram/ptx/parse.hpp) reads. Comes out: functions as flat
// lists of instructions, in which every register, variable and label is a number.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/diagnostic.hpp"

namespace tangram::ptx {

/// State spaces (PTX ISA, "State Spaces"). kGeneric: an address of any of them.
enum class Space : std::uint8_t { kGeneric, kParam, kGlobal, kConst, kShared, kLocal, kRegister };

/// Fundamental types. kOther: packed and narrow formats that only tensor instructions know.
enum class Type : std::uint8_t {
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kF32,
  kF64,
  kOther
};

/// 1, 2, 4, 8 or 16; 0 of predicates and other types.
[[nodiscard]] int width_of(Type type);
[[nodiscard]] bool is_signed(Type type);
[[nodiscard]] bool is_float(Type type);
/// "u32", without the dot; nullopt where it names no type.
[[nodiscard]] std::optional<Type> type_named(std::string_view name);

/// Where something stands in the text, from 1; columns count bytes.
struct Place {
  int line = 0;
  int column = 0;
};

struct Register {
  std::string name;
  Type type = Type::kB32;
  int elements = 1;  ///< 2 or 4 of vectors
};

/// A parameter, or a variable in memory.
struct Variable {
  std::string name;
  Space space = Space::kParam;
  Type type = Type::kB64;
  std::int64_t bytes = 8;  ///< of all elements
  std::int64_t alignment = 8;
  bool is_array = false;
  bool is_pointer = false;             ///< declared .ptr
  bool is_external = false;            ///< .extern: its size is not known here
  bool has_symbolic_value = false;     ///< its initializer holds addresses of other symbols
  std::vector<std::uint8_t> contents;  ///< initial ones; zeros follow
  Place place;
};

enum class OperandKind : std::uint8_t {
  kRegister,   ///< index: of Function::registers
  kSpecial,    ///< name: "tid.x", without the percent sign
  kInteger,    ///< integer
  kFloat,      ///< integer holds the bits of a double, or of a float where `single` is set
  kVariable,   ///< index: of Function::variables
  kGlobal,     ///< index: of Module::variables
  kFunction,   ///< name; also names that are declared nowhere, such as prototypes
  kLabel,      ///< index: of the instruction that it stands before
  kAddress,    ///< parts.front(): the base; integer: what is added to it; further parts: coordinates of a tensor
  kVector,     ///< {a, b}
  kList,       ///< (a, b) of calls
  kPair,       ///< p|q
  kComponent,  ///< v.x: parts.front() is the vector, index the element
  kSink        ///< _
};

struct Operand {
  OperandKind kind = OperandKind::kSink;
  bool negated = false;  ///< !p
  bool single = false;   ///< of kFloat
  int index = -1;
  std::int64_t integer = 0;
  std::string name;
  std::vector<Operand> parts;
};

struct Guard {
  int reg = -1;
  bool negated = false;
};

struct Instruction {
  std::optional<Guard> guard;
  std::string opcode;                  ///< "ld"
  std::vector<std::string> modifiers;  ///< "global", "v4", "f32", in order
  std::vector<Operand> operands;
  Place place;

  [[nodiscard]] bool has(std::string_view modifier) const;
  /// The last modifier that is a type: of `cvt.u64.u32` u32.
  [[nodiscard]] std::optional<Type> type() const;
  /// The first modifier that is a type: of `cvt.u64.u32` u64.
  [[nodiscard]] std::optional<Type> first_type() const;
  /// Elements of .v2, .v4, .v8; 1 without.
  [[nodiscard]] int vector_length() const;
  /// "ld.global.v4.f32"
  [[nodiscard]] std::string text() const;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  int parameters = 0;               ///< variables [results, results + parameters)
  int results = 0;                  ///< variables [0, results)
  std::vector<Variable> variables;  ///< results, parameters, then those of the body
  std::vector<int> formals;         ///< of results, then parameters: the register that is one, or -1
  std::vector<Register> registers;  ///< of all scopes
  std::vector<Instruction> body;    ///< labels refer to it; one may stand behind its end
  std::map<std::string, std::vector<int>> branch_targets;  ///< of .branchtargets by label
  Place place;

  [[nodiscard]] const Variable& parameter(int number) const {
    return variables[static_cast<std::size_t>(results + number)];
  }
};

struct Module {
  std::string file;
  std::string version;  ///< "8.5"
  std::string target;   ///< "sm_90"
  int address_size = 64;
  std::vector<Variable> variables;
  std::vector<Function> functions;

  /// The one with a body, where it is declared as well; nullptr where there is none.
  [[nodiscard]] const Function* find(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> entries() const;
};

}  // namespace tangram::ptx
