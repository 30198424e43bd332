// What the interpreter does instruction by instruction, what it records, and what it refuses.
#include <cmath>

#include "machine.hpp"

namespace tangram::testing {
namespace {

/// An entry k(out, a) whose statements leave a word in %x, which each thread stores at its place in out.
std::string words(const std::string& statements, const std::string& before = "") {
  return ".version 8.5\n.target sm_80\n.address_size 64\n" + before +
         R"(.entry k(.param .u64 out, .param .u64 a)
{
  .reg .pred %p<9>;
  .reg .b16 %h<20>;
  .reg .b32 %r<20>, %x, %t;
  .reg .f32 %f<9>;
  .reg .b64 %rd<9>, %out, %a;
  ld.param.u64 %out, [out];
  ld.param.u64 %a, [a];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %rd0, %t, 4;
  add.s64 %out, %out, %rd0;
)" + statements +
         "  st.global.u32 [%out], %x;\n  ret;\n}\n";
}

std::vector<std::uint32_t> result_of(const std::string& statements, std::int64_t threads = 1,
                                     const std::vector<std::uint32_t>& a = {}) {
  Machine machine(words(statements));
  const auto out = machine.buffer(std::vector<std::uint32_t>(static_cast<std::size_t>(threads)));
  machine.run("k", 1, threads, out, machine.buffer(a.empty() ? std::vector<std::uint32_t>(1) : a));
  return machine.numbers<std::uint32_t>(out);
}

std::uint32_t one(const std::string& statements) { return result_of(statements).front(); }

std::string refusal(const std::string& statements, const std::string& before = "") {
  Machine machine(words(statements, before));
  const auto done = machine.launch("k", 1, 4, machine.buffer(std::vector<std::uint32_t>(4)), std::uint64_t{0});
  REQUIRE_FALSE(done.has_value());
  return done.error()[0].message;
}

TEST_CASE("bits are taken out, put in, permuted and looked up") {
  CHECK(one("bfe.u32 %x, 0x12345678, 8, 12;\n") == 0x456);
  CHECK(one("bfe.s32 %x, 0x0000F000, 12, 4;\n") == 0xFFFFFFFF);
  CHECK(one("bfi.b32 %x, 0xAB, 0x11111111, 8, 8;\n") == 0x1111AB11);
  CHECK(one("prmt.b32 %x, 0x33221100, 0x77665544, 0x7140;\n") == 0x77114400);
  CHECK(one("lop3.b32 %x, 0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0x80;\n") == 0x80808080);  // a & b & c
  CHECK(one("brev.b32 %x, 1;\n") == 0x80000000);
  CHECK(one("bfind.u32 %x, 0x00010000;\n") == 16);
  CHECK(one("bfind.s32 %x, -1;\n") == 0xFFFFFFFF);
  CHECK(one("shf.l.wrap.b32 %x, 0x80000000, 1, 1;\n") == 3);
  CHECK(one("shf.r.clamp.b32 %x, 5, 7, 40;\n") == 7);
  CHECK(one("shl.b32 %x, 1, 32;\n") == 0);
  CHECK(one("shr.s32 %x, -8, 99;\n") == 0xFFFFFFFF);
}

TEST_CASE("integers multiply, divide and saturate as the hardware does") {
  CHECK(one("mul.hi.u32 %x, 0xFFFFFFFF, 0xFFFFFFFF;\n") == 0xFFFFFFFE);
  CHECK(one("mul.hi.s32 %x, -2, 3;\n") == 0xFFFFFFFF);
  CHECK(one("mul24.lo.s32 %x, 0x01000003, 5;\n") == 15);  // of 24 bits
  CHECK(one("div.u32 %x, 5, 0;\n") == 0xFFFFFFFF);
  CHECK(one("rem.s32 %x, -7, 3;\n") == static_cast<std::uint32_t>(-1));
  CHECK(one("add.sat.s32 %x, 0x7FFFFFFF, 1;\n") == 0x7FFFFFFF);
  CHECK(one("mad.wide.s16 %x, -3, 5, 1;\n") == static_cast<std::uint32_t>(-14));
  CHECK(one("sad.u32 %x, 3, 10, 100;\n") == 107);
  CHECK(one("cvt.sat.u8.s32 %x, 300;\n") == 255);
  CHECK(one("cvt.s32.s8 %x, 0x80;\n") == 0xFFFFFF80);
}

TEST_CASE("halves round to the nearest even") {
  // 1 + 2^-11 lies between 1 and the next half: the even one is 1; 1 + 3 2^-11 goes up to 1 + 2 2^-10.
  CHECK(one("mov.f32 %f1, 0f3F801000;\n cvt.rn.f16.f32 %h1, %f1;\n cvt.u32.u16 %x, %h1;\n") == 0x3C00);
  CHECK(one("mov.f32 %f1, 0f3F803000;\n cvt.rn.f16.f32 %h1, %f1;\n cvt.u32.u16 %x, %h1;\n") == 0x3C02);
  CHECK(one("mov.f32 %f1, 0f477FF000;\n cvt.rn.f16.f32 %h1, %f1;\n cvt.u32.u16 %x, %h1;\n") == 0x7C00);  // 65520
  CHECK(one("mov.f32 %f1, 0f33800000;\n cvt.rn.f16.f32 %h1, %f1;\n cvt.u32.u16 %x, %h1;\n") == 0x0001);  // 2^-24
  CHECK(one("mov.f32 %f1, 0f3F808000;\n cvt.rn.bf16.f32 %h1, %f1;\n cvt.u32.u16 %x, %h1;\n") == 0x3F80);
  CHECK(one("mov.f32 %f1, 0f3F818000;\n cvt.rn.bf16.f32 %h1, %f1;\n cvt.u32.u16 %x, %h1;\n") == 0x3F82);
  // 1.5 * 2 + 0.25 = 3.25 in both halves.
  CHECK(one("fma.rn.f16x2 %x, 0x3E003E00, 0x40004000, 0x34003400;\n") == 0x42804280);
  CHECK(one("mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; cvt.rn.f16x2.f32 %x, %f1, %f2;\n") == 0x3C004000);
}

TEST_CASE("approximate functions are near, subnormals are flushed where that is asked") {
  const auto value = [](const std::string& statements) {
    return std::bit_cast<float>(one(statements + "mov.b32 %x, %f1;\n"));
  };
  CHECK(value("ex2.approx.f32 %f1, 0f40400000;\n") == 8.0F);
  CHECK(value("lg2.approx.f32 %f1, 0f41000000;\n") == 3.0F);
  CHECK(value("rsqrt.approx.f32 %f1, 0f40800000;\n") == 0.5F);
  CHECK(value("rcp.approx.ftz.f32 %f1, 0f40800000;\n") == 0.25F);
  CHECK(value("tanh.approx.f32 %f1, 0f00000000;\n") == 0.0F);
  CHECK(value("div.full.f32 %f1, 0f40400000, 0f3F000000;\n") == 6.0F);
  CHECK(value("sin.approx.f32 %f1, 0f3F800000;\n") == Approx(std::sin(1.0)));
  CHECK(one("add.ftz.f32 %f1, 0f00000001, 0f00000001; mov.b32 %x, %f1;\n") == 0);
  CHECK(one("add.f32 %f1, 0f00000001, 0f00000001; mov.b32 %x, %f1;\n") == 2);
  CHECK(value("add.sat.f32 %f1, 0f40000000, 0f3F800000;\n") == 1.0F);
  CHECK(one("setp.ltu.f32 %p1, 0f7FC00000, 0f00000000; selp.b32 %x, 1, 2, %p1;\n") == 1);
  CHECK(one("setp.lt.f32 %p1, 0f7FC00000, 0f00000000; selp.b32 %x, 1, 2, %p1;\n") == 2);
  CHECK(one("cvt.rni.s32.f32 %x, 0f40200000;\n") == 2);  // 2.5
  CHECK(one("cvt.rzi.s32.f32 %x, 0fCF800000;\n") == 0x80000000);
}

TEST_CASE("shuffles take other lanes' values, votes count them") {
  const auto down = result_of("shfl.sync.down.b32 %x, %t, 1, 31, -1;\n", 32);
  CHECK(down[0] == 1);
  CHECK(down[30] == 31);
  CHECK(down[31] == 31);
  const auto rotated = result_of("shfl.sync.bfly.b32 %x|%p1, %t, 3, 31, -1;\n", 32);
  CHECK(rotated[5] == 6);
  const auto up = result_of("shfl.sync.up.b32 %x|%p1, %t, 2, 0, -1;\n @!%p1 mov.u32 %x, 99;\n", 32);
  CHECK(up[1] == 99);
  CHECK(up[2] == 0);
  const auto first_of_eight = result_of("shfl.sync.idx.b32 %x, %t, 0, 0x181f, -1;\n", 32);
  CHECK(first_of_eight[13] == 8);
  CHECK(result_of("and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 1; vote.sync.ballot.b32 %x, %p1, -1;\n", 32)[7] ==
        0xAAAAAAAA);
  CHECK(result_of("activemask.b32 %x;\n", 3)[2] == 7);
}

TEST_CASE("barriers order shared memory") {
  // Each thread stores its number, and reads its neighbour's.
  const auto turned = result_of(R"(
  { .shared .align 4 .b8 s[256];
  mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.s32 %r3, %r1, %r2;
  st.shared.u32 [%r3], %t;
  bar.sync 0;
  add.s32 %r4, %t, 1; and.b32 %r4, %r4, 63; shl.b32 %r4, %r4, 2; add.s32 %r5, %r1, %r4;
  ld.shared.u32 %x, [%r5]; }
)",
                                64);
  CHECK(turned[0] == 1);
  CHECK(turned[63] == 0);
}

TEST_CASE("functions are called with their own frames, and return") {
  // Factorial of 5, by recursion.
  Machine machine(
      words("{ .param .b32 q; .param .b32 s; st.param.b32 [q], 5; call.uni (s), f, (q); ld.param.b32 %x, [s]; }",
            R"(.func (.param .b32 r) f(.param .b32 n)
{
  .reg .pred p; .reg .b32 a<4>;
  ld.param.u32 a0, [n];
  setp.gt.u32 p, a0, 1;
  @p bra MORE;
  st.param.b32 [r], 1;
  ret;
MORE:
  sub.u32 a1, a0, 1;
  { .param .b32 x; .param .b32 y; st.param.b32 [x], a1; call.uni (y), f, (x); ld.param.b32 a2, [y]; }
  mul.lo.u32 a3, a2, a0;
  st.param.b32 [r], a3;
  ret;
}
)"));
  const auto out = machine.buffer(std::vector<std::uint32_t>(1));
  machine.run("k", 1, 1, out, std::uint64_t{0});
  CHECK(machine.numbers<std::uint32_t>(out)[0] == 120);
}

TEST_CASE("reads, writes and updates are recorded byte by byte") {
  Machine machine(
      words("ld.global.v2.b16 {%h1, %h2}, [%a+4];\n red.global.add.u32 [%a+8], 7;\n"
            "atom.global.cas.b32 %x, [%a+12], 0, 5;\n"));
  const auto out = machine.buffer(std::vector<std::uint32_t>(2));
  const auto a = machine.buffer(std::vector<std::uint32_t>(5));
  machine.run("k", 1, 1, out, a);
  const auto touched = machine.memory.touched(a);
  for (std::size_t byte = 0; byte < touched.size(); ++byte) {
    INFO(byte);
    CHECK(touched[byte].read == (byte >= 4 && byte < 8));
    CHECK_FALSE(touched[byte].written);
    CHECK(touched[byte].updated == (byte >= 8 && byte < 16));
  }
  CHECK(machine.memory.touched(out)[3].written);
  CHECK_FALSE(machine.memory.touched(out)[4].written);
  CHECK(machine.numbers<std::uint32_t>(a) == std::vector<std::uint32_t>{0, 0, 7, 5, 0});
}

TEST_CASE("what is not known is refused by name") {
  CHECK(refusal("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2};\n") ==
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 is not interpreted");
  CHECK(refusal("add.rz.f32 %f1, %f2, %f3;\n") == "add.rz.f32: .rz is not interpreted");
  CHECK(refusal("add.cc.u32 %x, %x, %x;\n") == "add.cc.u32: .cc is not interpreted");
  CHECK(refusal("mov.u32 %x, %smid;\n") == "%smid is not interpreted");
  CHECK(refusal("add.s32 %x, %x;\n") == "add.s32 has 2 operands and needs 3");
  CHECK(refusal("call.uni g, ();\n", ".extern .func g();\n") ==
        "a call of g, whose body is not here, is not interpreted");
}

TEST_CASE("a fault is told with the instruction's place") {
  Machine machine(".version 8.5\n.entry k()\n{\n  trap;\n}\n");
  const auto done = machine.launch("k", 1, 1);
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error()[0].where.line == 4);
  CHECK(done.error()[0].where.column == 3);
}

TEST_CASE("threads that reach outside, wait for nobody, or never end are told of") {
  CHECK(refusal("ld.global.u32 %x, [%out+4096];\n").ends_with("reaches outside of all allocations"));
  CHECK(refusal("ld.global.u32 %x, [%out+2];\n").ends_with("is not aligned"));
  CHECK(refusal("trap;\n") == "the kernel traps");
  CHECK(refusal("L: bra L;\n") == "the kernel takes more than 100000000 steps");
  CHECK(refusal("setp.lt.u32 %p1, %t, 2;\n @%p1 bra L;\n bar.sync 0;\nL:\n @!%p1 bra M;\n bar.sync 1;\nM:\n")
            .starts_with("threads wait for others that never come"));
}

}  // namespace
}  // namespace tangram::testing
