#include "op_table.hpp"

#include <algorithm>
#include <array>

#include "matrix.hpp"

namespace tangram::interpret {
namespace {

using enum Op;
struct Row {
  std::string_view name;
  Op op;
  std::size_t operands;  ///< results among them, that it cannot do without
};

constexpr std::array kOps = {
    Row{"abs", kAbs, 2},
    Row{"activemask", kActiveMask, 1},
    Row{"add", kAdd, 3},
    Row{"and", kAnd, 3},
    Row{"atom", kAtom, 3},
    Row{"bar", kBarrier, 0},
    Row{"barrier", kBarrier, 0},
    Row{"bfe", kBfe, 4},
    Row{"bfi", kBfi, 5},
    Row{"bfind", kBfind, 2},
    Row{"bra", kBra, 1},
    Row{"brev", kBrev, 2},
    Row{"brx", kBrx, 2},
    Row{"call", kCall, 0},
    Row{"clz", kClz, 2},
    Row{"cnot", kCnot, 2},
    Row{"copysign", kCopySign, 3},
    Row{"cos", kCos, 2},
    Row{"cp", kCopy, 3},
    Row{"cvt", kCvt, 2},
    Row{"cvta", kCvta, 2},
    Row{"div", kDiv, 3},
    Row{"ex2", kEx2, 2},
    Row{"exit", kExit, 0},
    Row{"fence", kNop, 0},
    Row{"fma", kFma, 4},
    Row{"isspacep", kIsSpace, 2},
    Row{"ld", kLd, 2},
    Row{"ldu", kLd, 2},
    Row{"lg2", kLg2, 2},
    Row{"lop3", kLop3, 5},
    Row{"mad", kMad, 4},
    Row{"mad24", kMad, 4},
    Row{"max", kMax, 3},
    Row{"membar", kNop, 0},
    Row{"min", kMin, 3},
    Row{"mov", kMov, 2},
    Row{"mul", kMul, 3},
    Row{"mul24", kMul, 3},
    Row{"neg", kNeg, 2},
    Row{"not", kNot, 2},
    Row{"or", kOr, 3},
    Row{"popc", kPopc, 2},
    Row{"prefetch", kNop, 0},
    Row{"prefetchu", kNop, 0},
    Row{"prmt", kPrmt, 4},
    Row{"rcp", kRcp, 2},
    Row{"red", kRed, 2},
    Row{"rem", kRem, 3},
    Row{"ret", kRet, 0},
    Row{"rsqrt", kRsqrt, 2},
    Row{"sad", kSad, 4},
    Row{"selp", kSelp, 4},
    Row{"set", kSet, 3},
    Row{"setp", kSetp, 3},
    Row{"shf", kShf, 4},
    Row{"shfl", kShfl, 4},
    Row{"shl", kShl, 3},
    Row{"shr", kShr, 3},
    Row{"sin", kSin, 2},
    Row{"slct", kSlct, 4},
    Row{"sqrt", kSqrt, 2},
    Row{"st", kSt, 2},
    Row{"sub", kSub, 3},
    Row{"tanh", kTanh, 2},
    Row{"testp", kTestp, 2},
    Row{"trap", kTrap, 0},
    Row{"vote", kVote, 3},
    Row{"xor", kXor, 3},
    Row{"nanosleep", kNop, 0},
};

constexpr std::array<std::string_view, 47> kChoices = {
    "eq",  "ne",  "lt",  "le",  "gt",  "ge",     "lo",       "ls",     "hi",         "hs",     "equ",      "neu",
    "ltu", "leu", "gtu", "geu", "num", "nan",    "add",      "min",    "max",        "exch",   "cas",      "inc",
    "dec", "and", "or",  "xor", "up",  "down",   "bfly",     "idx",    "all",        "any",    "ballot",   "l",
    "r",   "rni", "rzi", "rmi", "rpi", "finite", "infinite", "number", "notanumber", "normal", "subnormal"};

// Of memory instructions: how they are cached and ordered; one thread runs at a time.
constexpr std::array<std::string_view, 54> kOtherModifiers = {
    "rn",          "ftz",    "approx",   "full",         "sat",        "wide",     "uni",         "sync",
    "aligned",     "weak",   "volatile", "relaxed",      "acquire",    "release",  "acq_rel",     "gpu",
    "sys",         "cta",    "sc",       "gl",           "nc",         "ca",       "cg",          "cs",
    "cv",          "wb",     "wt",       "lu",           "v2",         "v4",       "to",          "b4e",
    "clamp",       "wrap",   "async",    "commit_group", "wait_group", "wait_all", "warp",        "relu",
    "arrive",      "global", "const",    "shared",       "local",      "param",    "shared::cta", "param::entry",
    "param::func", "noftz",  "L1",       "L2",           "cluster",    "tensormap"};

constexpr std::array<std::string_view, 6> kHints = {"L1::", "L2::", "level::", "alias", "proxy", "unified"};

}  // namespace

std::optional<KnownOp> op_named(const ptx::Instruction& instruction) {
  if (instruction.opcode == "cp" && !instruction.has("shared") && !instruction.has("shared::cta"))
    return KnownOp{kNop, 0};
  if (instruction.opcode == "bar" && instruction.has("warp")) return KnownOp{kSyncWarp, 1};
  if (matrix_product(instruction)) return KnownOp{kMatrixProduct, 4};
  if (matrix_move(instruction)) return KnownOp{instruction.opcode == "ldmatrix" ? kLoadMatrix : kStoreMatrix, 2};
  const auto* found = std::ranges::find(kOps, std::string_view(instruction.opcode), &Row::name);
  return found == kOps.end() ? std::nullopt : std::optional(KnownOp{found->op, found->operands});
}

bool is_choice(std::string_view modifier) { return std::ranges::find(kChoices, modifier) != kChoices.end(); }

bool is_known_modifier(std::string_view modifier) {
  if (is_choice(modifier)) return true;
  if (std::ranges::find(kOtherModifiers, modifier) != kOtherModifiers.end()) return true;
  if (std::ranges::any_of(kHints, [&](std::string_view hint) { return modifier.starts_with(hint); })) return true;
  const auto type = ptx::type_named(modifier);
  return type && *type != ptx::Type::kOther && *type != ptx::Type::kB128;
}

}  // namespace tangram::interpret
