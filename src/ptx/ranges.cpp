#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "entry.hpp"
#include "flow.hpp"
#include "footprint.hpp"
#include "graph.hpp"
#include "inline_calls.hpp"
#include "provenance.hpp"
#include "reasons.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::ptx {
namespace {

constexpr std::size_t kLongestFollowed = 30'000;  // instructions; longer bodies count by provenance alone
constexpr std::size_t kMostBlocks = 4'000;        // postdominators are kept as a square
constexpr std::size_t kMostPieces = 64;           // of a buffer; more are one range

/// What becomes a BufferRange.
struct Collected {
  std::set<ByteSet> bytes;
  std::vector<Reason> reasons;  ///< why they are not exact
};

class Collector {
 public:
  Collector(const Launch& launch, const Provenance& provenance, const Symbols& symbols)
      : launch_(launch), symbols_(symbols) {
    for (const Access& access : provenance.accesses) by_instruction_[{access.instruction, access.effect}] = &access;
  }

  void add(int instruction, const MemoryUse& use, const Value& address, const Domain& domain) {
    const auto found = by_instruction_.find({instruction, use.effect});
    if (found == by_instruction_.end()) return;  // on the chip
    const Access& access = *found->second;
    seen_.insert({instruction, use.effect});
    const bool known = !address.choices.empty() && use.width > 0 && !use.is_tensor &&
                       std::ranges::none_of(address.choices, [](const Choice& c) { return c.base == kNumber; });
    if (!known)
      return add_all(access, use.width > 0 ? "the address is not affine" : "an extent that is not known here");
    for (const Choice& choice : address.choices) {
      if (choice.base < 0) continue;
      add_footprint(access, choice, domain);
      if (use.is_partial) reason(access, choice.base, "a register may say that fewer bytes are copied");
      if (address.choices.size() > 1) reason(access, choice.base, "one of several pointers, or of several offsets");
    }
  }

  /// Accesses that the flow has not come to are not made; without a flow all may be anywhere.
  void add_unfollowed(std::string_view why) {
    for (const auto& [key, access] : by_instruction_) {
      if (!seen_.contains(key)) add_all(*access, why);
    }
  }

  std::vector<BufferRange> result() {
    std::vector<BufferRange> ranges;
    for (auto& [key, collected] : collected_) {
      if (collected.bytes.empty()) continue;
      std::vector<ByteSet> bytes(collected.bytes.begin(), collected.bytes.end());
      if (bytes.size() > kMostPieces) {
        std::int64_t end = 0;
        for (const ByteSet& set : bytes) end = std::max(end, set.end());
        bytes = {{bytes.front().first, end - bytes.front().first, {}}};
        add_reason(collected.reasons, {{}, "many pieces, taken as one"});
      }
      const bool exact = collected.reasons.empty();
      ranges.push_back({key.first, key.second, std::move(bytes), exact, std::move(collected.reasons)});
    }
    return ranges;
  }

 private:
  void reason(const Access& access, int argument, std::string text) {
    add_reason(collected_[{argument, access.effect}].reasons, {access.place, std::move(text)});
  }

  void add_whole(const Access& access, int argument, std::string_view why) {
    const auto* buffer = std::get_if<BufferArgument>(&at(launch_.arguments, argument));
    if (buffer == nullptr || buffer->bytes == 0) return;
    collected_[{argument, access.effect}].bytes.insert({0, buffer->bytes, {}});
    reason(access, argument, std::string(why));
  }

  /// By provenance: the whole of every buffer that it may be in.
  void add_all(const Access& access, std::string_view why) {
    for (const Base& base : access.bases) {
      if (base.kind == BaseKind::kParameter || base.kind == BaseKind::kTensorMap) add_whole(access, base.index, why);
    }
  }

