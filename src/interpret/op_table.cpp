#include "op_table.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tangram::interpret {
namespace {

using enum Op;
using Row = std::pair<std::string_view, Op>;

constexpr std::array kOps = {
    Row{"abs", kAbs},
    Row{"activemask", kActiveMask},
    Row{"add", kAdd},
    Row{"and", kAnd},
    Row{"atom", kAtom},
    Row{"bar", kBarrier},
    Row{"barrier", kBarrier},
    Row{"bfe", kBfe},
    Row{"bfi", kBfi},
    Row{"bfind", kBfind},
    Row{"bra", kBra},
    Row{"brev", kBrev},
    Row{"brx", kBrx},
    Row{"call", kCall},
    Row{"clz", kClz},
    Row{"cnot", kCnot},
    Row{"copysign", kCopySign},
    Row{"cos", kCos},
    Row{"cp", kCopy},
    Row{"cvt", kCvt},
    Row{"cvta", kCvta},
    Row{"div", kDiv},
    Row{"ex2", kEx2},
    Row{"exit", kExit},
    Row{"fence", kNop},
    Row{"fma", kFma},
    Row{"isspacep", kIsSpace},
    Row{"ld", kLd},
    Row{"ldu", kLd},
    Row{"lg2", kLg2},
    Row{"lop3", kLop3},
    Row{"mad", kMad},
    Row{"mad24", kMad},
    Row{"max", kMax},
    Row{"membar", kNop},
    Row{"min", kMin},
    Row{"mov", kMov},
    Row{"mul", kMul},
    Row{"mul24", kMul},
    Row{"neg", kNeg},
    Row{"not", kNot},
    Row{"or", kOr},
    Row{"popc", kPopc},
    Row{"prefetch", kNop},
    Row{"prefetchu", kNop},
    Row{"prmt", kPrmt},
    Row{"rcp", kRcp},
    Row{"red", kRed},
    Row{"rem", kRem},
    Row{"ret", kRet},
    Row{"rsqrt", kRsqrt},
    Row{"sad", kSad},
    Row{"selp", kSelp},
    Row{"set", kSet},
    Row{"setp", kSetp},
    Row{"shf", kShf},
    Row{"shfl", kShfl},
    Row{"shl", kShl},
    Row{"shr", kShr},
    Row{"sin", kSin},
    Row{"slct", kSlct},
    Row{"sqrt", kSqrt},
    Row{"st", kSt},
    Row{"sub", kSub},
    Row{"tanh", kTanh},
    Row{"testp", kTestp},
    Row{"trap", kTrap},
    Row{"vote", kVote},
    Row{"xor", kXor},
    Row{"nanosleep", kNop},
};

// Of memory instructions: how they are cached and ordered; one thread runs at a time.
constexpr std::array<std::string_view, 61> kModifiers = {
    "rn",  "rni",  "rzi",  "rmi",     "rpi",  "ftz",      "approx",  "full",    "sat",     "wide",    "lo",
    "hi",  "uni",  "sync", "aligned", "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "gpu",
    "sys", "cta",  "sc",   "gl",      "nc",   "ca",       "cg",      "cs",      "cv",      "wb",      "wt",
    "lu",  "v2",   "v4",   "eq",      "ne",   "lt",       "le",      "gt",      "ge",      "ls",      "hs",
    "and", "or",   "xor",  "to",      "b4e",  "l",        "r",       "clamp",   "wrap",    "add",     "min",
    "max", "exch", "cas",  "inc",     "dec",  "idx"};
constexpr std::array<std::string_view, 43> kMoreModifiers = {
    "up",          "down",     "bfly",         "all",         "any",
    "ballot",      "async",    "commit_group", "wait_group",  "wait_all",
    "warp",        "equ",      "neu",          "ltu",         "leu",
    "gtu",         "geu",      "num",          "nan",         "relu",
    "finite",      "infinite", "number",       "notanumber",  "normal",
    "subnormal",   "arrive",   "proxy",        "global",      "const",
    "shared",      "local",    "param",        "shared::cta", "param::entry",
    "param::func", "alias",    "noftz",        "level::eviction_priority",
    "L1",          "L2",       "cluster",      "tensormap"};

constexpr std::array<std::string_view, 6> kHints = {"L1::", "L2::", "level::", "alias", "proxy", "unified"};

}  // namespace

std::optional<Op> op_named(const ptx::Instruction& instruction) {
  if (instruction.opcode == "cp" && !instruction.has("shared") && !instruction.has("shared::cta")) return kNop;
  if (instruction.opcode == "bar" && instruction.has("warp")) return kSyncWarp;
  const auto* found = std::ranges::find(kOps, std::string_view(instruction.opcode), &Row::first);
  return found == kOps.end() ? std::nullopt : std::optional(found->second);
}

bool is_known_modifier(std::string_view modifier) {
  if (std::ranges::find(kModifiers, modifier) != kModifiers.end()) return true;
  if (std::ranges::find(kMoreModifiers, modifier) != kMoreModifiers.end()) return true;
  if (std::ranges::any_of(kHints, [&](std::string_view hint) { return modifier.starts_with(hint); })) return true;
  const auto type = ptx::type_named(modifier);
  return type && *type != ptx::Type::kOther && *type != ptx::Type::kB128;
}

}  // namespace tangram::interpret
