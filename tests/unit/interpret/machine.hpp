// A device for tests: buffers of numbers, launches, and what is left in the buffers.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "tangram/interpret/interpret.hpp"
#include "tangram/ptx/parse.hpp"

namespace tangram::testing {

class Machine {
 public:
  explicit Machine(const std::string& text) {
    auto module = ptx::parse(text, "k.ptx");
    if (!module) FAIL(render(module.error()));
    module_ = *std::move(module);
  }

  template <class Number>
  std::uint64_t buffer(const std::vector<Number>& numbers) {
    const std::uint64_t address = memory.allocate(static_cast<std::int64_t>(numbers.size() * sizeof(Number)));
    std::memcpy(memory.bytes(address).data(), numbers.data(), numbers.size() * sizeof(Number));
    return address;
  }

  template <class Number>
  std::vector<Number> numbers(std::uint64_t address) {
    const auto bytes = memory.bytes(address);
    std::vector<Number> result(bytes.size() / sizeof(Number));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  /// Arguments are addresses and scalars as they are.
  template <class... Arguments>
  Expected<void> launch(const std::string& entry, std::int64_t blocks, std::int64_t threads,
                        const Arguments&... arguments) {
    interpret::GridLaunch grid;
    grid.entry = entry;
    grid.grid = {blocks, 1, 1};
    grid.block = {threads, 1, 1};
    grid.arguments = {interpret::argument(arguments)...};
    return interpret::execute(module_, grid, memory);
  }

  template <class... Arguments>
  void run(const std::string& entry, std::int64_t blocks, std::int64_t threads, const Arguments&... arguments) {
    const auto done = launch(entry, blocks, threads, arguments...);
    if (!done) FAIL(render(done.error()));
  }

  interpret::Memory memory;

 private:
  ptx::Module module_;
};

}  // namespace tangram::testing