  void add_footprint(const Access& access, const Choice& choice, const Domain& domain) {
    const Footprint footprint = footprint_of(choice.offset, access.width, domain, symbols_);
    const auto& buffer = std::get<BufferArgument>(at(launch_.arguments, choice.base));
    if (!footprint.bounded) {
      const Reason why = footprint.reasons.empty() ? Reason{{}, "an offset without bounds"} : footprint.reasons.front();
      return add_whole(access, choice.base, why.text);
    }
    Collected& collected = collected_[{choice.base, access.effect}];
    for (const Reason& why : footprint.reasons) {
      add_reason(collected.reasons, {why.place.line > 0 ? why.place : access.place, why.text});
    }
    for (const ByteSet& set : footprint.bytes) {
      if (set.first >= 0 && set.end() <= buffer.bytes) {
        collected.bytes.insert(set);
        continue;
      }
      const std::int64_t first = std::clamp<std::int64_t>(set.first, 0, buffer.bytes);
      const std::int64_t end = std::clamp<std::int64_t>(set.end(), 0, buffer.bytes);
      if (end > first) collected.bytes.insert({first, end - first, {}});
      add_reason(collected.reasons, {access.place, "clipped: it would reach outside the allocation"});
    }
  }

  const Launch& launch_;
  const Symbols& symbols_;
  std::map<std::pair<int, Effect>, const Access*> by_instruction_;
  std::set<std::pair<int, Effect>> seen_;
  std::map<std::pair<int, Effect>, Collected> collected_;
};

Diagnostic bad_launch(const Launch& launch, std::string message, std::string hint) {
  return problem(ErrorKind::kInput, "bad-launch", fmt::format("launch of {}: {}", launch.entry, message),
                 std::move(hint));
}

std::optional<Diagnostic> complaint(const Function& entry, const Launch& launch) {
  constexpr std::int64_t kMostBlocksInGrid = 2'147'483'647;  // CUDA programming guide, "Technical Specifications"
  constexpr std::int64_t kMostThreads = 1024;
  if (launch.arguments.size() != static_cast<std::size_t>(entry.parameters)) {
    return bad_launch(
        launch,
        fmt::format("it has {} arguments and the entry {} parameters", launch.arguments.size(), entry.parameters),
        "give one for each parameter, in order");
  }
  std::int64_t threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (launch.grid[i] < 1 || launch.grid[i] > kMostBlocksInGrid) {
      return bad_launch(launch, fmt::format("a grid of {} blocks", launch.grid[i]),
                        "grids have 1 to 2147483647 blocks");
    }
    if (launch.block[i] < 1 || launch.block[i] > kMostThreads) {
      return bad_launch(launch, fmt::format("a block of {} threads", launch.block[i]), "blocks have 1 to 1024 threads");
    }
    threads *= launch.block[i];
  }
  if (threads > kMostThreads) {
    return bad_launch(launch, fmt::format("a block of {} threads", threads), "blocks have 1 to 1024 threads");
  }
  for (const Argument& argument : launch.arguments) {
    const auto* buffer = std::get_if<BufferArgument>(&argument);
    if (buffer != nullptr && (buffer->bytes < 0 || buffer->offset < 0 || buffer->offset > buffer->bytes)) {
      return bad_launch(
          launch, fmt::format("buffer {} of {} bytes, from byte {} on", buffer->name, buffer->bytes, buffer->offset),
          "the offset lies within the allocation");
    }
  }
  return std::nullopt;
}

}  // namespace

Expected<LaunchRanges> ranges_of(const Module& module, const Launch& launch) {
  const auto entry = find_entry(module, launch.entry);
  if (!entry) return fail(entry.error());
  if (auto wrong = complaint(**entry, launch)) return fail(*std::move(wrong));
  const Function body = inline_calls(module, **entry);
  Provenance provenance = provenance_of(module, body);
  Symbols symbols(launch);
  Collector collector(launch, provenance, symbols);
  const std::string_view not_followed = [&]() -> std::string_view {
    if (body.body.size() > kLongestFollowed) return "the kernel is too long to follow";
    const Graph graph(body);
    if (graph.blocks().size() > kMostBlocks) return "the kernel has too many branches to follow";
    if (graph.is_irreducible()) return "a loop has several entrances";
    Transfer transfer(body, launch, symbols);
    Flow(body, graph, symbols, transfer,
         [&](int number, const MemoryUse& use, const Value& address, const Domain& domain) {
           collector.add(number, use, address, domain);
         })
        .run();
    return {};
  }();
  if (!not_followed.empty()) collector.add_unfollowed(not_followed);
  return LaunchRanges{collector.result(), std::move(provenance.pinned)};
}

}  // namespace tangram::ptx
