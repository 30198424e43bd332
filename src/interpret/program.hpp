// Functions made ready to run. Goes in: a module of the parser. Comes out: instructions whose operands are numbers and
// whose names were looked up once, or what the interpreter does not know.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "numbers.hpp"
#include "tangram/base/expected.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::interpret {

enum class Op : std::uint8_t {
  kAbs,
  kActiveMask,
  kAdd,
  kAnd,
  kAtom,
  kBarrier,
  kBfe,
  kBfi,
  kBfind,
  kBra,
  kBrev,
  kBrx,
  kCall,
  kClz,
  kCnot,
  kCopy,
  kCopySign,
  kCos,
  kCvt,
  kCvta,
  kDiv,
  kEx2,
  kExit,
  kFma,
  kIsSpace,
  kLd,
  kLg2,
  kLoadMatrix,
  kLop3,
  kMad,
  kMatrixProduct,
  kMax,
  kMin,
  kMov,
  kMul,
  kNeg,
  kNop,
  kNot,
  kOr,
  kPopc,
  kPrmt,
  kRcp,
  kRed,
  kRem,
  kRet,
  kRsqrt,
  kSad,
  kSelp,
  kSet,
  kSetp,
  kShf,
  kShfl,
  kShl,
  kShr,
  kSin,
  kSlct,
  kSqrt,
  kSt,
  kStoreMatrix,
  kSub,
  kSyncWarp,
  kTanh,
  kTestp,
  kTrap,
  kVote,
  kXor
};

enum class RefKind : std::uint8_t {
  kRegister,
  kValue,
  kSpecial,
  kLocalVariable,
  kParameterVariable,
  kSharedVariable,
  kGlobalVariable,
  kLabel,
  kGroup,
  kSink
};

enum class Special : std::uint8_t { kTid, kNtid, kCtaid, kNctaid, kLane, kWarp, kLaneMask, kClock };

struct Ref {
  RefKind kind = RefKind::kSink;
  bool negated = false;
  int index = 0;   ///< register, label, axis; of variables their number in the function or module
  Bits value = 0;  ///< kValue; of an address what is added; of lane masks which: eq, lt, le, gt, ge
  Special special = Special::kTid;
  std::vector<Ref> parts;  ///< kGroup: a vector, a pair, or an address' base

  /// Of a group its parts, of anything else itself.
  [[nodiscard]] std::span<const Ref> elements() const {
    return kind == RefKind::kGroup ? std::span<const Ref>(parts) : std::span<const Ref>(this, 1);
  }
};

struct Step {
  Op op = Op::kNop;
  int guard = -1;
  bool guard_negated = false;
  ptx::Type type = ptx::Type::kB32;    ///< of operands: the last that is named
  ptx::Type result = ptx::Type::kB32;  ///< the first
  int elements = 1;                    ///< of vectors; matrices of ldmatrix and stmatrix, the depth of mma
  std::string_view choice;             ///< comparison, atomic operation, shuffle or vote, funnel shift, rounding of cvt
  std::string_view second;             ///< and, or of setp; addressing of shf; direction of cvta; trans of matrices
  ptx::Space space = ptx::Space::kGeneric;
  bool wide = false;
  bool high = false;
  bool flush = false;  ///< .ftz
  bool saturate = false;
  bool abs_or_relu = false;
  std::vector<Ref> operands;
  const ptx::Instruction* source = nullptr;
  const std::vector<int>* targets = nullptr;  ///< of brx.idx
  int callee = -1;                            ///< of call, in Program::functions
};

struct Routine {
  const ptx::Function* source = nullptr;
  std::vector<Step> steps;
  std::vector<int> widths;            ///< of registers, in bits
  std::vector<std::int64_t> offsets;  ///< of variables, each in its space
  std::int64_t parameter_bytes = 0;   ///< of a frame: parameters, results, and what it passes
  std::int64_t local_bytes = 0;
};

struct Program {
  const ptx::Module* module = nullptr;
  std::vector<Routine> routines;  ///< the entry first
  std::int64_t shared_bytes = 0;  ///< of all variables
};

/// The entry and what it calls. Every instruction is known, or the first that is not is named.
[[nodiscard]] Expected<Program> load(const ptx::Module& module, const std::string& entry);

}  // namespace tangram::interpret
