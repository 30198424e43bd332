// Hazards against their definition, byte by byte, on random launches; and what they are for: any order that keeps them
// leaves the same bytes in memory, and without those of storage the same where every version has memory of its own.
#include "tangram/kernels/hazards.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/base/at.hpp"

using namespace tangram;
using namespace tangram::kernels;
using tangram::testing::cases;
using tangram::testing::pick;

namespace {

using Random = std::mt19937_64;

Access draw_access(Random& random, const KernelGraph& graph, const std::vector<int>& alive) {
  Access access;
  access.buffer = at(alive, pick(random, 0, static_cast<int>(alive.size()) - 1));
  const int size = static_cast<int>(at(graph.buffers, access.buffer).bytes.value());
  if (pick(random, 0, 1) == 0) {
    access.bytes = size;
  } else {
    access.offset = pick(random, 0, size - 1);
    access.bytes = pick(random, 1, size - static_cast<int>(access.offset));
  }
  access.exact = pick(random, 0, 3) > 0;
  return access;
}

/// Buffers with memory of their own, and of those that share a storage the one whose epoch it is.
std::vector<int> alive_buffers(const KernelGraph& graph, int epoch) {
  std::vector<int> alive;
  for (int b = 0; b < static_cast<int>(graph.buffers.size()); ++b) {
    const Buffer& buffer = at(graph.buffers, b);
    if (buffer.storage.empty() || buffer.epoch == epoch) alive.push_back(b);
  }
  return alive;
}

KernelGraph draw_launches(Random& random) {
  KernelGraph graph;
  const int own = pick(random, 1, 2);
  const int epochs = pick(random, 0, 3);
  for (int b = 0; b < own + epochs; ++b) {
    Buffer buffer;
    buffer.id = "b" + std::to_string(b);
    buffer.bytes = Bytes(pick(random, 1, 6));
    if (b >= own) buffer.storage = "shared";
    buffer.epoch = std::max(0, b - own);
    graph.buffers.push_back(buffer);
  }
  int epoch = 0;
  const int kernels = pick(random, 1, 8);
  for (int k = 0; k < kernels; ++k) {
    epoch += epoch < epochs - 1 && pick(random, 0, 2) == 0 ? 1 : 0;
    const std::vector<int> alive = alive_buffers(graph, epoch);
    Kernel kernel;
    kernel.id = "k" + std::to_string(k);
    kernel.order = k;
    for (auto* accesses : {&kernel.reads, &kernel.writes, &kernel.updates}) {
      const int count = accesses == &kernel.updates ? pick(random, 0, 3) / 3 : pick(random, 0, 2);
      for (int i = 0; i < count; ++i) accesses->push_back(draw_access(random, graph, alive));
    }
    graph.kernels.push_back(std::move(kernel));
  }
  graph.phases.push_back({"step", 1, 0, 0, 0, kernels, {}});
  return graph;
}

bool covers(const Access& access, int buffer, std::int64_t byte) {
  return access.buffer == buffer && access.offset <= byte && byte < access.end();
}

bool touches(const std::vector<Access>& accesses, int buffer, std::int64_t byte, bool surely = false) {
  return std::ranges::any_of(accesses,
                             [&](const Access& a) { return covers(a, buffer, byte) && (a.exact || !surely); });
}

bool may_read(const Kernel& kernel, int buffer, std::int64_t byte) {
  return touches(kernel.reads, buffer, byte) || touches(kernel.updates, buffer, byte);
}
bool may_write(const Kernel& kernel, int buffer, std::int64_t byte, bool surely = false) {
  return touches(kernel.writes, buffer, byte, surely) || touches(kernel.updates, buffer, byte, surely);
}

/// Buffers that lie in the same memory, itself among them.
std::vector<int> sharers(const KernelGraph& graph, int buffer) {
  std::vector<int> result;
  const std::string& storage = at(graph.buffers, buffer).storage;
  for (int b = 0; b < static_cast<int>(graph.buffers.size()); ++b) {
    if (b == buffer || (!storage.empty() && at(graph.buffers, b).storage == storage)) result.push_back(b);
  }
  return result;
}

/// Whether a kernel between both surely wrote the byte, in any buffer that lies there.
bool overwritten(const KernelGraph& graph, int from, int to, int buffer, std::int64_t byte) {
  for (int k = from + 1; k < to; ++k) {
    for (const int b : sharers(graph, buffer)) {
      if (may_write(at(graph.kernels, k), b, byte, true)) return true;
    }
  }
  return false;
}

bool writes_all_unread(const KernelGraph& graph, const Kernel& kernel, int buffer) {
  const auto of_buffer = [&](const Access& a) { return a.buffer == buffer; };
  const std::int64_t size = at(graph.buffers, buffer).bytes.value();
  return std::ranges::none_of(kernel.reads, of_buffer) && std::ranges::none_of(kernel.updates, of_buffer) &&
         std::ranges::any_of(kernel.writes,
                             [&](const Access& a) { return of_buffer(a) && a.exact && a.bytes == size; });
}

using Edge = std::tuple<int, int, HazardKind, int, bool>;  // from, to, kind, buffer, storage

/// The definition.
std::map<Edge, std::set<std::int64_t>> hazards_by_byte(const KernelGraph& graph) {
  std::map<Edge, std::set<std::int64_t>> edges;
  const int kernels = graph.kernel_count();
  for (int to = 0; to < kernels; ++to) {
    for (int from = 0; from < to; ++from) {
      const Kernel& first = at(graph.kernels, from);
      const Kernel& second = at(graph.kernels, to);
      for (int b = 0; b < static_cast<int>(graph.buffers.size()); ++b) {
        for (std::int64_t byte = 0; byte < at(graph.buffers, b).bytes.value(); ++byte) {
          if (overwritten(graph, from, to, b, byte)) continue;
          if (may_read(second, b, byte) && may_write(first, b, byte)) {
            edges[{from, to, HazardKind::kReadAfterWrite, b, false}].insert(byte);
          }
          if (!may_write(second, b, byte)) continue;
          // Of a kernel that reads a byte and surely writes it, what it wrote is what matters.
          for (const int other : sharers(graph, b)) {
            const bool storage = other != b || writes_all_unread(graph, second, b);
            if (touches(first.reads, other, byte) && !may_write(first, other, byte, true)) {
              edges[{from, to, HazardKind::kWriteAfterRead, b, storage}].insert(byte);
            }
            if (may_write(first, other, byte)) {
              edges[{from, to, HazardKind::kWriteAfterWrite, b, storage}].insert(byte);
            }
          }
        }
      }
    }
  }
  return edges;
}

std::set<std::pair<int, int>> pairs_of(const std::vector<Hazard>& hazards, bool with_storage) {
  std::set<std::pair<int, int>> pairs;
  for (const Hazard& hazard : hazards) {
    if (with_storage || !hazard.storage) pairs.emplace(hazard.from, hazard.to);
  }
  return pairs;
}

/// Kernels in a random order in which every pair stands as it should.
std::vector<int> draw_order(Random& random, int kernels, const std::set<std::pair<int, int>>& pairs) {
  std::vector<int> order;
  std::vector<bool> done(static_cast<std::size_t>(kernels));
  while (static_cast<int>(order.size()) < kernels) {
    std::vector<int> ready;
    for (int k = 0; k < kernels; ++k) {
      const bool waits = std::ranges::any_of(pairs, [&](const auto& p) { return p.second == k && !at(done, p.first); });
      if (!at(done, k) && !waits) ready.push_back(k);
    }
    order.push_back(at(ready, pick(random, 0, static_cast<int>(ready.size()) - 1)));
    at(done, order.back()) = true;
  }
  return order;
}

/// Whether the pairs lead from one kernel to the other.
bool leads_to(const std::set<std::pair<int, int>>& pairs, int from, int to) {
  return std::ranges::any_of(pairs, [&](const auto& pair) {
    return pair.first == from && (pair.second == to || (pair.second < to && leads_to(pairs, pair.second, to)));
  });
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

/// Bytes by memory and place. What is written depends on the kernel, the place, and all that the kernel read; a write
/// that is not exact leaves some bytes alone. What an earlier epoch left in a storage is nothing that a later one
/// reads.
class Memory {
 public:
  Memory(const KernelGraph& graph, std::vector<std::vector<std::string>> names)
      : graph_(graph), names_(std::move(names)) {}

  void run(int number) {
    const Kernel& kernel = at(graph_.kernels, number);
    std::uint64_t seen = mixed(7, static_cast<std::uint64_t>(number));
    for (const auto* accesses : {&kernel.reads, &kernel.updates}) {
      for (const Access& access : *accesses) {
        for (std::int64_t byte = access.offset; byte < access.end(); ++byte) {
          const auto found = bytes_.find({name(number, access.buffer), byte});
          const bool own = found != bytes_.end() && found->second.second == access.buffer;
          seen = mixed(seen, own ? found->second.first : 0);
        }
      }
    }
    for (const auto* accesses : {&kernel.writes, &kernel.updates}) {
      for (const Access& access : *accesses) {
        for (std::int64_t byte = access.offset; byte < access.end(); ++byte) {
          const std::uint64_t value = mixed(seen, static_cast<std::uint64_t>(byte));
          if (access.exact || value % 2 == 0) bytes_[{name(number, access.buffer), byte}] = {value, access.buffer};
        }
      }
    }
    seen_[number] = seen;
  }

  [[nodiscard]] const auto& bytes() const { return bytes_; }
  [[nodiscard]] const auto& seen() const { return seen_; }

 private:
  const std::string& name(int kernel, int buffer) { return at(at(names_, kernel), buffer); }

  const KernelGraph& graph_;
  std::vector<std::vector<std::string>> names_;  ///< of the memory, by kernel and buffer
  std::map<std::pair<std::string, std::int64_t>, std::pair<std::uint64_t, int>> bytes_;  ///< with who wrote it
  std::map<int, std::uint64_t> seen_;
};

/// Buffers of a storage share it.
std::vector<std::vector<std::string>> as_recorded(const KernelGraph& graph) {
  std::vector<std::string> row;
  for (const Buffer& buffer : graph.buffers) row.push_back(buffer.storage.empty() ? buffer.id : buffer.storage);
  return std::vector(graph.kernels.size(), row);
}

/// Every buffer, and every version of it, has memory of its own.
std::vector<std::vector<std::string>> renamed(const KernelGraph& graph) {
  std::vector<int> version(graph.buffers.size());
  std::vector<std::vector<std::string>> names;
  for (const Kernel& kernel : graph.kernels) {
    std::vector<std::string> row;
    for (int b = 0; b < static_cast<int>(graph.buffers.size()); ++b) {
      if (writes_all_unread(graph, kernel, b)) ++at(version, b);
      row.push_back(at(graph.buffers, b).id + "/" + std::to_string(at(version, b)));
    }
    names.push_back(std::move(row));
  }
  return names;
}

Memory replayed(const KernelGraph& graph, const std::vector<std::vector<std::string>>& names,
                const std::vector<int>& order) {
  Memory memory(graph, names);
  for (const int kernel : order) memory.run(kernel);
  return memory;
}

std::vector<int> recorded_order(const KernelGraph& graph) {
  std::vector<int> order;
  for (int k = 0; k < graph.kernel_count(); ++k) order.push_back(k);
  return order;
}

}  // namespace

TEST_CASE("hazards are what the definition says, byte by byte") {
  Random random(1);
  std::size_t found = 0;
  for (int round = 0; round < cases(4000); ++round) {
    const KernelGraph graph = draw_launches(random);
    std::map<Edge, std::int64_t> expected;
    for (const auto& [edge, bytes] : hazards_by_byte(graph)) {
      expected[edge] = static_cast<std::int64_t>(bytes.size());
    }
    std::map<Edge, std::int64_t> given;
    for (const Hazard& h : hazards(graph, graph.phases.front())) {
      REQUIRE(h.from < h.to);
      given[{h.from, h.to, h.kind, h.buffer, h.storage}] = h.bytes;
    }
    for (const auto& [edge, bytes] : expected) {
      INFO("round " << round << ": " << std::get<0>(edge) << " -> " << std::get<1>(edge));
      REQUIRE(given.contains(edge));
      CHECK(given[edge] >= bytes);  // bytes that two accesses of a kernel share are counted for both
    }
    REQUIRE(given.size() == expected.size());
    found += given.size();
  }
  CHECK(found > static_cast<std::size_t>(tangram::testing::enough(10'000)));
}

TEST_CASE("any order that keeps the hazards leaves the same bytes") {
  Random random(2);
  int reordered = 0;
  for (int round = 0; round < cases(4000); ++round) {
    const KernelGraph graph = draw_launches(random);
    const auto pairs = pairs_of(hazards(graph, graph.phases.front()), true);
    const auto order = draw_order(random, graph.kernel_count(), pairs);
    reordered += order != recorded_order(graph) ? 1 : 0;
    const auto names = as_recorded(graph);
    const Memory once = replayed(graph, names, recorded_order(graph));
    const Memory again = replayed(graph, names, order);
    INFO("round " << round);
    REQUIRE(once.bytes() == again.bytes());
  }
  CHECK(reordered > tangram::testing::enough(500));
}

TEST_CASE("without hazards of storage every kernel still reads the same, where versions have memory of their own") {
  Random random(3);
  int fewer = 0;
  for (int round = 0; round < cases(4000); ++round) {
    const KernelGraph graph = draw_launches(random);
    const auto found = hazards(graph, graph.phases.front());
    const auto pairs = pairs_of(found, false);
    fewer += pairs.size() < pairs_of(found, true).size() ? 1 : 0;
    const auto names = renamed(graph);
    const Memory once = replayed(graph, names, recorded_order(graph));
    const Memory again = replayed(graph, names, draw_order(random, graph.kernel_count(), pairs));
    INFO("round " << round);
    REQUIRE(once.seen() == again.seen());
    REQUIRE(once.bytes() == again.bytes());
  }
  CHECK(fewer > tangram::testing::enough(500));
}

TEST_CASE("a hazard that no others imply is needed: without it bytes change") {
  Random random(4);
  int dropped = 0;
  int noticed = 0;
  for (int round = 0; round < cases(1500); ++round) {
    const KernelGraph graph = draw_launches(random);
    const auto pairs = pairs_of(hazards(graph, graph.phases.front()), true);
    const auto names = as_recorded(graph);
    const Memory recorded = replayed(graph, names, recorded_order(graph));
    for (const auto& pair : pairs) {
      auto rest = pairs;
      rest.erase(pair);
      if (leads_to(rest, pair.first, pair.second)) continue;  // implied
      ++dropped;
      bool changed = false;
      for (int attempt = 0; attempt < 20 && !changed; ++attempt) {
        const Memory other = replayed(graph, names, draw_order(random, graph.kernel_count(), rest));
        changed = other.bytes() != recorded.bytes() || other.seen() != recorded.seen();
      }
      noticed += changed ? 1 : 0;
    }
  }
  // What an inexact write leaves alone, and what is overwritten before anyone reads it, changes nothing.
  CHECK(dropped > tangram::testing::enough(1500));
  CHECK(noticed > 0.8 * dropped);
}
