// Which bytes launches touch, worked out by hand.
#include <fmt/format.h>

#include "kernels.hpp"

namespace tangram::testing {
namespace {

/// "a read [0,16)": exact; "~" before what may be less. Repeats as "x3@12": three, each 12 bytes behind the one before.
std::string ranges(const std::string& text, const ptx::Launch& launch) {
  const auto found = ptx::ranges_of(module_of(text), launch);
  if (!found) return found.error()[0].message;
  std::string result;
  for (const ptx::BufferRange& range : found->ranges) {
    result += fmt::format("{}{}{} {}", result.empty() ? "" : "; ", range.exact ? "" : "~", "abc"[range.argument],
                          to_string(range.effect));
    for (const ptx::ByteSet& set : range.bytes) {
      result += fmt::format(" [{},{})", set.first, set.first + set.run);
      for (const ptx::Repeat& repeat : set.repeats) result += fmt::format("x{}@{}", repeat.count, repeat.stride);
    }
  }
  return result;
}

std::string why(const std::string& text, const ptx::Launch& launch) {
  const auto found = ptx::ranges_of(module_of(text), launch);
  REQUIRE(found.has_value());
  REQUIRE(found->ranges.size() == 1);
  REQUIRE_FALSE(found->ranges[0].reasons.empty());
  return found->ranges[0].reasons[0].text;
}

/// %rd2, %rd3, %rd4: element %i of a, b, c.
constexpr auto kElements =
    "mul.wide.s32 %rd1, %i, 4;\n add.s64 %rd2, %a, %rd1;\n add.s64 %rd3, %b, %rd1;\n add.s64 %rd4, %c, %rd1;\n";

std::string add_vectors() {
  return kernel("setp.ge.s32 %p1, %i, %n;\n @%p1 bra END;\n" + std::string(kElements) +
                "ld.global.f32 %f1, [%rd2];\n ld.global.f32 %f2, [%rd3];\n add.f32 %f3, %f1, %f2;\n"
                "st.global.f32 [%rd4], %f3;\nEND:\n");
}

TEST_CASE("a guarded sum of vectors touches n elements of each") {
  // 3 blocks of 64 threads; 150 elements of 4 bytes.
  CHECK(ranges(add_vectors(), launch_of(3, 64, 150, 0)) == "a read [0,600); b read [0,600); c write [0,600)");
  CHECK(ranges(add_vectors(), launch_of(3, 64, 500, 0)) == "a read [0,768); b read [0,768); c write [0,768)");
  CHECK(ranges(add_vectors(), launch_of(3, 64, 0, 0)) == "");
}

TEST_CASE("a pointer into its allocation moves the range") {
  ptx::Launch launch = launch_of(1, 8, 8, 0);
  launch.arguments[0] = ptx::BufferArgument{"a", 4096, 100};
  CHECK(ranges(add_vectors(), launch) == "a read [100,132); b read [0,32); c write [0,32)");
}

TEST_CASE("a copy with strides has pieces") {
  // c[i] = a[3 i]: 4 bytes every 12.
  const std::string text = kernel(
      "mul.lo.s32 %r1, %i, 3;\n mul.wide.s32 %rd1, %r1, 4;\n add.s64 %rd2, %a, %rd1;\n"
      "ld.global.f32 %f1, [%rd2];\n mul.wide.s32 %rd3, %i, 4;\n add.s64 %rd4, %c, %rd3;\n"
      "st.global.f32 [%rd4], %f1;\n");
  CHECK(ranges(text, launch_of(2, 16, 0, 0)) == "a read [0,4)x32@12; c write [0,128)");
}

TEST_CASE("vectors of four are 16 bytes") {
  const std::string text = kernel(
      "mul.wide.s32 %rd1, %i, 32;\n add.s64 %rd2, %a, %rd1;\n"
      "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2+8];\n");
  CHECK(ranges(text, launch_of(1, 4, 0, 0)) == "a read [8,24)x4@32");
}

TEST_CASE("a predicate guards an instruction alone") {
  const std::string text = kernel(std::string(kElements) +
                                  "setp.lt.s32 %p1, %t, 3;\n @%p1 red.global.add.u32 [%rd3], 1;\n"
                                  "@!%p1 ld.global.f32 %f1, [%rd2];\n");
  // 2 blocks of 8 threads: threads 0 to 2 of each add, 3 to 7 read.
  CHECK(ranges(text, launch_of(2, 8, 0, 0)) == "a read [12,32)x2@32; b update [0,12)x2@32");
}

TEST_CASE("a loop over the columns of rows is one range") {
  // for (j = 0; j < m; ++j) read a[i m + j], with i < n: n m elements.
  const std::string text = kernel(R"(
  setp.ge.s32 %p1, %i, %n;
  @%p1 bra END;
  mul.lo.s32 %r1, %i, %m;
  mov.u32 %r2, 0;
HEAD:
  setp.ge.s32 %p2, %r2, %m;
  @%p2 bra END;
  add.s32 %r3, %r1, %r2;
  mul.wide.s32 %rd1, %r3, 4;
  add.s64 %rd2, %a, %rd1;
  ld.global.f32 %f1, [%rd2];
  add.s32 %r2, %r2, 1;
  bra.uni HEAD;
END:
)");
  CHECK(ranges(text, launch_of(2, 16, 20, 7)) == "a read [0,560)");
  CHECK(ranges(text, launch_of(2, 16, 20, 0)) == "");
}

TEST_CASE("pointers that step, counters that run down, nested loops") {
  // 3 times: 5 elements, then 12 bytes on: a pointer that moves by 4 * 5 + 12 in each round.
  const std::string text = kernel(R"(
  mov.u64 %rd1, %a;
  mov.u32 %r1, 3;
OUTER:
  mov.u32 %r2, 5;
INNER:
  st.global.f32 [%rd1], %f1;
  add.s64 %rd1, %rd1, 4;
  add.s32 %r2, %r2, -1;
  setp.ne.s32 %p1, %r2, 0;
  @%p1 bra INNER;
  add.s64 %rd1, %rd1, 12;
  add.s32 %r1, %r1, -1;
  setp.gt.s32 %p2, %r1, 0;
  @%p2 bra OUTER;
  st.global.f32 [%rd1], %f1;
)");
  // And behind both: 3 * 32 = 96.
  CHECK(ranges(text, launch_of(1, 1, 0, 0)) == "a write [0,20)x3@32 [96,100)");
}

TEST_CASE("a loop whose threads step over the grid touches what n says") {
  const std::string text = kernel(R"(
  mov.u32 %r1, %nctaid.x;
  mul.lo.s32 %r2, %r1, %w;
HEAD:
  setp.ge.s32 %p1, %i, %n;
  @%p1 bra END;
  mul.wide.s32 %rd1, %i, 4;
  add.s64 %rd2, %a, %rd1;
  st.global.f32 [%rd2], %f1;
  add.s32 %i, %i, %r2;
  bra.uni HEAD;
END:
)");
  CHECK(ranges(text, launch_of(2, 16, 77, 0)) == "a write [0,308)");
  CHECK(ranges(text, launch_of(2, 16, 5, 0)) == "a write [0,20)");
}

TEST_CASE("quotients and remainders are digits of the index") {
  // b[(i % 16) * 64 + i / 16] with i < 40: rows of 64, 16 of them with 2 entries, the first 8 with 3.
  const std::string text = kernel(R"(
  setp.ge.s32 %p1, %i, %n;
  @%p1 bra END;
  div.s32 %r1, %i, 16;
  rem.s32 %r2, %i, 16;
  mad.lo.s32 %r3, %r2, 64, %r1;
  mul.wide.s32 %rd1, %r3, 4;
  add.s64 %rd2, %b, %rd1;
  st.global.f32 [%rd2], %f1;
END:
)");
  CHECK(ranges(text, launch_of(2, 32, 40, 0)) == "b write [0,8)x16@256 [8,12)x8@256");
}

TEST_CASE("masks and shifts are digits, too") {
  // Lane and warp of 64 threads: a[warp * 100 + lane].
  const std::string text = kernel(
      "and.b32 %r1, %t, 31;\n shr.u32 %r2, %t, 5;\n mad.lo.s32 %r3, %r2, 100, %r1;\n"
      "mul.wide.s32 %rd1, %r3, 4;\n add.s64 %rd2, %a, %rd1;\n ld.global.f32 %f1, [%rd2];\n");
  CHECK(ranges(text, launch_of(1, 64, 0, 0)) == "a read [0,128)x2@400");
}

TEST_CASE("a tile of a product reads rows and columns and writes its part") {
  // c (16 x 16) = a (16 x 16) b (16 x 16) by 2 x 2 tiles of 8 x 8 threads: a[row 16 + k 8 + tx], b[(k 8 + ty) 16 +
  // col].
  const std::string text = kernel(R"(
  .shared .align 4 .b8 tile[512];
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %ctaid.y;
  mad.lo.s32 %r3, %r2, 8, %r1;
  mad.lo.s32 %r4, %g, 8, %t;
  mov.u32 %r5, 0;
K:
  shl.b32 %r6, %r5, 3;
  add.s32 %r7, %r6, %t;
  mad.lo.s32 %r8, %r3, 16, %r7;
  mul.wide.s32 %rd1, %r8, 4;
  add.s64 %rd2, %a, %rd1;
  ld.global.f32 %f1, [%rd2];
  add.s32 %r9, %r6, %r1;
  mad.lo.s32 %r10, %r9, 16, %r4;
  mul.wide.s32 %rd3, %r10, 4;
  add.s64 %rd4, %b, %rd3;
  ld.global.f32 %f2, [%rd4];
  mad.lo.s32 %r11, %r1, 8, %t;
  shl.b32 %r12, %r11, 2;
  mov.u32 %r13, tile;
  add.s32 %r14, %r13, %r12;
  st.shared.f32 [%r14], %f1;
  st.shared.f32 [%r14+256], %f2;
  bar.sync 0;
  ld.shared.f32 %f3, [%r14];
  bar.sync 0;
  add.s32 %r5, %r5, 1;
  setp.lt.s32 %p1, %r5, 2;
  @%p1 bra K;
  mad.lo.s32 %r15, %r3, 16, %r4;
  mul.wide.s32 %rd5, %r15, 4;
  add.s64 %rd6, %c, %rd5;
  st.global.f32 [%rd6], %f3;
)");
  ptx::Launch launch = launch_of(1, 8, 0, 0);
  launch.block = {8, 8, 1};
  // One tile: rows 0 to 7 of a, columns 0 to 7 of b, the upper left quarter of c.
  CHECK(ranges(text, launch) == "a read [0,512); b read [0,32)x16@64; c write [0,32)x8@64");
  launch.grid = {2, 2, 1};
  CHECK(ranges(text, launch) == "a read [0,1024); b read [0,1024); c write [0,1024)");
}

TEST_CASE("ways that part and meet again leave all threads") {
  const std::string text = kernel(std::string(kElements) + R"(
  setp.lt.s32 %p1, %t, 5;
  @%p1 bra LOW;
  ld.global.f32 %f1, [%rd2];
  bra.uni MEET;
LOW:
  ld.global.f32 %f1, [%rd3];
MEET:
  st.global.f32 [%rd4], %f1;
)");
  CHECK(ranges(text, launch_of(1, 8, 0, 0)) == "a read [20,32); b read [0,20); c write [0,32)");
}

TEST_CASE("one thread, or all but the first") {
  const std::string one =
      kernel(std::string(kElements) + "setp.eq.s32 %p1, %i, 5;\n @%p1 st.global.f32 [%rd2], %f1;\n");
  CHECK(ranges(one, launch_of(2, 8, 0, 0)) == "a write [20,24)");
  const std::string others =
      kernel(std::string(kElements) + "setp.ne.s32 %p1, %t, 0;\n @%p1 st.global.f32 [%rd2], %f1;\n");
  CHECK(ranges(others, launch_of(1, 8, 0, 0)) == "a write [4,32)");
}

TEST_CASE("branches that the scalars decide are taken or not") {
  const std::string text = kernel(std::string(kElements) +
                                  "setp.gt.s32 %p1, %m, 3;\n selp.b64 %rd5, %rd2, %rd3, %p1;\n"
                                  "st.global.f32 [%rd5], %f1;\n");
  CHECK(ranges(text, launch_of(1, 4, 0, 4)) == "a write [0,16)");
  CHECK(ranges(text, launch_of(1, 4, 0, 3)) == "b write [0,16)");
}

TEST_CASE("a choice among pointers by thread may be either") {
  const std::string text = kernel(std::string(kElements) +
                                  "setp.gt.s32 %p1, %t, 1;\n selp.b64 %rd5, %rd2, %rd3, %p1;\n"
                                  "st.global.f32 [%rd5], %f1;\n");
  CHECK(ranges(text, launch_of(1, 4, 0, 0)) == "~a write [0,16); ~b write [0,16)");
}

TEST_CASE("a gather is clipped to its buffer, or to what bounds the index") {
  const std::string load = "ld.global.u32 %r1, [%rd3];\n";
  const std::string tail = "mul.wide.u32 %rd5, %r1, 4;\n add.s64 %rd6, %a, %rd5;\n ld.global.f32 %f1, [%rd6];\n";
  CHECK(ranges(kernel(kElements + load + tail), launch_of(1, 4, 0, 0)) == "~a read [0,4096); b read [0,16)");
  CHECK(ranges(kernel(kElements + load + "and.b32 %r1, %r1, 15;\n" + tail), launch_of(1, 4, 0, 0)) ==
        "~a read [0,64); b read [0,16)");
  CHECK(
      why(kernel("ld.param.u32 %r1, [n];\n shl.b32 %r2, %r1, %r3;\n cvt.u64.u32 %rd1, %r2;\n add.s64 %rd2, %a, %rd1;\n"
                 "st.global.b8 [%rd2], %r1;\n"),
          launch_of(1, 1, 1, 0)) == "a register that is not set");
}

TEST_CASE("a guard that was loaded makes a range possible, not certain") {
  const std::string text = kernel(std::string(kElements) +
                                  "ld.global.u32 %r1, [%rd3];\n setp.eq.s32 %p1, %r1, 7;\n"
                                  "@%p1 st.global.f32 [%rd4], %f1;\n");
  CHECK(ranges(text, launch_of(1, 4, 0, 0)) == "b read [0,16); ~c write [0,16)");
}

TEST_CASE("a loop that data ends reaches any iteration") {
  const std::string text = kernel(R"(
  mov.u64 %rd1, %a;
HEAD:
  ld.global.u32 %r1, [%rd1];
  add.s64 %rd1, %rd1, 4;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra HEAD;
)");
  CHECK(ranges(text, launch_of(1, 1, 0, 0)) == "~a read [0,4096)");
}

TEST_CASE("accesses beyond the allocation are clipped and said") {
  ptx::Launch launch = launch_of(1, 8, 8, 0);
  launch.arguments[0] = ptx::BufferArgument{"a", 20, 0};
  CHECK(ranges(add_vectors(), launch) == "~a read [0,20); b read [0,32); c write [0,32)");
}

TEST_CASE("indices that wrap around are not followed") {
  // 2^30 * 4 is 0 in 32 bits: read as a number it is bounded by its type alone.
  const std::string text = kernel(
      "mad.lo.s32 %r1, %i, 1073741824, 5;\n mul.wide.s32 %rd1, %r1, 4;\n"
      "add.s64 %rd2, %a, %rd1;\n ld.global.f32 %f1, [%rd2];\n");
  CHECK(ranges(text, launch_of(1, 8, 0, 0)) == "~a read [0,4096)");
  CHECK(ranges(text, launch_of(1, 1, 0, 0)) == "a read [20,24)");
}

TEST_CASE("launches that do not fit are refused") {
  ptx::Launch launch = launch_of(1, 8, 0, 0);
  launch.arguments.pop_back();
  CHECK(ranges(add_vectors(), launch) == "launch of k: it has 4 arguments and the entry 5 parameters");
  CHECK(ranges(add_vectors(), launch_of(0, 8, 0, 0)) == "launch of k: a grid of 0 blocks");
  CHECK(ranges(add_vectors(), launch_of(1, 2048, 0, 0)) == "launch of k: a block of 2048 threads");
}

TEST_CASE("a set of bytes knows its end and its members") {
  const ptx::ByteSet set{8, 4, {{12, 3}, {100, 2}}};
  CHECK(set.end() == 8 + 24 + 100 + 4);
  int members = 0;
  for (std::int64_t byte = 0; byte < 200; ++byte) members += set.contains(byte) ? 1 : 0;
  CHECK(members == 4 * 3 * 2);
  CHECK(set.contains(8 + 12 + 100 + 3));
  CHECK_FALSE(set.contains(8 + 12 + 100 + 4));
}

}  // namespace
}  // namespace tangram::testing
