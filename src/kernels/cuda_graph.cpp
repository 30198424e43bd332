// Labels are records of fields between bars: {KERNEL| {ID | 0 (topoId: 4) | name\<\<\<grid,block,shared\>\>\>} ...},
// {MEMCPY| ... {pitch | ptr | xsize | ysize} | {source} | {target} ...}, {MEMSET| ... dptr | pitch | value |
// elementSize | width | height} | {values}. Extents of one number have no braces: 8, and \{16,10,4\}.
#include "cuda_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <queue>
#include <unordered_map>

#include "dot_syntax.hpp"
#include "place.hpp"
#include "recorded_graph.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

/// A label without escapes, cut at bars and braces into its fields.
std::vector<std::string> fields_of(const std::string& label) {
  std::vector<std::string> fields;
  std::string field;
  const auto end_field = [&] {
    const std::size_t first = field.find_first_not_of(" \t\r\n");
    if (first != std::string::npos)
      fields.push_back(symbol(field.substr(first, field.find_last_not_of(" \t\r\n") - first + 1)));
    field.clear();
  };
  for (std::size_t i = 0; i < label.size(); ++i) {
    const char c = label[i];
    if (c == '\\' && i + 1 < label.size()) {
      field += label[++i];
    } else if (c == '|' || c == '{' || c == '}') {
      end_field();
    } else {
      field += c;
    }
  }
  end_field();
  return fields;
}

std::optional<std::int64_t> integer_in(std::string_view text, int base = 10) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "8" or "{16,10,4}" from the front of `text`, with the comma behind it.
std::optional<std::array<std::int64_t, 3>> take_extent(std::string_view& text) {
  std::array<std::int64_t, 3> extent{1, 1, 1};
  const bool braces = text.starts_with('{');
  if (braces) text.remove_prefix(1);
  const std::string_view numbers = text.substr(0, text.find(braces ? '}' : ','));
  text.remove_prefix(std::min(text.size(), numbers.size() + (braces ? 2 : 1)));
  std::size_t place = 0;
  for (std::size_t begin = 0; begin <= numbers.size();) {
    const std::size_t end = std::min(numbers.find(',', begin), numbers.size());
    const auto value = integer_in(numbers.substr(begin, end - begin));
    if (!value || *value < 1 || *value > std::int64_t{1} << 31 || place >= 3) return std::nullopt;
    extent[place++] = *value;
    begin = end + 1;
  }
  return extent;
}

/// "name<<<grid,block,shared>>>"
struct KernelField {
  std::string name;
  std::optional<Launch> launch;
};

KernelField kernel_field(const std::string& text) {
  const std::size_t open = text.find("<<<");
  KernelField field{text.substr(0, open), std::nullopt};
  if (open == std::string::npos) return field;
  std::string_view rest = std::string_view(text).substr(open + 3);
  rest = rest.substr(0, rest.find(">>>"));
  const auto grid = take_extent(rest);
  const auto block = grid ? take_extent(rest) : std::nullopt;
  const auto shared = integer_in(rest);
  if (grid && block)
    field.launch = Launch{*grid, *block, Bytes(std::clamp<std::int64_t>(shared.value_or(0), 0, 1 << 24))};
  return field;
}

/// Memory by its address, as labels have it.
struct AddressSpan {
  std::string address;
  std::int64_t bytes = 0;
};

std::optional<AddressSpan> span_of(const std::string& address, std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
  if (!address.starts_with("0x") || width < 1 || height < 1 || width > kMostBytes / height) return std::nullopt;
  return AddressSpan{address, width * height};
}

struct GraphNode {
  std::string id;
  Kernel kernel;
  std::vector<AddressSpan> reads;
  std::vector<AddressSpan> writes;
};

class CudaGraphReader {
 public:
  explicit CudaGraphReader(const RecordingFile& file) : file_(file) {}

  Expected<Recording> read() && {
    auto dot = read_dot(file_.text, file_.name);
    if (!dot) return fail(std::move(dot.error()));
    for (const DotNode& node : dot->nodes) {
      if (node.id.empty()) return fail(mistake_at(file_.name, node.line, 1, "missing-name", "a node without a name"));
      if (!places_.emplace(symbol(node.id), static_cast<int>(nodes_.size())).second) {
        return fail(mistake_at(file_.name, node.line, 1, "duplicate-name",
                               fmt::format("two nodes are called \"{}\"", node.id)));
      }
      nodes_.push_back(node_of(node));
    }
    if (nodes_.empty()) return fail(mistake_at(file_.name, 1, 1, "no-kernels", "the graph has no nodes"));
    for (const DotEdge& edge : dot->edges) {
      const auto from = places_.find(symbol(edge.from));
      const auto to = places_.find(symbol(edge.to));
      if (from == places_.end() || to == places_.end()) {
        return fail(mistake_at(
            file_.name, edge.line, 1, "unknown-name",
            fmt::format("an edge of \"{}\", which is no node", from == places_.end() ? edge.from : edge.to)));
      }
      edges_.emplace_back(from->second, to->second);
    }
    if (const int stuck = sort(); stuck >= 0) {
      return fail(mistake_at(file_.name, at(dot->nodes, stuck).line, 1, "cycle",
                             fmt::format("\"{}\" waits for itself", at(nodes_, stuck).id),
                             "a CUDA graph has no cycles: dump it again"));
    }
    return graph();
  }

