// Matrix units: fragments where the PTX ISA has them, and products of matrices.
#include <algorithm>
#include <bit>
#include <fstream>
#include <random>
#include <sstream>

#include "machine.hpp"
#include "support/random.hpp"
#include "tangram/base/at.hpp"

namespace tangram::testing {
namespace {

using Words = std::vector<std::uint32_t>;
using Grid = std::vector<std::vector<int>>;

/// Whole numbers of at most 11 bits, which all formats hold.
std::uint32_t half_of(int value, bool bfloat) {
  const auto number = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (bfloat) return bits >> 16;
  if (value == 0) return 0;
  const std::uint32_t exponent = (bits >> 23 & 0xFF) - 127 + 15;
  return (bits >> 16 & 0x8000) | exponent << 10 | (bits >> 13 & 0x3FF);
}

std::uint32_t float_of(int value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }

struct Variant {
  std::string text;
  int depth = 16;
  bool bfloat = false;
  bool float_sums = true;

  [[nodiscard]] int a_words() const { return depth / 4; }
  [[nodiscard]] int b_words() const { return depth / 8; }
  [[nodiscard]] int sum_words() const { return float_sums ? 4 : 2; }
  [[nodiscard]] int words() const { return a_words() + b_words() + sum_words(); }
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"m16n8k16.row.col.f32.f16.f16.f32", 16, false, true},  {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, true, true},
      {"m16n8k16.row.col.f16.f16.f16.f16", 16, false, false}, {"m16n8k8.row.col.f32.f16.f16.f32", 8, false, true},
      {"m16n8k8.row.col.f32.bf16.bf16.f32", 8, true, true},   {"m16n8k8.row.col.f16.f16.f16.f16", 8, false, false}};
  return all;
}

std::string braces(const std::string& name, int first, int count) {
  std::string text = "{";
  for (int i = first; i < first + count; ++i) text += (i > first ? ", %" : "%") + name + std::to_string(i);
  return text + "}";
}

/// k(out, in): each lane has its registers of A, B and C one after the other in `in`, and leaves those of D in `out`.
std::string kernel_of(const Variant& v) {
  const int sums = v.a_words() + v.b_words();
  std::string text = R"(.version 8.5
.target sm_80
.address_size 64
.entry k(.param .u64 out, .param .u64 in)
{
  .reg .b32 %t, %w<12>, %d<4>;
  .reg .b64 %o, %i, %s;
  ld.param.u64 %o, [out];
  ld.param.u64 %i, [in];
  mov.u32 %t, %tid.x;
)";
  const auto line = [&](const std::string& statement) { text += "  " + statement + ";\n"; };
  line("mul.wide.u32 %s, %t, " + std::to_string(4 * v.words()));
  line("add.s64 %i, %i, %s");
  for (int i = 0; i < v.words(); ++i) {
    line("ld.global.u32 %w" + std::to_string(i) + ", [%i+" + std::to_string(4 * i) + "]");
  }
  line("mma.sync.aligned." + v.text + " " + braces("d", 0, v.sum_words()) + ", " + braces("w", 0, v.a_words()) + ", " +
       braces("w", v.a_words(), v.b_words()) + ", " + braces("w", sums, v.sum_words()));
  line("mul.wide.u32 %s, %t, " + std::to_string(4 * v.sum_words()));
  line("add.s64 %o, %o, %s");
  for (int i = 0; i < v.sum_words(); ++i) {
    line("st.global.u32 [%o+" + std::to_string(4 * i) + "], %d" + std::to_string(i));
  }
  return text + "  ret;\n}\n";
}

/// Registers of all lanes, as the ISA's figures have them: 16 rows and 8 columns by groups of four lanes.
class Fragments {
 public:
  explicit Fragments(const Variant& v) : v_(v), words_(static_cast<std::size_t>(32 * v.words())) {}

