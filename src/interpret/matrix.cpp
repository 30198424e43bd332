#include "matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "tangram/base/at.hpp"
#include "windows.hpp"

namespace tangram::interpret {
namespace {

using ptx::Type;

constexpr int kRows = 16;    // of A and D
constexpr int kColumns = 8;  // of B and D
constexpr int kHalfBits = 16;

struct Cell {
  int row = 0;
  int column = 0;
};

/// Eight groups of four lanes: a group has a row, its lanes two neighbours each.
struct LanePlace {
  explicit LanePlace(std::int64_t lane) : group(static_cast<int>(lane / 4)), pair(static_cast<int>(lane % 4) * 2) {}
  int group;
  int pair;
};

/// Elements 0 and 1 lie side by side, 2 and 3 eight rows below, 4 to 7 eight columns to the right of those.
Cell cell_of_a(std::int64_t lane, int element) {
  const LanePlace place(lane);
  return {place.group + (element / 2 % 2) * 8, place.pair + element % 2 + element / 4 * 8};
}

/// Elements 0 and 1 lie one below the other, 2 and 3 eight rows below those.
Cell cell_of_b(std::int64_t lane, int element) {
  const LanePlace place(lane);
  return {place.pair + element % 2 + element / 2 * 8, place.group};
}

Cell cell_of_sum(std::int64_t lane, int element) { return cell_of_a(lane, element); }

bool is_half(Type type) { return type == Type::kF16 || type == Type::kBf16; }

/// Two halves a register, or one float.
double element_of(const Thread& thread, const Ref& fragment, Type type, int element) {
  const auto registers = fragment.elements();
  if (!is_half(type)) return to_double(thread.read(at(registers, element)), type);
  const Bits bits = thread.read(at(registers, element / 2)) >> (element % 2 * kHalfBits);
  return to_double(truncated(bits, kHalfBits), type);
}

void write_elements(Thread& thread, const Ref& fragment, Type type, std::span<const double> values) {
  const auto registers = fragment.elements();
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (is_half(type)) {
      thread.write(registers[i], from_double(values[2 * i], type) | from_double(values[2 * i + 1], type) << kHalfBits);
    } else {
      thread.write(registers[i], from_double(values[i], type));
    }
  }
}

bool has_all_lanes(const std::vector<Thread*>& lanes) {
  if (lanes.size() == static_cast<std::size_t>(kWarpThreads)) return true;
  const Step& step = lanes.front()->step();
  lanes.front()->fail(
      fmt::format("{} of {} lanes: it takes all {} of a warp", step.source->text(), lanes.size(), kWarpThreads));
  return false;
}

std::optional<Type> type_of(const std::string& modifier) { return ptx::type_named(modifier); }

/// The rows of a matrix, of which each lane gives the address of one.
using MatrixRows = std::array<std::span<std::uint8_t>, 8>;

std::span<std::uint8_t> half_at(const MatrixRows& rows, Cell cell) {
  return at(rows, cell.row).subspan(static_cast<std::size_t>(2 * cell.column), 2);
}

/// Where the lower (0) and the upper half (1) of a lane's register lie in a matrix.
Cell cell_of_register(const LanePlace& place, int half, bool transposed) {
  const Cell cell{place.group, place.pair + half};
  return transposed ? Cell{cell.column, cell.row} : cell;
}

/// Nothing where an address faults.
std::optional<std::array<MatrixRows, 4>> matrices_of(const std::vector<Thread*>& lanes, const Step& step) {
  std::array<MatrixRows, 4> matrices;
  for (int lane = 0; lane < 8 * step.elements; ++lane) {
    const auto row = at(lanes, lane)->matrix_row(step);
    if (row.empty()) return std::nullopt;
    at(at(matrices, lane / 8), lane % 8) = row;
  }
  return matrices;
}

}  // namespace

std::optional<MatrixProduct> matrix_product(const ptx::Instruction& instruction) {
  const std::vector<std::string>& words = instruction.modifiers;
  constexpr std::array<std::string_view, 5> kFront{"sync", "aligned", "", "row", "col"};  // the shape between
  if (instruction.opcode != "mma" || words.size() != kFront.size() + 4) return std::nullopt;
  for (std::size_t i = 0; i < kFront.size(); ++i) {
    if (!kFront[i].empty() && words[i] != kFront[i]) return std::nullopt;
  }
  MatrixProduct product;
  if (words[2] != "m16n8k8" && words[2] != "m16n8k16") return std::nullopt;
  product.depth = words[2] == "m16n8k8" ? 8 : 16;
  product.result = type_of(words[5]).value_or(Type::kOther);
  product.factor = type_of(words[6]).value_or(Type::kOther);
  const bool is_sum = product.result == Type::kF32 || (product.result == Type::kF16 && product.factor == Type::kF16);
  if (!is_half(product.factor) || !is_sum || words[7] != words[6] || words[8] != words[5]) return std::nullopt;
  return product;
}

