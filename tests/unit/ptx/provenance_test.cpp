// Which parameters kernels read and write, worked out by hand.
#include <fmt/format.h>

#include "kernels.hpp"

namespace tangram::testing {
namespace {

/// "a:r c:w", with ! where an offset depends on data; then "pinned" and its reasons.
std::string uses(const std::string& text) {
  const auto analysis = ptx::analyze(module_of(text), "k");
  REQUIRE(analysis.has_value());
  std::string result;
  for (const ptx::ParameterUse& use : analysis->parameters) {
    result += fmt::format("{}{}:{}{}{}{}", result.empty() ? "" : " ", use.name, use.reads ? "r" : "",
                          use.writes ? "w" : "", use.updates ? "u" : "", use.indirect ? "!" : "");
  }
  for (const std::string& variable : analysis->variables) result += " variable " + variable;
  for (const ptx::Reason& why : analysis->pinned) result += fmt::format(" pinned: {}", why.text);
  return result;
}

constexpr auto kElement =
    "mul.wide.s32 %rd1, %i, 4;\n add.s64 %rd2, %a, %rd1;\n add.s64 %rd3, %b, %rd1;\n"
    "add.s64 %rd4, %c, %rd1;\n";

TEST_CASE("a sum of vectors reads two and writes one") {
  CHECK(uses(kernel(std::string(kElement) + "ld.global.f32 %f1, [%rd2];\n ld.global.nc.f32 %f2, [%rd3];\n"
                                            "add.f32 %f3, %f1, %f2;\n st.global.f32 [%rd4], %f3;\n")) == "a:r b:r c:w");
}

TEST_CASE("an addition in place reads and writes; reductions and atomics update") {
  CHECK(uses(kernel(std::string(kElement) +
                    "ld.global.f32 %f1, [%rd2];\n st.global.f32 [%rd2], %f1;\n"
                    "red.global.add.f32 [%rd3], %f1;\n atom.global.add.u32 %r1, [%rd4], 1;\n")) == "a:rw b:u c:u");
}

TEST_CASE("generic accesses count where their pointer leads") {
  CHECK(uses(kernel("cvta.to.global.u64 %rd1, %a;\n ld.f32 %f1, [%a];\n st.global.f32 [%rd1], %f1;\n")) == "a:rw");
  CHECK(uses(kernel("{ .shared .align 4 .b8 s[64]; mov.u64 %rd1, s; cvta.shared.u64 %rd2, %rd1; ld.f32 %f1, [%rd2];\n"
                    "selp.b64 %rd3, %rd2, %b, %p1; st.f32 [%rd3], %f1; }")) == "b:w");
}

TEST_CASE("selections and joins may be any of their pointers") {
  CHECK(uses(kernel("selp.b64 %rd1, %a, %b, %p1;\n ld.global.f32 %f1, [%rd1];\n")) == "a:r b:r");
  CHECK(uses(kernel("mov.u64 %rd1, %a;\n @%p1 mov.u64 %rd1, %c;\n st.global.f32 [%rd1+4], %f1;\n")) == "a:w c:w");
}

TEST_CASE("a pointer survives packing, bits and loops; a product does not") {
  CHECK(uses(kernel("mov.b64 {%r1, %r2}, %a;\n mov.b64 %rd1, {%r1, %r2};\n and.b64 %rd2, %rd1, -16;\n"
                    "L: ld.global.f32 %f1, [%rd2];\n add.s64 %rd2, %rd2, 4;\n @%p1 bra L;\n")) == "a:r");
  CHECK(uses(kernel("mul.lo.s64 %rd1, %b, 4;\n add.s64 %rd2, %a, %rd1;\n ld.global.f32 %f1, [%rd2];\n")) == "a:r");
}

TEST_CASE("an integer that is added to a pointer is none, where the pointer is known to be one") {
  CHECK(uses(kernel("ld.global.b8 %r1, [%a];\n add.s64 %rd1, %a, %b;\n ld.global.b8 %r2, [%rd1];\n")) == "a:r");
  CHECK(uses(kernel("add.s64 %rd1, %a, %b;\n ld.global.b8 %r2, [%rd1];\n")) == "a:r b:r");  // either may be it
}

TEST_CASE("offsets that were loaded leave the base known") {
  CHECK(uses(kernel("ld.global.u32 %r1, [%b];\n mul.wide.u32 %rd1, %r1, 4;\n add.s64 %rd2, %a, %rd1;\n"
                    "ld.global.f32 %f1, [%rd2];\n")) == "a:r! b:r");
}

TEST_CASE("pointers that were loaded pin") {
  CHECK(uses(kernel("ld.global.u64 %rd1, [%b];\n ld.global.f32 %f1, [%rd1];\n")) ==
        "b:r pinned: ld.global.f32: the pointer was loaded from memory");
  CHECK(uses(kernel("mov.u64 %rd1, 4096;\n st.global.f32 [%rd1], %f1;\n")) ==
        " pinned: st.global.f32: nothing says what the address points into");
}

TEST_CASE("pointers kept in local and shared memory are followed") {
  CHECK(uses(kernel("{ .local .align 8 .b8 d[16]; mov.u64 %rd1, d; st.local.u64 [%rd1], %b;\n"
                    "ld.local.u64 %rd2, [%rd1+0]; st.global.f32 [%rd2], %f1; }")) == "b:w");
}

TEST_CASE("functions of the module are looked into; printf has no effect, others pin") {
  const std::string function =
      ".func (.param .b64 r) f(.param .b64 x) { .reg .b64 p; ld.param.b64 p, [x]; add.s64 p, p, 4;\n"
      "st.param.b64 [r], p; ret; }\n.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
      ".extern .func g(.param .b64 v);\n.global .b8 text[3] = {104, 105, 0};\n";
  CHECK(uses(kernel("{ .param .b64 p; .param .b64 q; st.param.b64 [p], %c; call.uni (q), f, (p);\n"
                    "ld.param.b64 %rd1, [q]; st.global.f32 [%rd1], %f1; }",
                    function)) == "c:w");
  CHECK(uses(kernel("{ .param .b64 p; .param .b64 v; .param .b32 q; st.param.b64 [p], %rd1; st.param.b64 [v], 0;\n"
                    "call.uni (q), vprintf, (p, v); }",
                    function)) == "");
  CHECK(uses(kernel("{ .param .b64 p; st.param.b64 [p], %a; call.uni g, (p); }", function)) ==
        " pinned: call.uni: calls g, whose body is not here");
}

TEST_CASE("recursion and calls through pointers pin") {
  const std::string function =
      ".func f(.param .b64 x) { .reg .b64 p; ld.param.b64 p, [x]; { .param .b64 y;\n"
      "st.param.b64 [y], p; call.uni f, (y); } ret; }\n";
  CHECK(uses(kernel("{ .param .b64 p; st.param.b64 [p], %a; call.uni f, (p); }", function)) ==
        " pinned: call.uni: calls f, which is recursive or too long");
  CHECK(uses(kernel("proto: .callprototype _ (.param .b64 _);\n{ .param .b64 p; call %rd1, (p), proto; }")) ==
        " pinned: call: calls a function through a pointer");
}

TEST_CASE("copies into shared memory read; tensor copies go through their map") {
  CHECK(uses(kernel("cp.async.cg.shared.global [%r1], [%a], 16;\n cp.async.commit_group;\n cp.async.wait_group 0;\n"
                    "cp.async.bulk.global.shared::cta.bulk_group [%b], [%r1], 64;\n")) == "a:r b:w");
  CHECK(uses(".version 8.5\n.target sm_90\n.entry k(.param .align 64 .b8 map[128]) { .reg .b64 q; .reg .b32 s;\n"
             "mov.b64 q, map; cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [q, {0, "
             "0}],"
             " [s]; ret; }") == "map:r");
}

TEST_CASE("fields of structures are bases of their own") {
  CHECK(uses(".version 8.5\n.target sm_80\n.entry k(.param .align 8 .b8 s[24]) { .reg .b64 p<3>; .reg .b32 v;\n"
             "ld.param.u64 p0, [s]; ld.param.u64 p1, [s+16]; ld.global.b32 v, [p0]; st.global.b32 [p1], v; ret; }") ==
        "s:r s+16:w");
}

TEST_CASE("what is not known is named") {
  CHECK(uses(kernel("frobnicate.b32 %r1, [%a];\n")) ==
        " pinned: frobnicate.b32: an unknown instruction with an address");
  CHECK(uses(kernel("frobnicate.b64 %rd1, %a;\n st.global.f32 [%rd1], %f1;\n")) ==
        " pinned: st.global.f32: nothing says what the address points into");
  CHECK(uses(kernel("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];\n")) ==
        " pinned: tex.2d.v4.f32.f32: the array behind a texture is not known");
}

TEST_CASE("variables of the module are named, constants are not") {
  CHECK(uses(kernel("st.global.u32 [count], %r1;\n ld.const.u32 %r2, [table];\n",
                    ".global .u32 count;\n.const .u32 table;\n")) == " variable count");
}

TEST_CASE("an entry that is not there is asked for by its nearest name") {
  const auto analysis = ptx::analyze(module_of(kernel("")), "kk");
  REQUIRE_FALSE(analysis.has_value());
  CHECK(analysis.error()[0].code == "unknown-entry");
  CHECK(analysis.error()[0].hint == "did you mean \"k\"?");
}

}  // namespace
}  // namespace tangram::testing