  void set_a(const Grid& a) {
    for (int row = 0; row < 16; ++row) {
      for (int k = 0; k < v_.depth; ++k) {
        put(row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2, k % 2, at(at(a, row), k));
      }
    }
  }
  void set_b(const Grid& b) {
    for (int k = 0; k < v_.depth; ++k) {
      for (int column = 0; column < 8; ++column) {
        put(column * 4 + k % 8 / 2, v_.a_words() + k / 8, k % 2, at(at(b, k), column));
      }
    }
  }
  void set_c(const Grid& c) {
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        const int lane = row % 8 * 4 + column / 2;
        const int first = v_.a_words() + v_.b_words();
        if (v_.float_sums) {
          word(lane, first + row / 8 * 2 + column % 2) = float_of(at(at(c, row), column));
        } else {
          put(lane, first + row / 8, column % 2, at(at(c, row), column));
        }
      }
    }
  }
  void put(int lane, int number, int half, int value) {
    word(lane, number) |= half_of(value, v_.bfloat) << (16 * half);
  }
  [[nodiscard]] Words multiplied() const {
    Machine machine(kernel_of(v_));
    const auto out = machine.buffer(Words(static_cast<std::size_t>(32 * v_.sum_words())));
    machine.run("k", 1, 32, out, machine.buffer(words_));
    return machine.numbers<std::uint32_t>(out);
  }

 private:
  std::uint32_t& word(int lane, int number) { return at(words_, lane * v_.words() + number); }

  const Variant& v_;
  Words words_;
};

/// What is at a place of D, by the figure of the ISA.
std::uint32_t result_at(const Variant& v, const Words& d, int row, int column) {
  const int lane = row % 8 * 4 + column / 2;
  if (v.float_sums) return at(d, lane * 4 + row / 8 * 2 + column % 2);
  return at(d, lane * 2 + row / 8) >> (16 * (column % 2)) & 0xFFFF;
}

Grid random_grid(std::mt19937_64& random, int rows, int columns) {
  Grid grid(static_cast<std::size_t>(rows));
  for (auto& row : grid) {
    for (int i = 0; i < columns; ++i) row.push_back(pick(random, -8, 8));
  }
  return grid;
}

/// A word that each lane loads of numbered halves in shared memory: eight rows of matrix m hold 64 m + 8 row + column.
Words loaded(const std::string& variant, int wanted) {
  const int count = variant.find("x4") != std::string::npos ? 4 : variant.find("x2") != std::string::npos ? 2 : 1;
  Machine machine(R"(.version 8.5
.target sm_80
.address_size 64
.shared .align 16 .b8 s[512];
.entry k(.param .u64 out)
{
  .reg .b32 %t, %p, %h, %v<4>, %x<4>;
  .reg .b64 %o, %s;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  shl.b32 %p, %t, 4;
  mov.u32 %h, s;
  add.u32 %p, %p, %h;
  mad.lo.u32 %v0, %t, 0x80008, 0x10000;
  add.u32 %v1, %v0, 0x20002;
  add.u32 %v2, %v1, 0x20002;
  add.u32 %v3, %v2, 0x20002;
  st.shared.v4.b32 [%p], {%v0, %v1, %v2, %v3};
  bar.sync 0;
  ldmatrix.sync.aligned.m8n8.)" +
                  variant + " " + braces("x", 0, count) + ", [%p];\n" +
                  "  mul.wide.u32 %s, %t, 4;\n  add.s64 %o, %o, %s;\n  st.global.u32 [%o], %x" +
                  std::to_string(wanted) + ";\n  ret;\n}\n");
  const auto out = machine.buffer(Words(32));
  machine.run("k", 1, 32, out);
  return machine.numbers<std::uint32_t>(out);
}

/// Words of matrix m in shared memory, after lanes stored registers whose halves are 64 lane + 2 m and one more.
Words stored(const std::string& variant, int count, int wanted) {
  std::string registers;
  for (int m = 0; m < count; ++m) {
    registers +=
        "  mad.lo.u32 %v" + std::to_string(m) + ", %t, 0x400040, " + std::to_string(0x10000 + m * 0x20002) + ";\n";
  }
  Machine machine(R"(.version 8.5
.target sm_90
.address_size 64
.shared .align 16 .b8 s[512];
.entry k(.param .u64 out)
{
  .reg .b32 %t, %p, %q, %x, %v<4>;
  .reg .b64 %o, %s;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mov.u32 %q, s;
  mad.lo.u32 %p, %t, 16, %q;
)" + registers + "  stmatrix.sync.aligned.m8n8." +
                  variant + " [%p], " + braces("v", 0, count) +
                  ";\n  bar.sync 0;\n  mad.lo.u32 %q, %t, 4, %q;\n  ld.shared.u32 %x, [%q+" +
                  std::to_string(128 * wanted) +
                  "];\n  mul.wide.u32 %s, %t, 4;\n  add.s64 %o, %o, %s;\n  st.global.u32 [%o], %x;\n  ret;\n}\n");
  const auto out = machine.buffer(Words(32));
  machine.run("k", 1, 32, out);
  return machine.numbers<std::uint32_t>(out);
}

