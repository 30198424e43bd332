// Wrong analyses: each is the analysis of a program that says something else, or an answer that was changed. Held
// against what the kernel did, each must be found out on some random kernel.
#include <array>
#include <functional>
#include <regex>

#include "held_against.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/ptx/parse.hpp"

namespace tangram::testing {
namespace {

using ptx::Effect;

/// What the analysis sees instead: a rule of its own that is missing or wrong.
struct TextMutant {
  const char* name;
  const char* pattern;
  const char* replacement;
};

constexpr std::array kTextMutants = {
    TextMutant{"a store counts as a load", R"(st\.global\.b32 (\[[^\]]*\]), (%r\d+))", "ld.global.b32 $2, $1"},
    TextMutant{"a load counts as a store", R"(ld\.global\.b32 (%r\d+), (\[[^\]]*\]))", "st.global.b32 $2, $1"},
    TextMutant{"a reduction counts as a read", R"(red\.global\.add\.u32 (\[[^\]]*\]), 1)", "ld.global.u32 %r899, $1"},
    TextMutant{"an atomic counts as a read", R"(atom\.global\.add\.u32 (%r\d+), (\[[^\]]*\]), 1)",
               "ld.global.u32 $1, $2"},
    TextMutant{"an atomic has no effect", R"(atom\.global\.add\.u32 (%r\d+), (\[[^\]]*\]), 1)", "mov.u32 $1, 0"},
    TextMutant{"the width of .v4 is forgotten", R"(ld\.global\.v4\.b32 \{(%r\d+)[^}]*\})", "ld.global.b32 $1"},
    TextMutant{"a store of .v4 is one of .v2", R"(st\.global\.v4\.b32 (\[[^\]]*\]), \{(%r\d+), (%r\d+)[^}]*\})",
               "st.global.v2.b32 $1, {$2, $3}"},
    TextMutant{"64 bits are taken for 32", R"(ld\.global\.b64 %rd(\d+))", "ld.global.b32 %r$1"},
    TextMutant{"16 bits are taken for 32", R"(st\.global\.b16 (\[[^\]]*\]), %rs(\d+))", "st.global.b32 $1, %r$2"},
    TextMutant{"guards of accesses are dropped", R"(@!?%p\d+ (ld|st|red|atom))", "$1"},
    TextMutant{"guards are negated", R"(@(%p\d+) (ld|st|red|atom))", "@!$1 $2"},
    TextMutant{"branches around blocks are dropped", R"(@%p\d+ bra (L\d+);\n\t(mul|mad|add|shl))", "$2"},
    TextMutant{"returns are dropped", R"(ret;\n(L\d+:))", "\n$1"},
    TextMutant{"less than includes the limit", R"(setp\.lt\.s32)", "setp.le.s32"},
    TextMutant{"at least excludes the limit", R"(setp\.ge\.s32)", "setp.gt.s32"},
    TextMutant{"equal is taken for different", R"(setp\.eq\.s32)", "setp.ne.s32"},
    TextMutant{"selections have one pointer", R"(selp\.b64 (%rd\d+), (%rd\d+), %rd\d+, %p\d+)", "mov.b64 $1, $2"},
    TextMutant{"parameters are exchanged", R"(\[k0\])", "[k1]"},
    TextMutant{"constant offsets are dropped", R"(\[(%rd\d+)\+\d+\])", "[$1]"},
    TextMutant{"constant offsets are twice as long", R"(\[(%rd\d+)\+(\d+)\])", "[$1+$2$2]"},
    TextMutant{"elements are taken for half as wide", R"(mul\.wide\.s32 (%rd\d+), (%r\d+), 4)",
               "mul.wide.s32 $1, $2, 2"},
    TextMutant{"products are dropped", R"(mad\.lo\.s32 (%r\d+), %r\d+, (\d+), (%r\d+))", "mov.u32 $1, $3"},
    TextMutant{"constants of products are dropped", R"(mad\.lo\.s32 (%r\d+), (%r\d+), (\d+), -?\d+)",
               "mul.lo.s32 $1, $2, $3"},
    TextMutant{"counters step by two", R"(add\.s32 (%r\d+), (%r\d+), 1;)", "add.s32 $1, $2, 2;"},
    TextMutant{"loops are run once", R"(bra\.uni (L\d+);\n(L\d+):\n)", "bra.uni $2;\n$2:\n"},
    TextMutant{"blocks have no index", R"(mov\.u32 (%r\d+), %ctaid\.x)", "mov.u32 $1, 0"},
    TextMutant{"threads are blocks", R"(%tid\.y)", "%ctaid.y"},
    TextMutant{"remainders are quotients", R"(rem\.u32)", "div.u32"},
    TextMutant{"masks are one bit shorter", R"(and\.b32 (%r\d+), (%r\d+), 7)", "and.b32 $1, $2, 3"},
    TextMutant{"shifts to the right are dropped", R"(shr\.u32 (%r\d+), (%r\d+), \d+)", "mov.u32 $1, $2"},
    TextMutant{"what was loaded is zero", R"(ld\.global\.b32 (%r\d+), (\[%rd\d+\]);\n\t(and|mul|cvt))",
               "ld.global.b32 $1, $2;\n\tmov.u32 $1, 0;\n\t$3"},
    TextMutant{"the smaller one is the larger", R"(min\.s32)", "max.s32"},
};

/// How many kernels it takes until the mutant is found out; 0 where it never is.
int kernels_to_kill(const std::function<std::string(const std::string&)>& mutated, const Change& change) {
  std::mt19937_64 random(85);
  constexpr int kMost = 4000;
  for (int i = 1; i <= kMost; ++i) {
    const RandomKernel kernel = random_kernel(random);
    const std::string seen = mutated(kernel.text);
    if (!change && seen == kernel.text) continue;
    REQUIRE(ptx::parse(seen, "mutant.ptx").has_value());
    if (!held_against(kernel, seen, change).difference.empty()) return i;
  }
  return 0;
}

std::string unchanged(const std::string& text) { return text; }

struct AnswerMutant {
  const char* name;
  void (*change)(ptx::LaunchRanges&);
};

void move_first(ptx::LaunchRanges& ranges, std::int64_t by) {
  if (!ranges.ranges.empty()) ranges.ranges.front().bytes.front().first += by;
}

constexpr std::array kAnswerMutants = {
    AnswerMutant{"a range is one element too far", [](ptx::LaunchRanges& r) { move_first(r, 4); }},
    AnswerMutant{"a range is one byte too early", [](ptx::LaunchRanges& r) { move_first(r, -1); }},
    AnswerMutant{"a range is missing",
                 [](ptx::LaunchRanges& r) {
                   if (!r.ranges.empty()) r.ranges.pop_back();
                 }},
    AnswerMutant{"pieces have lost their last",
                 [](ptx::LaunchRanges& r) {
                   for (ptx::BufferRange& range : r.ranges) {
                     for (ptx::ByteSet& set : range.bytes) {
                       if (!set.repeats.empty()) --set.repeats.back().count;
                     }
                   }
                 }},
    AnswerMutant{"pieces are one",
                 [](ptx::LaunchRanges& r) {
                   for (ptx::BufferRange& range : r.ranges) {
                     for (ptx::ByteSet& set : range.bytes) set = {set.first, set.end() - set.first, {}};
                   }
                 }},
    AnswerMutant{"everything is exact",
                 [](ptx::LaunchRanges& r) {
                   for (ptx::BufferRange& range : r.ranges) range.exact = true;
                 }},
    AnswerMutant{"writes are updates",
                 [](ptx::LaunchRanges& r) {
                   for (ptx::BufferRange& range : r.ranges) {
                     if (range.effect == Effect::kWrite) range.effect = Effect::kUpdate;
                   }
                 }},
    AnswerMutant{"buffers are exchanged",
                 [](ptx::LaunchRanges& r) {
                   for (ptx::BufferRange& range : r.ranges) range.argument = (range.argument + 1) % kBuffers;
                 }},
};

TEST_CASE("every analysis that sees another program is found out") {
  for (const TextMutant& mutant : kTextMutants) {
    INFO(mutant.name);
    const std::regex pattern(mutant.pattern);
    const int kernels = kernels_to_kill(
        [&](const std::string& text) { return std::regex_replace(text, pattern, mutant.replacement); }, {});
    CHECK(kernels > 0);
  }
}

TEST_CASE("every answer that was changed is found out") {
  for (const AnswerMutant& mutant : kAnswerMutants) {
    INFO(mutant.name);
    CHECK(kernels_to_kill(unchanged, mutant.change) > 0);
  }
}

}  // namespace
}  // namespace tangram::testing
