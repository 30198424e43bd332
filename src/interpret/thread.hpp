// One thread. Goes in: a program, and the memories that it sees. Comes out: what it does up to where it has to wait for
// others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program.hpp"
#include "tangram/interpret/interpret.hpp"

namespace tangram::interpret {

inline constexpr std::int64_t kWarpThreads = 32;

/// What all threads of a block share.
struct BlockContext {
  const Program& program;
  const GridLaunch& launch;
  Memory& memory;
  const std::vector<std::uint64_t>& variables;  ///< addresses of the module's
  const std::vector<std::uint8_t>& arguments;   ///< as the entry's parameters lie in memory
  std::array<std::int64_t, 3> block{};          ///< its index
  std::vector<std::uint8_t> shared;
  std::int64_t steps_left = 0;
};

enum class Stop : std::uint8_t { kExited, kBarrier, kWarp, kFault };

class Thread {
 public:
  Thread(BlockContext& context, std::int64_t number);

  /// Until it ends, faults, or stands before a step that others take part in.
  Stop run();

  [[nodiscard]] std::int64_t lane() const { return number_ % kWarpThreads; }
  [[nodiscard]] const Step& step() const;
  [[nodiscard]] Bits read(const Ref& ref) const;
  void write(const Ref& ref, Bits bits);
  /// Past the step that it waited before.
  void go_on() { ++frames_.back().next; }
  /// The 16 bytes of shared memory at its address of ldmatrix or stmatrix; empty: it faults.
  [[nodiscard]] std::span<std::uint8_t> matrix_row(const Step& step);
  void fail(std::string why) { fault_ = std::move(why); }
  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] bool has_ended() const { return frames_.empty(); }

 private:
  struct Frame {
    const Routine* routine;
    std::size_t next = 0;
    std::vector<Bits> registers;
    std::vector<std::uint8_t> parameters;
    std::size_t local_base = 0;
  };

  [[nodiscard]] Frame& frame() { return frames_.back(); }
  [[nodiscard]] const Frame& frame() const { return frames_.back(); }
  void enter(const Routine& routine);
  void take(const Step& step);
  [[nodiscard]] Bits special(const Ref& ref) const;
  [[nodiscard]] Bits address_of(const Ref& address) const;
  [[nodiscard]] std::span<std::uint8_t> memory_at(ptx::Space space, Bits address, std::size_t count,
                                                  Memory::Access how);
  [[nodiscard]] std::span<std::uint8_t> place(const Step& step, const Ref& address, std::size_t count,
                                              Memory::Access how);
  void load(const Step& step);
  void store(const Step& step);
  void update(const Step& step);
  void copy(const Step& step);
  void move(const Step& step);
  void convert_address(const Step& step);
  void branch(const Step& step);
  [[nodiscard]] std::vector<std::uint8_t> content_of(const Frame& frame, const Ref& ref, std::size_t bytes) const;
  void call(const Step& step);
  void leave();
  void set_predicate(const Step& step);

  BlockContext& context_;
  std::int64_t number_;
  std::vector<Frame> frames_;
  std::vector<std::uint8_t> local_;
  std::string fault_;
};

}  // namespace tangram::interpret
