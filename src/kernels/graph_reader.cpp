// Reads tangram.kernels/1, JSON.
//
//   {
//     "schema": "tangram.kernels/1",
//     "source": [ { "kind": "model", "file": "llama-3-8b.yaml", "digest": "..." } ],
//     "gpus": ["A100-80GB-SXM", "L40S"],            catalogue names
//     "phases": [
//       { "name": "decode", "requests": 32, "tokens": 32, "context": 2048,     0 or left out: not known
//         "first": 0, "count": 15,                  kernels [first, first + count) of the list below
//         "repeats": [ { "first": 1, "kernels": 11, "times": 32 } ] } ],
//     "buffers": [
//       { "id": "kv", "bytes": 268435456, "kind": "kv", "per": "request", "copies": 32,      copies: 1 if left out
//         "storage": "7", "epoch": 1,               optional: memory that several buffers lie in one after the other
//         "formats": { "A100-80GB-SXM": "marlin" } } ],
//     "kernels": [
//       { "id": "layer.qkv", "position": "layer/attention/qkv", "layer": 0, "part": "attention",
//         "operator": "gemm", "shape": [32, 6144, 4096], "stream": 0, "order": 2,
//         "reads": [ { "buffer": "normed", "offset": 0, "bytes": 262144, "exact": true } ],   offset 0 and exact true
//         "writes": [ ... ], "updates": [ ... ],                                              may be left out
//         "after": ["layer.norm"],                  what ends first for other reasons than data
//         "evidence": "model", "pinned": "collective", "signature": "gemm",
//         "times": { "L40S": { "us": 76.1, "from": "interpolated", "error": 0.08 } },
//         "launch": { "grid": [48, 1, 1], "block": [128, 1, 1], "shared": 49152 },
//         "names": { "L40S": "cutlass_80_wmma" } } ]
//   }
#include <fmt/format.h>

#include <cmath>
#include <unordered_map>

#include "names.hpp"
#include "phase_limits.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/kernels/document.hpp"