TEST_CASE("a product of fragments is that of the matrices") {
  std::mt19937_64 random(11);
  for (const Variant& v : variants()) {
    INFO(v.text);
    for (int round = 0; round < 8; ++round) {
      const Grid a = random_grid(random, 16, v.depth);
      const Grid b = random_grid(random, v.depth, 8);
      const Grid c = random_grid(random, 16, 8);
      Fragments fragments(v);
      fragments.set_a(a);
      fragments.set_b(b);
      fragments.set_c(c);
      const Words d = fragments.multiplied();
      for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 8; ++column) {
          int sum = at(at(c, row), column);
          for (int k = 0; k < v.depth; ++k) sum += at(at(a, row), k) * at(at(b, k), column);
          const std::uint32_t wanted = v.float_sums ? float_of(sum) : half_of(sum, false);
          REQUIRE(result_at(v, d, row, column) == wanted);
        }
      }
    }
  }
}

TEST_CASE("elements of fragments are where the PTX ISA draws them") {
  // m16n8k16, by hand. Lane 5 is of group 1, second in it: the upper half of its second register of A, a3, is in row
  // 1 + 8 and column 2 + 1. B has k = 3, column 1 in lane 5, too: b1 of its first register. So D has 6 x 7 in row 9,
  // column 1: lane 4, c3.
  const Variant& wide = variants().front();
  Fragments lane5(wide);
  lane5.put(5, 1, 1, 6);
  lane5.put(5, 4, 1, 7);
  Words wanted(128);
  wanted[4 * 4 + 3] = float_of(42);
  CHECK(lane5.multiplied() == wanted);
  // a7 of lane 31: row 15, column 6 + 1 + 8. b3 of lane 31: k = 6 + 1 + 8, column 7. c3 of lane 31: row 15, column 7.
  Fragments lane31(wide);
  lane31.put(31, 3, 1, 5);
  lane31.put(31, 5, 1, 3);
  wanted.assign(128, 0);
  wanted[127] = float_of(15);
  CHECK(lane31.multiplied() == wanted);
  // m16n8k8: a2 of lane 14, group 3, third in it: row 11, column 4. b0 of lane 2: k = 4, column 0. D: row 11, column 0
  // is c2 of lane 12.
  const Variant& narrow = at(variants(), 3);
  Fragments lane14(narrow);
  lane14.put(14, 1, 0, 2);
  lane14.put(2, 2, 0, 9);
  wanted.assign(128, 0);
  wanted[12 * 4 + 2] = float_of(18);
  CHECK(lane14.multiplied() == wanted);
}

TEST_CASE("sums of halves are rounded once, to the nearest even") {
  // 2048 + 1 + 1 is 2050; rounded after each product it would stay 2048. 2048 + 1 + 0 lies between 2048 and 2050.
  const Variant& v = at(variants(), 2);
  for (const int second : {1, 0}) {
    Fragments fragments(v);
    for (int k = 0; k < 2; ++k) fragments.put(0, 0, k, 1);
    fragments.put(0, 4, 0, 1);
    fragments.put(0, 4, 1, second);
    fragments.put(0, 6, 0, 2048);
    CHECK((fragments.multiplied().front() & 0xFFFF) == half_of(second == 1 ? 2050 : 2048, false));
  }
}

TEST_CASE("matrices of shared memory come as the ISA lays them out, transposed or not") {
  const auto pair = [](int low, int high) { return static_cast<std::uint32_t>(low | high << 16); };
  for (const auto& [variant, matrices] : {std::pair<std::string, int>{"x1", 1},
                                          {"x2", 2},
                                          {"x4", 4},
                                          {"x1.trans", 1},
                                          {"x2.trans", 2},
                                          {"x4.trans", 4}}) {
    const bool transposed = variant.ends_with("trans");
    for (int m = 0; m < matrices; ++m) {
      INFO(variant << ", matrix " << m);
      const Words words = loaded(variant + ".shared.b16", m);
      // Lane 0: the first two of row 0; lane 5, second of group 1: columns 2 and 3 of row 1, or rows 2 and 3 of column
      // 1; lane 31: the last two of row 7, or of column 7.
      CHECK(words[0] == (transposed ? pair(64 * m, 64 * m + 8) : pair(64 * m, 64 * m + 1)));
      CHECK(words[5] == (transposed ? pair(64 * m + 17, 64 * m + 25) : pair(64 * m + 10, 64 * m + 11)));
      CHECK(words[31] == (transposed ? pair(64 * m + 55, 64 * m + 63) : pair(64 * m + 62, 64 * m + 63)));
    }
  }
}

