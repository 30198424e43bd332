#include "execution_trace.hpp"

#include <algorithm>
#include <array>

#include "place.hpp"

namespace tangram::kernels {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // a PiB is more than any GPU holds

// In-place operators that overwrite all of `self` without a look at it.
constexpr std::array<std::string_view, 8> kOverwriting{"aten::fill_",        "aten::zero_",     "aten::copy_",
                                                       "aten::uniform_",     "aten::normal_",   "aten::random_",
                                                       "aten::exponential_", "aten::bernoulli_"};

/// One argument of an operator's schema.
struct SchemaArgument {
  bool written = false;  ///< "Tensor(a!) x"
  bool is_out = false;   ///< named out: overwritten
};

/// Arguments of "aten::add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"; none where it is not one.
std::vector<SchemaArgument> arguments_of(std::string_view schema) {
  std::vector<SchemaArgument> arguments;
  const std::size_t open = schema.find('(');
  if (open == std::string_view::npos) return arguments;
  int depth = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = open; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    const bool ends = (c == ',' && depth == 1) || depth == 0;
    if (!ends) continue;
    std::string_view text = schema.substr(begin, i - begin);
    while (text.starts_with(' ')) text.remove_prefix(1);
    begin = i + 1;
    if (!text.empty() && text != "*") {
      const std::size_t space = text.find_last_of(' ');
      const std::string_view name = space == std::string_view::npos ? text : text.substr(space + 1);
      arguments.push_back({text.find("!)") != std::string_view::npos, name == "out" || name.starts_with("out=")});
    }
    if (depth == 0) break;
  }
  return arguments;
}

class ExecutionReader {
 public:
  explicit ExecutionReader(const io::Document& document) : document_(document) {}

  Expected<ExecutionTrace> read() && {
    const io::Node* nodes = document_.root.find("nodes");
    if (nodes == nullptr || nodes->kind != io::NodeKind::kArray) {
      return fail(mistake_at(document_, document_.root, "missing-key", "expected \"nodes\", an array of operators"));
    }
    for (const io::Node& node : nodes->items) {
      if (node.kind == io::NodeKind::kObject) read_node(node);
      if (mistakes_.size() >= kMaxDiagnostics) break;
    }
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    return std::move(trace_);
  }

 private:
  /// A value of the node, or of its attributes where newer schemas have it.
  static const io::Node* field(const io::Node& node, std::string_view key) {
    if (const io::Node* direct = node.find(key)) return direct;
    for (const std::string_view list : {"attrs", "attr"}) {
      const io::Node* attributes = node.find(list);
      if (attributes == nullptr || attributes->kind != io::NodeKind::kArray) continue;
      for (const io::Node& entry : attributes->items) {
        const io::Node* name = entry.kind == io::NodeKind::kObject ? entry.find("name") : nullptr;
        if (name != nullptr && name->text == key) return entry.find("value");
      }
    }
    return nullptr;
  }

  static const io::Node* list_of(const io::Node& node, std::string_view key) {
    const io::Node* list = node.find(key);
    if (list != nullptr && list->kind == io::NodeKind::kObject) list = list->find("values");
    return list != nullptr && list->kind == io::NodeKind::kArray ? list : nullptr;
  }

  void read_node(const io::Node& node) {
    const io::Node* id = field(node, "rf_id");
    if (id == nullptr || id->kind != io::NodeKind::kInteger || id->integer <= 0) return;
    TracedTensors tensors;
    if (const io::Node* name = node.find("name")) tensors.name = name->text;
    const io::Node* schema = field(node, "op_schema");
    const std::vector<SchemaArgument> arguments = arguments_of(schema != nullptr ? schema->text : "");
    tensors.understood = !arguments.empty();
    if (const io::Node* inputs = list_of(node, "inputs")) add_inputs(*inputs, arguments, tensors);
    if (const io::Node* outputs = list_of(node, "outputs")) add_outputs(*outputs, tensors);
    trace_.operators[id->integer] = std::move(tensors);
  }

  void add_inputs(const io::Node& inputs, const std::vector<SchemaArgument>& arguments, TracedTensors& tensors) {
    const bool overwrites = std::ranges::find(kOverwriting, tensors.name) != kOverwriting.end();
    for (std::size_t i = 0; i < inputs.items.size(); ++i) {
      const SchemaArgument argument = i < arguments.size() ? arguments[i] : SchemaArgument{!tensors.understood, false};
      if (!argument.written) {
        collect(inputs.items[i], tensors.reads);
      } else {
        collect(inputs.items[i], argument.is_out || overwrites ? tensors.writes : tensors.updates);
      }
    }
  }

  /// Outputs in the memory of an input are views of it, or what the schema tells anyway.
  void add_outputs(const io::Node& outputs, TracedTensors& tensors) {
    std::vector<TensorSpan> spans;
    collect(outputs, spans);
    for (const TensorSpan& span : spans) {
      const auto same = [&](const TensorSpan& other) { return other.storage == span.storage; };
      const bool known = std::ranges::any_of(tensors.reads, same) || std::ranges::any_of(tensors.writes, same) ||
                         std::ranges::any_of(tensors.updates, same);
      if (known) continue;
      tensors.allocated.push_back(span.storage);
      tensors.writes.push_back(span);
    }
  }

  /// Tensors of a value, which may be lists of lists: [tensor, storage, offset, elements, bytes each, device].
  void collect(const io::Node& value, std::vector<TensorSpan>& spans) {
    if (value.kind != io::NodeKind::kArray) return;
    const std::vector<io::Node>& items = value.items;
    const bool is_tensor = items.size() >= 6 && items[5].kind == io::NodeKind::kString &&
                           std::all_of(items.begin(), items.begin() + 5,
                                       [](const io::Node& n) { return n.kind == io::NodeKind::kInteger; });
    if (!is_tensor) {
      for (const io::Node& item : items) collect(item, spans);
      return;
    }
    constexpr std::int64_t kWidest = 1024;  // bytes of an element
    const std::int64_t each = items[4].integer;
    const auto sane = [](std::int64_t number, std::int64_t most) { return number >= 0 && number <= most; };
    if (!sane(items[1].integer, std::int64_t{1} << 60) || !sane(each, kWidest) ||
        !sane(items[2].integer, kMostBytes / kWidest) || !sane(items[3].integer, kMostBytes / kWidest)) {
      mistakes_.push_back(mistake_at(document_, value, "out-of-range", "a tensor of sizes that no memory has",
                                     "tensors are [id, storage, offset, elements, bytes each, device]"));
      return;
    }
    const TensorSpan span{items[1].integer, items[2].integer * each, items[3].integer * each};
    if (span.bytes > 0 && items[5].text.starts_with("cuda")) spans.push_back(span);
  }

  const io::Document& document_;
  Diagnostics mistakes_;
  ExecutionTrace trace_;
};

}  // namespace

Expected<ExecutionTrace> read_execution_trace(const io::Document& document) { return ExecutionReader(document).read(); }

}  // namespace tangram::kernels
