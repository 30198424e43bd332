// Texts that are PTX, odd ones among them, and texts that are not.
#include <random>

#include "kernels.hpp"
#include "support/cases.hpp"
#include "support/random.hpp"

namespace tangram::testing {
namespace {

Diagnostic mistake_in(const std::string& text) {
  const auto module = ptx::parse(text, "k.ptx");
  REQUIRE_FALSE(module.has_value());
  return module.error().front();
}

TEST_CASE("a module has its version, target, variables and functions") {
  const ptx::Module module = module_of(R"(
.version 8.5
.target sm_90a, debug
.address_size 64
.file 1 "a.cu"
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);
.global .align 4 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.const .f32 half = 0f3F000000;
.extern .shared .align 16 .b8 pool[];
.visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24])
.maxntid 128, 1, 1
{
  ret;
}
.section .debug_str { .b8 1 }
)");
  CHECK(module.version == "8.5");
  CHECK(module.target == "sm_90a");
  REQUIRE(module.variables.size() == 3);
  CHECK(module.variables[0].bytes == 6);
  CHECK(module.variables[0].contents[1] == 101);
  CHECK(module.variables[1].contents == std::vector<std::uint8_t>{0, 0, 0, 0x3f});
  CHECK(module.variables[2].is_external);
  CHECK(module.entries() == std::vector<std::string>{"k"});
  const ptx::Function& k = *module.find("k");
  REQUIRE(k.parameters == 2);
  CHECK(k.parameter(0).is_pointer);
  CHECK(k.parameter(1).bytes == 24);
  CHECK_FALSE(module.find("vprintf")->has_body);
}

TEST_CASE("guards, modifiers, vectors, pairs and addresses are taken apart") {
  const ptx::Module module = module_of(kernel(R"(
  @!%p1 ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, %f2, %f3, _}, [%rd1+-16];
  setp.lt.and.s32 %p1|%p2, %r1, -5, !%p3;
  mov.f32 %f1, 0fBF800000;
  mov.b64 {%r1, %r2}, %rd1;
)"));
  const auto& body = module.find("k")->body;
  const ptx::Instruction& load = body[9];
  CHECK(load.text() == "ld.global.nc.L1::no_allocate.L2::128B.v4.f32");
  CHECK(load.guard->negated);
  CHECK(load.vector_length() == 4);
  CHECK(load.operands[0].parts[3].kind == ptx::OperandKind::kSink);
  CHECK(load.operands[1].integer == -16);
  const ptx::Instruction& compare = body[10];
  CHECK(compare.operands[0].kind == ptx::OperandKind::kPair);
  CHECK(compare.operands[2].integer == -5);
  CHECK(compare.operands[3].negated);
  CHECK(body[11].operands[1].integer == 0xBF800000);
  CHECK(body[12].operands[0].kind == ptx::OperandKind::kVector);
}