 private:
  static GraphNode node_of(const DotNode& dot) {
    const std::vector<std::string> fields = fields_of(dot.label);
    GraphNode node;
    node.id = symbol(dot.id);
    const std::string kind = fields.empty() ? "" : fields.front();
    node.kernel.op = kind.empty() ? "node" : kind;
    if (kind == "KERNEL") {
      const auto call = std::ranges::find_if(fields, [](const auto& f) { return f.find("<<<") != f.npos; });
      if (call != fields.end()) {
        KernelField field = kernel_field(*call);
        node.kernel.launch = field.launch;
        if (!field.name.empty()) node.kernel.op = std::move(field.name);
      }
      identify(node.kernel.op, node.kernel);
    } else if (kind == "MEMCPY") {
      read_copy(fields, node);
    } else if (kind == "MEMSET") {
      read_fill(fields, node);
    } else {
      node.kernel.pinned = Pin::kHost;
    }
    return node;
  }

  /// Values follow their names: ... pitch, ptr, xsize, ysize, then those of the source, then those of the target.
  static void read_copy(const std::vector<std::string>& fields, GraphNode& node) {
    const bool on_device = std::ranges::find(fields, "DtoD") != fields.end();
    node.kernel.pinned = on_device ? Pin::kNone : Pin::kHost;
    const auto first = std::ranges::find(fields, "srcPtr");
    const auto extent = std::ranges::find(fields, "Extent");
    if (extent <= first || fields.end() - extent < 7) return;
    std::vector<std::string> addresses;
    for (auto field = first; field != extent; ++field) {
      if (field->starts_with("0x")) addresses.push_back(*field);
    }
    const auto width = integer_in(extent[4]);
    const auto height = integer_in(extent[5]);
    const auto depth = integer_in(extent[6]);
    if (addresses.size() != 2 || !width || !height || !depth) return;
    const std::int64_t rows = *height > 0 && *depth > 0 && *height < 1'000'000'000 / *depth ? *height * *depth : 0;
    const auto source = span_of(addresses[0], *width, rows);
    const auto target = span_of(addresses[1], *width, rows);
    if (!source || !target) return;
    node.kernel.evidence = Evidence::kTrace;
    node.reads = {*source};
    node.writes = {*target};
  }

  static void read_fill(const std::vector<std::string>& fields, GraphNode& node) {
    // node handle, dptr, pitch, value, elementSize, width, height: seven names, then seven values.
    const auto names = std::ranges::find(fields, "node handle");
    if (names == fields.end() || fields.end() - names < 14) return;
    const auto element = integer_in(names[11]);
    const auto width = integer_in(names[12]);
    const auto height = integer_in(names[13]);
    if (!element || !width || !height || *element < 1 || *element > 16 || *width > std::int64_t{1} << 46) return;
    const auto target = span_of(names[8], *width * *element, *height);
    if (!target) return;
    node.kernel.evidence = Evidence::kTrace;
    node.writes = {*target};
  }

  /// Fills order_; returns a node of a cycle, or -1. Of nodes that may come next the first of the file does.
  int sort() {
    std::vector<int> waits(nodes_.size());
    for (const auto& [from, to] : edges_) ++at(waits, to);
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
      if (at(waits, node) == 0) ready.push(node);
    }
    std::vector<std::vector<int>> followers(nodes_.size());
    for (const auto& [from, to] : edges_) at(followers, from).push_back(to);
    while (!ready.empty()) {
      const int node = ready.top();
      ready.pop();
      order_.push_back(node);
      for (const int next : at(followers, node)) {
        if (--at(waits, next) == 0) ready.push(next);
      }
    }
    for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
      if (at(waits, node) > 0) return node;
    }
    return -1;
  }

  int buffer_of(const AddressSpan& span) {
    const auto [entry, is_new] = buffers_.emplace(span.address, static_cast<int>(graph_.buffers.size()));
    if (is_new) {
      Buffer buffer;
      buffer.id = span.address;
      graph_.buffers.push_back(std::move(buffer));
    }
    Buffer& buffer = at(graph_.buffers, entry->second);
    buffer.bytes = std::max(buffer.bytes, Bytes(span.bytes));
    return entry->second;
  }

  Recording graph() {
    std::vector<int> places(nodes_.size());
    for (std::size_t place = 0; place < order_.size(); ++place) at(places, order_[place]) = static_cast<int>(place);
    for (const int number : order_) {
      GraphNode& node = at(nodes_, number);
      Kernel kernel = std::move(node.kernel);
      kernel.order = graph_.kernel_count();
      kernel.id = node.id;
      kernel.position = position_by_order(kernel.order);
      for (const AddressSpan& span : node.reads) kernel.reads.push_back({buffer_of(span), 0, span.bytes, true});
      for (const AddressSpan& span : node.writes) kernel.writes.push_back({buffer_of(span), 0, span.bytes, true});
      graph_.kernels.push_back(std::move(kernel));
    }
    for (const auto& [from, to] : edges_) at(graph_.kernels, at(places, to)).after.push_back(at(places, from));
    for (Kernel& kernel : graph_.kernels) {
      std::ranges::sort(kernel.after);
      const auto same = std::ranges::unique(kernel.after);
      kernel.after.erase(same.begin(), same.end());
    }
    graph_.phases.push_back({"step", 0, 0, 0, 0, graph_.kernel_count(), {}});
    return {std::move(graph_), {"a dump of a graph tells neither times nor what kernels touch: its order alone"}};
  }

  const RecordingFile& file_;
  std::vector<GraphNode> nodes_;
  std::unordered_map<std::string, int> places_;
  std::vector<std::pair<int, int>> edges_;
  std::vector<int> order_;
  std::map<std::string, int> buffers_;
  KernelGraph graph_;
};

}  // namespace

Expected<Recording> read_cuda_graph(const RecordingFile& file) { return CudaGraphReader(file).read(); }

}  // namespace tangram::kernels