TEST_CASE("stmatrix puts matrices where ldmatrix takes them from") {
  for (int count : {1, 2, 4}) {
    for (int m = 0; m < count; ++m) {
      INFO("x" << count << ", matrix " << m);
      const std::string size = "x" + std::to_string(count);
      const auto half = [&](int lane, int upper) { return static_cast<std::uint32_t>(64 * lane + 2 * m + upper); };
      // A row is four lanes, so that word i of the matrix is lane i's register.
      const Words rows = stored(size + ".shared.b16", count, m);
      for (int i = 0; i < 32; ++i) REQUIRE(at(rows, i) == (half(i, 0) | half(i, 1) << 16));
      // Transposed a column is four lanes: row 3 has the upper halves of the second lanes of all groups. Its first
      // word, columns 0 and 1, is of lanes 1 and 5; row 0 has the lower halves of the first lanes.
      const Words columns = stored(size + ".trans.shared.b16", count, m);
      CHECK(columns[3 * 4] == (half(1, 1) | half(5, 1) << 16));
      CHECK(columns[3] == (half(24, 0) | half(28, 0) << 16));
    }
  }
}

TEST_CASE("matrix units take whole warps") {
  Machine machine(kernel_of(variants().front()));
  const auto done = machine.launch("k", 1, 16, machine.buffer(Words(128)), machine.buffer(Words(320)));
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error()[0].message ==
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 of 16 lanes: it takes all 32 of a warp");
  CHECK(done.error()[0].where.line == 23);
}

TEST_CASE("other products of matrices are refused by name") {
  for (const std::string text : {"m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k32.row.col.s32.s8.s8.s32",
                                 "m8n8k4.row.col.f32.f16.f16.f32", "m16n8k16.row.col.bf16.bf16.bf16.bf16",
                                 "m16n8k16.row.row.f32.f16.f16.f32", "m16n8k16.row.col.f32.f16.f16.f16"}) {
    Variant v = variants().front();
    v.text = text;
    Machine machine(kernel_of(v));
    const auto done = machine.launch("k", 1, 32, machine.buffer(Words(128)), machine.buffer(Words(320)));
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error()[0].message == "mma.sync.aligned." + text + " is not interpreted");
  }
  Variant narrow = variants().front();
  narrow.text = "m16n8k8.row.col.f32.f16.f16.f32";
  Machine machine(kernel_of(narrow));
  const auto done = machine.launch("k", 1, 32, machine.buffer(Words(128)), machine.buffer(Words(320)));
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error()[0].message ==
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32: registers of its fragments are missing");
}

TEST_CASE("a compiled product with copies, ldmatrix and mma is that of three loops") {
  constexpr int kM = 32;
  constexpr int kN = 24;
  constexpr int kK = 48;
  std::mt19937_64 random(12);
  const Grid a = random_grid(random, kM, kK);
  const Grid b = random_grid(random, kK, kN);
  const auto halves = [](const Grid& grid) {
    std::vector<std::uint16_t> all;
    for (const auto& row : grid) {
      for (const int value : row) all.push_back(static_cast<std::uint16_t>(half_of(value, false)));
    }
    return all;
  };
  std::ifstream file(TANGRAM_SOURCE_DIR "/tests/data/ptx/matrix_units.ptx");
  std::ostringstream text;
  text << file.rdbuf();
  Machine machine(text.str());
  const auto from_a = machine.buffer(halves(a));
  const auto from_b = machine.buffer(halves(b));
  const auto to = machine.buffer(std::vector<float>(kM * kN));
  machine.run("product_f16", kM / 16 * (kN / 8), 32, from_a, from_b, to, kN, kK);
  const auto c = machine.numbers<float>(to);
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += at(at(a, row), k) * at(at(b, k), column);
      REQUIRE(at(c, row * kN + column) == static_cast<float>(sum));
    }
  }
  const auto is_read = [](const interpret::Touched& byte) { return byte.read && !byte.written; };
  CHECK(std::ranges::all_of(machine.memory.touched(from_a), is_read));
  CHECK(std::ranges::all_of(machine.memory.touched(from_b), is_read));
  CHECK(std::ranges::all_of(machine.memory.touched(to), [](const interpret::Touched& byte) { return byte.written; }));
}

}  // namespace
}  // namespace tangram::testing
