// Kernels as text, around the statements that tests give.
#pragma once

#include <string>

#include "support/catch.hpp"
#include "tangram/ptx/analysis.hpp"
#include "tangram/ptx/parse.hpp"

namespace tangram::testing {

/// An entry k with pointers a, b, c and scalars n, m; %a, %b, %c, %n, %m hold them, %i the index of the thread over all
/// blocks, %t and %g those within the block and of the block.
inline std::string kernel(const std::string& statements, const std::string& before = "") {
  return ".version 8.5\n.target sm_80\n.address_size 64\n" + before +
         R"(.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .u32 m)
{
  .reg .pred %p<10>;
  .reg .b32 %r<30>, %n, %m, %i, %t, %g, %w;
  .reg .f32 %f<30>;
  .reg .b64 %rd<30>, %a, %b, %c;
  ld.param.u64 %a, [a];
  ld.param.u64 %b, [b];
  ld.param.u64 %c, [c];
  ld.param.u32 %n, [n];
  ld.param.u32 %m, [m];
  mov.u32 %t, %tid.x;
  mov.u32 %g, %ctaid.x;
  mov.u32 %w, %ntid.x;
  mad.lo.s32 %i, %g, %w, %t;
)" + statements +
         "  ret;\n}\n";
}

inline ptx::Module module_of(const std::string& text) {
  auto module = ptx::parse(text, "k.ptx");
  if (!module) FAIL(render(module.error()));
  return *std::move(module);
}

/// Of a and b and c 4096 bytes each.
inline ptx::Launch launch_of(std::int64_t blocks, std::int64_t threads, std::int64_t n, std::int64_t m) {
  ptx::Launch launch;
  launch.entry = "k";
  launch.grid = {blocks, 1, 1};
  launch.block = {threads, 1, 1};
  for (const char* name : {"a", "b", "c"}) launch.arguments.emplace_back(ptx::BufferArgument{name, 4096, 0});
  launch.arguments.emplace_back(n);
  launch.arguments.emplace_back(m);
  return launch;
}

}  // namespace tangram::testing
