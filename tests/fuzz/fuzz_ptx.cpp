// Arbitrary bytes as PTX: parsed, analysed, launched on two small blocks and run for a while.
#include <cstddef>
#include <cstdint>
#include <string>

#include "tangram/interpret/interpret.hpp"
#include "tangram/ptx/analysis.hpp"
#include "tangram/ptx/parse.hpp"
#include "tree_checks.hpp"

namespace tangram::fuzz {
namespace {

/// Pointers into a buffer for 64 bits, numbers for less.
ptx::Launch launch_of(const ptx::Function& entry) {
  ptx::Launch launch;
  launch.entry = entry.name;
  launch.grid = {2, 1, 1};
  launch.block = {4, 1, 1};
  for (int i = 0; i < entry.parameters; ++i) {
    const bool is_pointer = entry.parameter(i).bytes == 8;
    launch.arguments.push_back(is_pointer ? ptx::Argument(ptx::BufferArgument{"b", 256, 0}) : ptx::Argument(7));
  }
  return launch;
}

void run(const ptx::Module& module, const ptx::Launch& launch) {
  interpret::Memory memory;
  interpret::GridLaunch grid;
  grid.entry = launch.entry;
  grid.grid = launch.grid;
  grid.block = launch.block;
  grid.most_steps = 10'000;
  const std::uint64_t buffer = memory.allocate(256);
  for (const ptx::Argument& argument : launch.arguments) {
    const auto* scalar = std::get_if<std::int64_t>(&argument);
    grid.arguments.push_back(scalar != nullptr ? interpret::argument(*scalar) : interpret::argument(buffer));
  }
  (void)interpret::execute(module, grid, memory);
}

}  // namespace
}  // namespace tangram::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tangram;
  const auto module = ptx::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!module) {
    fuzz::require(module.error().size() == 1 && !render(module.error()).empty());
    return 0;
  }
  for (const std::string& name : module->entries()) {
    fuzz::require(ptx::analyze(*module, name).has_value());
    const ptx::Launch launch = fuzz::launch_of(*module->find(name));
    fuzz::require(ptx::ranges_of(*module, launch).has_value());
    fuzz::run(*module, launch);
  }
  return 0;
}
