// What a kernel does to memory. Goes in: a module; for ranges also how an entry is launched. Comes out: for each
// pointer parameter whether it is read, written or updated, for a launch the bytes of each, and why where that is
// conservative. Assumed is the object rule of C++: an access stays in the allocation that its base pointer points into.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::ptx {

/// kUpdate: read and written by one atomic operation, so that updates of a buffer keep their order.
enum class Effect : std::uint8_t { kRead, kWrite, kUpdate };
[[nodiscard]] std::string_view to_string(Effect effect);

/// Where an address comes from.
enum class BaseKind : std::uint8_t {
  kParameter,  ///< the pointer that the parameter holds at `offset`
  kTensorMap,  ///< the tensor that the parameter describes
  kVariable,   ///< a variable of the module: index is that of Module::variables
  kOnChip,     ///< shared, local or parameter memory, which no other launch sees
  kLoaded,     ///< a pointer that was loaded from memory
  kUnknown     ///< nothing is known
};

struct Base {
  BaseKind kind = BaseKind::kUnknown;
  int index = -1;
  std::int64_t offset = 0;

  auto operator<=>(const Base&) const = default;
};

/// One instruction that touches global memory.
struct Access {
  int instruction = 0;  ///< of the body that calls are inlined into
  Effect effect = Effect::kRead;
  std::string text;  ///< "ld.global.v4.f32"
  Place place;
  std::int64_t width = 0;   ///< bytes; 0 where no operand says it
  std::vector<Base> bases;  ///< any of them; sorted
  bool indirect = false;    ///< its offset depends on data
};

/// What happens to what a parameter points to.
struct ParameterUse {
  Base base;
  std::string name;
  bool reads = false;
  bool writes = false;
  bool updates = false;
  bool indirect = false;  ///< some offset depends on data: the whole buffer counts
};

/// Why something is not known.
struct Reason {
  Place place;
  std::string text;  ///< "the pointer was loaded from memory"
};

/// An entry, whatever its launch.
struct EntryAnalysis {
  std::string entry;
  std::vector<Access> accesses;          ///< in the order of the text
  std::vector<ParameterUse> parameters;  ///< in the order of the signature; those alone that are accessed
  std::vector<std::string> variables;    ///< of the module, that are accessed and not constant
  /// Empty where everything is known. Otherwise the kernel may touch anything: it is pinned to where its memory is.
  std::vector<Reason> pinned;
};

/// Reads, writes and updates by provenance. Fails where the module has no such entry.
[[nodiscard]] Expected<EntryAnalysis> analyze(const Module& module, const std::string& entry);

/// An argument that points into an allocation. Arguments of one allocation share a name.
struct BufferArgument {
  std::string name;
  std::int64_t bytes = 0;   ///< of the allocation
  std::int64_t offset = 0;  ///< where in it the argument points to
  /// What the allocation begins with, as it was recorded: indices that other accesses depend on. Ranges do not read it.
  std::vector<std::int32_t> integers = {};
};
using Argument = std::variant<std::int64_t, BufferArgument>;

struct Launch {
  std::string entry;
  std::array<std::int64_t, 3> grid{1, 1, 1};   ///< blocks
  std::array<std::int64_t, 3> block{1, 1, 1};  ///< threads
  std::vector<Argument> arguments;             ///< one for each parameter
};

/// count pieces, each `stride` bytes behind the one before.
struct Repeat {
  std::int64_t stride = 0;
  std::int64_t count = 1;

  auto operator<=>(const Repeat&) const = default;
};

/// Bytes of an allocation: [first, first + run), once for each combination of the repeats.
struct ByteSet {
  std::int64_t first = 0;
  std::int64_t run = 0;
  std::vector<Repeat> repeats;  ///< by ascending stride, all positive

  [[nodiscard]] std::int64_t end() const;  ///< behind the last byte
  [[nodiscard]] bool contains(std::int64_t byte) const;
  auto operator<=>(const ByteSet&) const = default;
};

/// What a launch does to the buffer of one argument with one effect.
struct BufferRange {
  int argument = 0;
  Effect effect = Effect::kRead;
  std::vector<ByteSet> bytes;   ///< in the allocation; every byte touched is in one of them
  bool exact = false;           ///< and every byte of them is touched
  std::vector<Reason> reasons;  ///< why not, where it is not exact
};

struct LaunchRanges {
  std::vector<BufferRange> ranges;  ///< by argument, then effect
  std::vector<Reason> pinned;       ///< as of EntryAnalysis
};

/// Byte ranges by affine forms. Fails where there is no such entry, or the launch does not fit its signature.
[[nodiscard]] Expected<LaunchRanges> ranges_of(const Module& module, const Launch& launch);

}  // namespace tangram::ptx