TEST_CASE("registers, variables and labels belong to their block") {
  const ptx::Module module = module_of(kernel(R"(
  bra DONE;
  { .reg .b32 %r1; .reg .pred q;
    mov.u32 %r1, 1;
    { .reg .b32 t; mov.u32 t, %r1;
  DONE: mov.u32 t, 2; }
    bra DONE2;
  }
  DONE2:
  mov.u32 %r1, 3;
  DONE:
)"));
  const auto& body = module.find("k")->body;
  CHECK(body[9].operands[0].index == 15);  // of the outer one, which is declared later
  CHECK(body[10].operands[0].index != body[14].operands[0].index);
  CHECK(body[10].operands[0].index == body[11].operands[1].index);
}

TEST_CASE("global variables of a body are the module's") {
  const ptx::Module module =
      module_of(".version 8.5\n.global .u32 a;\n.entry k() { .global .u32 a = 7; .reg .b32 r; ld.global.u32 r, [a]; }");
  REQUIRE(module.variables.size() == 2);
  CHECK(module.find("k")->body[0].operands[1].parts[0].kind == ptx::OperandKind::kGlobal);
  CHECK(module.find("k")->body[0].operands[1].parts[0].index == 1);
}

TEST_CASE("odd spellings are PTX, too") {
  module_of(".version 1.0 .target sm_10 /* a\ncomment */ .entry k () { exit; } // end");
  module_of(".version 8.5\n.target sm_80\n.entry k(.param .b32 a){.reg .b32 r;ld.param.b32 r,[a];L:bra.uni L;}");
  module_of(
      kernel("proto: .callprototype (.param .b32 _) _ (.param .b64 _);\n"
             "call (%r1), %rd1, (%rd2), proto;\n"
             "T: .branchtargets L1, L2;\n brx.idx %r1, T;\nL1: mov.u32 %r1, WARP_SZ;\nL2:\n"
             ".pragma \"nounroll\";\n.loc 1 2 3\n frobnicate.new.b32 %r1, [%rd1], %r2;\n;"));
  module_of(
      kernel("mov.u32 %r1, 0xFFu;\n mov.u32 %r2, 017;\n mov.u32 %r3, 0b101;\n mov.f64 %rd1, 1.5e-3;\n"
             "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}],"
             " [%r4];\n"));
}

TEST_CASE("mistakes are told with line, column and what was expected") {
  const std::string head = ".version 8.5\n.target sm_80\n.entry k()\n{\n";
  const Diagnostic unknown = mistake_in(head + "  mov.u32 %r1, 4;\n}");
  CHECK(unknown.message == "\"%r1\" is declared nowhere");
  const Diagnostic name = mistake_in(head + "  .reg .b32 r;\n  mov.u32 r, lost;\n}");
  CHECK(name.code == "unknown-name");
  CHECK(name.where.line == 6);
  CHECK(name.where.column == 14);
  CHECK(name.message == "\"lost\" is declared nowhere");
  CHECK(name.source_line == "  mov.u32 r, lost;");
  CHECK(mistake_in(head + "  .reg .b32 r;\n  mov.u32 r 4;\n}").message == "expected \",\" or \";\", found \"4\"");
  CHECK(mistake_in(head + "  ret;\n").message == "the body of \"k\" does not end");
  CHECK(mistake_in(head + "L: ret;\nL: ret;\n}").message == "label \"L\" is declared twice");
  CHECK(mistake_in(head + "  .reg .b32 r, r;\n}").message == "register \"r\" is declared twice");
  CHECK(mistake_in(head + "  .bogus .b32 r;\n}").message == "\".bogus\" begins no statement of a function");
  CHECK(mistake_in(head + "  ret; /* \n").message == "this comment does not end");
  CHECK(mistake_in(".version 8.5\n\x7f").where.line == 2);
  CHECK(mistake_in("").message == "this is no PTX: it has no .version");
  CHECK(mistake_in(".version 8.5\n.global .b32 a[99999999999][99999999];").message ==
        "this array is larger than any memory");
  CHECK(mistake_in(".version 8.5\n.entry k(){}\n.entry k(){}").message == "function \"k\" has two bodies");
}

TEST_CASE("texts that were damaged are read, or refused with a place") {
  std::mt19937_64 random(7);
  const std::string whole = kernel(R"(
  { .param .b64 p0; st.param.b64 [p0], %a; call.uni f, (p0); }
  setp.ge.s32 %p1, %i, %n;
  @%p1 bra DONE;
  mul.wide.s32 %rd1, %i, 4; add.s64 %rd2, %a, %rd1;
  ld.global.v2.f32 {%f1, %f2}, [%rd2+8];
  fma.rn.f32 %f3, %f1, %f2, 0f3F800000;
  st.global.f32 [%rd2], %f3;
DONE:
)",
                                   ".func f(.param .b64 x) { ret; }\n.global .b32 g[3] = {1, {2}, 3};\n");
  int refused = 0;
  for (int i = 0; i < cases(4000); ++i) {
    std::string text = whole;
    const int changes = pick(random, 1, 4);
    for (int j = 0; j < changes; ++j) {
      const auto at = static_cast<std::size_t>(pick(random, 0, static_cast<int>(text.size()) - 1));
      switch (pick(random, 0, 3)) {
        case 0: text.erase(at, static_cast<std::size_t>(pick(random, 1, 9))); break;
        case 1: text.insert(at, 1, static_cast<char>(pick(random, 0, 255))); break;
        case 2: text.insert(at, text.substr(static_cast<std::size_t>(pick(random, 0, 400)), 12)); break;
        default: text[at] = "{}[](),;:.@%!0"[pick(random, 0, 13)]; break;
      }
    }
    const auto module = ptx::parse(text, "k.ptx");
    if (!module) {
      ++refused;
      CHECK(module.error().size() == 1);
      CHECK(module.error()[0].where.line > 0);
      continue;
    }
    for (const std::string& entry : module->entries()) {
      CHECK(ptx::analyze(*module, entry).has_value());
      (void)ptx::ranges_of(*module, launch_of(2, 8, 9, 3));
    }
  }
  CHECK(refused > 0);
}

}  // namespace
}  // namespace tangram::testing