namespace tangram::kernels {
namespace {

constexpr io::IntegerRange kBytes = io::integer_limit("bytes");
constexpr io::IntegerRange kOffset{0, kBytes.max, kBytes.why};
constexpr io::IntegerRange kShape{0, std::int64_t{1} << 60, "no operator has such a shape"};
constexpr io::IntegerRange kPlace{0, 10'000'000, "no step has more kernels"};
constexpr io::IntegerRange kEpoch{0, 10'000'000, "no step allocates more often"};
constexpr io::IntegerRange kStream{-1, 2'000'000'000, "streams are numbered from 0"};
constexpr io::IntegerRange kOrder{0, std::int64_t{1} << 60, "launches are counted from 0"};
constexpr io::IntegerRange kExtent{1, std::int64_t{1} << 31, "grids and blocks have 2^31 of each dimension at most"};
constexpr io::IntegerRange kShared{0, 1 << 24, "multiprocessors have some hundred KiB"};
constexpr io::NumberRange kTime{1e-3, 1e12, false, false, "from a nanosecond to eleven days"};
constexpr io::NumberRange kError{0, 100, false, false, "a share of the time: 0.1 is 10 %"};

using Places = std::unordered_map<std::string, int>;

std::vector<std::string> keys_of(const Places& places) {
  std::vector<std::string> keys;
  for (const auto& [key, place] : places) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

class GraphReader {
 public:
  explicit GraphReader(io::ObjectReader& reader) : reader_(reader) {}

  KernelGraph read() {
    read_sources();
    read_gpus();
    read_buffers();
    read_kernels();
    read_phases();
    reader_.finish();
    return std::move(graph_);
  }

 private:
  void read_sources() {
    for (io::ObjectReader& item : reader_.objects_if("source")) {
      Source source;
      source.kind = item.string("kind");
      source.file = item.string("file");
      source.digest = item.string_or("digest", "");
      item.finish();
      graph_.sources.push_back(std::move(source));
    }
  }

  void read_gpus() {
    graph_.gpus = reader_.strings_if("gpus");
    for (int gpu = 0; gpu < graph_.gpu_count(); ++gpu) {
      if (gpus_.emplace(at(graph_.gpus, gpu), gpu).second) continue;
      reader_.error_at("gpus", "duplicate-name", fmt::format("\"{}\" is there twice", at(graph_.gpus, gpu)));
    }
  }

  /// The place of what `key` names; -1 after reporting that there is no such thing.
  int find(io::ObjectReader& item, std::string_view key, const std::string& name, const Places& places,
           std::string_view what) {
    const auto found = places.find(name);
    if (found != places.end()) return found->second;
    const auto near = closest(name, keys_of(places));
    item.error_at(key, "unknown-name", fmt::format("there is no {} \"{}\"", what, name),
                  near ? fmt::format("did you mean \"{}\"?", *near) : "");
    return -1;
  }

  std::string new_id(io::ObjectReader& item, Places& places, std::string_view what) {
    std::string id = item.string("id");
    if (!id.empty() && !places.emplace(id, static_cast<int>(places.size())).second) {
      item.error_at("id", "duplicate-name", fmt::format("two {} are called \"{}\"", what, id));
    }
    return id;
  }

  template <class Enum, std::size_t kCount>
  static Enum one_of(io::ObjectReader& item, std::string_view key, const std::array<std::string_view, kCount>& names,
                     Enum fallback) {
    if (!item.has(key)) return fallback;
    const auto index = item.choice_of(key, {names.begin(), names.end()});
    return index ? static_cast<Enum>(*index) : fallback;
  }

  void read_buffers() {
    for (io::ObjectReader& item : reader_.objects_if("buffers")) {
      Buffer buffer;
      buffer.id = new_id(item, buffers_, "buffers");
      buffer.bytes = Bytes(item.integer("bytes", kBytes));
      buffer.kind = one_of(item, "kind", kBufferKindNames, BufferKind::kUnknown);
      buffer.per = one_of(item, "per", kGrowthNames, Growth::kStep);
      buffer.copies = item.integer_or("copies", 1, io::integer_limit("layers"));
      buffer.storage = item.string_or("storage", "");
      buffer.epoch = static_cast<int>(item.integer_or("epoch", 0, kEpoch));
      read_words(item, "formats", buffer.formats);
      item.finish();
      graph_.buffers.push_back(std::move(buffer));
    }
  }

  /// Texts by GPU; none of them: an empty list.
  void read_words(io::ObjectReader& item, std::string_view key, std::vector<std::string>& words) {
    for (const auto& [name, word] : item.string_members(key)) {
      const int gpu = find(item, key, name, gpus_, "GPU");
      if (gpu < 0) continue;
      words.resize(graph_.gpus.size());
      at(words, gpu) = word;
    }
  }

  void read_kernels() {
    std::vector<io::ObjectReader> items = reader_.objects("kernels");
    graph_.kernels.reserve(items.size());
    for (io::ObjectReader& item : items) graph_.kernels.push_back(read_kernel(item));
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const std::string& before : items[i].strings_if("after")) {
        const int place = find(items[i], "after", before, kernels_, "kernel");
        if (place >= 0) graph_.kernels[i].after.push_back(place);
      }
    }
  }

  Kernel read_kernel(io::ObjectReader& item) {
    Kernel kernel;
    kernel.id = new_id(item, kernels_, "kernels");
    kernel.position = item.string("position");
    kernel.layer = static_cast<int>(item.integer_or("layer", -1, {-1, 1'000'000, "no model has more layers"}));
    kernel.part = one_of(item, "part", kPartNames, Part::kOther);
    kernel.op = item.string("operator");
    kernel.shape = integers(item, "shape", kShape);
    kernel.stream = static_cast<int>(item.integer_or("stream", 0, kStream));
    kernel.order = item.integer("order", kOrder);
    kernel.reads = read_accesses(item, "reads");
    kernel.writes = read_accesses(item, "writes");
    kernel.updates = read_accesses(item, "updates");
    item.ignore("after");
    kernel.evidence = one_of(item, "evidence", kEvidenceNames, Evidence::kConservative);
    kernel.pinned = one_of(item, "pinned", kPinNames, Pin::kNone);
    kernel.signature = item.string_or("signature", "");
    read_times(item, kernel);
    if (auto launch = item.object_if("launch")) kernel.launch = read_launch(*launch);
    read_words(item, "names", kernel.names);
    item.finish();
    return kernel;
  }

  std::vector<std::int64_t> integers(io::ObjectReader& item, std::string_view key, io::IntegerRange range) {
    std::vector<std::int64_t> values;
    const io::Node* node = item.raw(key);
    if (node == nullptr) return values;
    if (node->kind != io::NodeKind::kArray) {
      item.error_at(key, "wrong-type", fmt::format("expected an array of integers, got {}", to_string(node->kind)));
      return values;
    }
    for (const io::Node& value : node->items) {
      const bool whole = value.kind == io::NodeKind::kInteger;
      if (whole && value.integer >= range.min && value.integer <= range.max) {
        values.push_back(value.integer);
        continue;
      }
      item.error_at(value, fmt::format("{}/{}/{}", item.pointer(), key, &value - node->items.data()), "out-of-range",
                    fmt::format("expected an integer from {} to {}", range.min, range.max), std::string(range.why));
    }
    return values;
  }

  std::vector<Access> read_accesses(io::ObjectReader& item, std::string_view key) {
    std::vector<Access> accesses;
    for (io::ObjectReader& entry : item.objects_if(key)) {
      const std::size_t before = entry.sink().size();
      Access access;
      const std::string name = entry.string("buffer");
      if (!name.empty()) access.buffer = find(entry, "buffer", name, buffers_, "buffer");
      access.offset = entry.integer_or("offset", 0, kOffset);
      access.bytes = entry.integer("bytes", kBytes);
      access.exact = entry.boolean_or("exact", true);
      entry.finish();
      if (entry.sink().size() != before) continue;
      const std::int64_t size = at(graph_.buffers, access.buffer).bytes.value();
      if (access.end() > size) {
        entry.error_at("bytes", "out-of-range",
                       fmt::format("bytes {} to {} of \"{}\", which has {}", access.offset, access.end(), name, size));
      } else {
        accesses.push_back(access);
      }
    }
    return accesses;
  }

  void read_times(io::ObjectReader& item, Kernel& kernel) {
    kernel.times.resize(graph_.gpus.size());
    for (auto& [name, entry] : item.object_members("times")) {
      const int gpu = find(item, "times", name, gpus_, "GPU");
      KernelTime time;
      time.time = Nanoseconds(std::llround(entry.number("us", kTime) * 1e3));
      time.from = one_of(entry, "from", kTimeSourceNames, TimeSource::kMeasured);
      time.error = entry.number_or("error", 0, kError);
      entry.finish();
      if (gpu >= 0) at(kernel.times, gpu) = time;
    }
  }

  Launch read_launch(io::ObjectReader& item) {
    Launch launch;
    read_extent(item, "grid", launch.grid);
    read_extent(item, "block", launch.block);
    launch.shared = Bytes(item.integer_or("shared", 0, kShared));
    item.finish();
    return launch;
  }

  void read_extent(io::ObjectReader& item, std::string_view key, std::array<std::int64_t, 3>& extent) {
    const std::size_t before = item.sink().size();
    const std::vector<std::int64_t> values = integers(item, key, kExtent);
    if (item.sink().size() != before) return;
    if (values.size() == extent.size()) {
      std::copy(values.begin(), values.end(), extent.begin());
    } else {
      item.error_at(key, "out-of-range", fmt::format("\"{}\" must be three integers", key));
    }
  }

  void read_phases() {
    int next = 0;
    for (io::ObjectReader& item : reader_.objects("phases")) {
      const std::size_t before = item.sink().size();
      Phase phase;
      phase.name = item.string("name");
      phase.requests = item.integer_or("requests", 0, kPhaseRequests);
      phase.tokens = item.integer_or("tokens", 0, kPhaseTokens);
      phase.context = item.integer_or("context", 0, kPhaseContext);
      phase.first = static_cast<int>(item.integer("first", kPlace));
      phase.count = static_cast<int>(item.integer("count", kPlace));
      read_repeats(item, phase);
      item.finish();
      if (item.sink().size() == before) check_phase(item, phase, next);
      next = phase.first + phase.count;
      graph_.phases.push_back(std::move(phase));
    }
    if (reader_.sink().empty() && next != graph_.kernel_count()) {
      reader_.error_at("phases", "inconsistent-value",
                       fmt::format("the phases hold {} of {} kernels", next, graph_.kernel_count()),
                       "each kernel belongs to one phase");
    }
  }

  static void read_repeats(io::ObjectReader& item, Phase& phase) {
    for (io::ObjectReader& entry : item.objects_if("repeats")) {
      Repeat repeat;
      repeat.first = static_cast<int>(entry.integer("first", kPlace));
      repeat.kernels = static_cast<int>(entry.integer("kernels", {1, kPlace.max, kPlace.why}));
      repeat.times = entry.integer("times", io::integer_limit("layers"));
      entry.finish();
      phase.repeats.push_back(repeat);
    }
  }

  void check_phase(io::ObjectReader& item, const Phase& phase, int next) {
    const int end = phase.first + phase.count;
    if (phase.first != next || end > graph_.kernel_count()) {
      item.error_at("first", "inconsistent-value",
                    fmt::format("kernels {} to {} of {}, after {} of other phases", phase.first, end,
                                graph_.kernel_count(), next),
                    "phases hold the kernels one after the other");
      return;
    }
    int from = phase.first;
    for (const Repeat& repeat : phase.repeats) {
      if (repeat.first < from || repeat.first + repeat.kernels > end) {
        item.error_at("repeats", "inconsistent-value",
                      fmt::format("kernels {} to {} are not within the phase, or in two repeats", repeat.first,
                                  repeat.first + repeat.kernels));
      }
      from = repeat.first + repeat.kernels;
    }
    for (int k = phase.first + 1; k < end; ++k) {
      if (at(graph_.kernels, k).order > at(graph_.kernels, k - 1).order) continue;
      item.error_at("first", "not-ascending",
                    fmt::format("kernel \"{}\" stands after \"{}\", and was launched before it",
                                at(graph_.kernels, k).id, at(graph_.kernels, k - 1).id),
                    "sort the kernels of a phase by \"order\"");
      return;
    }
  }

  io::ObjectReader& reader_;
  KernelGraph graph_;
  Places gpus_;
  Places buffers_;
  Places kernels_;
};

}  // namespace

Expected<KernelGraph> read_kernel_graph(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  if (!reader.valid() || !io::has_schema(reader, "tangram.kernels/1")) return fail(std::move(mistakes));
  KernelGraph graph = GraphReader(reader).read();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return graph;
}

}  // namespace tangram::kernels