std::optional<MatrixMove> matrix_move(const ptx::Instruction& instruction) {
  std::vector<std::string> words = instruction.modifiers;
  MatrixMove move;
  move.transposed = std::erase(words, "trans") > 0;
  std::erase_if(words, [](const std::string& word) { return word == "shared" || word == "shared::cta"; });
  const bool is_move = instruction.opcode == "ldmatrix" || instruction.opcode == "stmatrix";
  if (!is_move || words.size() != 5 || words[0] != "sync" || words[1] != "aligned" || words[2] != "m8n8" ||
      words[4] != "b16") {
    return std::nullopt;
  }
  if (words[3] != "x1" && words[3] != "x2" && words[3] != "x4") return std::nullopt;
  move.matrices = words[3] == "x1" ? 1 : words[3] == "x2" ? 2 : 4;
  return move;
}

void multiply_matrices(const std::vector<Thread*>& lanes) {
  if (!has_all_lanes(lanes)) return;
  const Step& step = lanes.front()->step();
  const int depth = step.elements;
  std::array<std::array<double, 16>, kRows> a{};
  std::array<std::array<double, kColumns>, 16> b{};
  std::array<std::array<double, kColumns>, kRows> sum{};
  for (const Thread* thread : lanes) {
    for (int i = 0; i < depth / 2; ++i) {
      const Cell cell = cell_of_a(thread->lane(), i);
      at(at(a, cell.row), cell.column) = element_of(*thread, step.operands[1], step.type, i);
    }
    for (int i = 0; i < depth / 4; ++i) {
      const Cell cell = cell_of_b(thread->lane(), i);
      at(at(b, cell.row), cell.column) = element_of(*thread, step.operands[2], step.type, i);
    }
  }
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < depth; ++k) {
      for (int column = 0; column < kColumns; ++column) {
        at(at(sum, row), column) += at(at(a, row), k) * at(at(b, k), column);
      }
    }
  }
  for (Thread* thread : lanes) {
    std::array<double, 4> values{};
    for (int i = 0; i < 4; ++i) {
      const Cell cell = cell_of_sum(thread->lane(), i);
      at(values, i) = at(at(sum, cell.row), cell.column) + element_of(*thread, step.operands[3], step.result, i);
    }
    write_elements(*thread, step.operands[0], step.result, values);
  }
}

void load_matrices(const std::vector<Thread*>& lanes) {
  if (!has_all_lanes(lanes)) return;
  const Step& step = lanes.front()->step();
  const auto matrices = matrices_of(lanes, step);
  if (!matrices) return;
  for (Thread* thread : lanes) {
    const LanePlace place(thread->lane());
    const auto targets = step.operands[0].elements();
    for (int m = 0; m < step.elements; ++m) {
      Bits bits = 0;
      for (int half = 0; half < 2; ++half) {
        const Cell cell = cell_of_register(place, half, step.second == "trans");
        bits |= bits_in(half_at(at(*matrices, m), cell)) << (half * kHalfBits);
      }
      thread->write(at(targets, m), bits);
    }
  }
}

void store_matrices(const std::vector<Thread*>& lanes) {
  if (!has_all_lanes(lanes)) return;
  const Step& step = lanes.front()->step();
  const auto matrices = matrices_of(lanes, step);
  if (!matrices) return;
  for (const Thread* thread : lanes) {
    const LanePlace place(thread->lane());
    const auto sources = step.operands[1].elements();
    for (int m = 0; m < step.elements; ++m) {
      for (int half = 0; half < 2; ++half) {
        const Cell cell = cell_of_register(place, half, step.second == "trans");
        const Bits bits = thread->read(at(sources, m)) >> (half * kHalfBits);
        std::memcpy(half_at(at(*matrices, m), cell).data(), &bits, 2);
      }
    }
  }
}

}  // namespace tangram::interpret
