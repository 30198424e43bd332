#include "tangram/ptx/triton_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "tangram/io/document.hpp"
#include "tangram/io/json_lines.hpp"
#include "tangram/ptx/parse.hpp"

namespace tangram::ptx {

namespace {

/// Of the start and the end of allocations: no two overlap.
class Allocations {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second > begin) next = std::prev(next);
    while (next != ends_.end() && next->first < end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_[begin] = end;
  }

  /// What an address of one points to.
  [[nodiscard]] BufferArgument at(std::uint64_t address) const {
    const auto [begin, end] = *std::prev(ends_.upper_bound(address));
    BufferArgument argument;
    argument.name = fmt::format("{:#x}", begin);
    argument.bytes = static_cast<std::int64_t>(end - begin);
    argument.offset = static_cast<std::int64_t>(address - begin);
    return argument;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin
};

/// A kernel as Triton compiled it.
struct Compiled {
  int module = 0;
  std::string entry;
  std::int64_t threads = 0;        // of a block
  std::set<std::string> constant;  // positions of arguments that its PTX does not have
};

const io::Node* find(const io::Node* node, std::string_view key) {
  return node != nullptr && node->kind == io::NodeKind::kObject ? node->find(key) : nullptr;
}

std::string text_at(const io::Node* node, std::string_view key) {
  const io::Node* value = find(node, key);
  return value != nullptr && value->kind == io::NodeKind::kString ? value->text : "";
}

std::int64_t integer_at(const io::Node* node, std::string_view key, std::int64_t fallback) {
  const io::Node* value = find(node, key);
  return value != nullptr && value->kind == io::NodeKind::kInteger ? value->integer : fallback;
}

std::vector<std::int64_t> integers_at(const io::Node* node, std::string_view key) {
  std::vector<std::int64_t> integers;
  const io::Node* value = find(node, key);
  if (value == nullptr) return integers;
  for (const io::Node& item : value->items) integers.push_back(item.integer);
  return integers;
}

struct Tensor {
  std::uint64_t address = 0;
  std::uint64_t begin = 0;  // of what it is a view of
  std::uint64_t end = 0;
};

constexpr std::int64_t kMostElements = std::int64_t{1} << 46;  // beyond the memory of any machine
constexpr std::int64_t kWidestElement = 16;                    // bytes
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kMostThreads = 1024;  // of a block

/// From the first to the last; nothing where no memory holds them.
std::optional<std::int64_t> elements_spanned(const std::vector<std::int64_t>& shape,
                                             const std::vector<std::int64_t>& stride) {
  if (shape.size() != stride.size()) return std::nullopt;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t steps = std::max<std::int64_t>(1, shape[i]) - 1;
    if (stride[i] < 0 || (steps > 0 && stride[i] > (kMostElements - elements) / steps)) return std::nullopt;
    elements += steps * stride[i];
  }
  return elements;
}

std::optional<Tensor> tensor_of(const io::Node& argument) {
  const std::string pointer = text_at(&argument, "data_ptr");
  const auto shape = integers_at(&argument, "shape");
  const auto stride = integers_at(&argument, "stride");
  const std::int64_t element = integer_at(&argument, "element_size", 0);
  const std::int64_t offset = integer_at(&argument, "storage_offset", 0);
  Tensor tensor;
  const char* last = pointer.data() + pointer.size();
  const bool is_hexadecimal = pointer.starts_with("0x");
  if (!is_hexadecimal || std::from_chars(pointer.data() + 2, last, tensor.address, 16).ptr != last) return std::nullopt;
  if (element < 1 || element > kWidestElement || offset < 0 || offset > kMostElements) return std::nullopt;
  const auto elements = elements_spanned(shape, stride);
  if (!elements) return std::nullopt;
  const auto before = static_cast<std::uint64_t>(offset * element);
  if (before > tensor.address) return std::nullopt;
  tensor.begin = tensor.address - before;
  tensor.end = tensor.address + static_cast<std::uint64_t>(*elements * element);
  if (tensor.end < tensor.address) return std::nullopt;
  return tensor;
}

class TritonLogReader {
 public:
  explicit TritonLogReader(const std::string& file) : file_(file) {}

  void read(std::string_view text) {
    for (const auto& [number, one] : io::filled_lines(text)) {
      if (mistakes_.size() >= kMaxDiagnostics) return;
      line_ = number;
      read_event(std::string(one));
    }
  }

  Expected<TritonLog> result() && {
    if (log_.launches.empty() && mistakes_.empty()) {
      line_ = 0;
      complain("no-launches", "the log has no launches", "record with tritonparse's TRITON_TRACE_LAUNCH=1");
    }
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    for (std::size_t i = 0; i < log_.launches.size(); ++i) {
      for (const auto& [argument, address] : pointers_[i]) {
        log_.launches[i].launch.arguments[argument] = allocations_.at(address);
      }
    }
    return std::move(log_);
  }

 private:
  void complain(std::string code, std::string message, std::string hint) {
    Diagnostic mistake;
    mistake.code = std::move(code);
    mistake.where = {file_, line_, line_ > 0 ? 1 : 0};
    mistake.message = std::move(message);
    mistake.hint = std::move(hint);
    mistakes_.push_back(std::move(mistake));
  }

  void read_event(std::string text) {
    const auto document = io::parse_json(std::move(text), file_);
    if (!document) {
      for (Diagnostic mistake : document.error()) {
        mistake.where.line = line_;
        mistakes_.push_back(std::move(mistake));
      }
      return;
    }
    const std::string kind = text_at(&document->root, "event_type");
    if (kind == "compilation") read_compilation(document->root);
    if (kind == "launch") read_launch(document->root);
  }

  void read_compilation(const io::Node& event) {
    const io::Node* payload = find(&event, "payload");
    const io::Node* metadata = find(payload, "metadata");
    const io::Node* files = find(payload, "file_content");
    if (files == nullptr) return complain("no-ptx", "a compilation without its files", "the log is incomplete");
    const auto has_ptx = [](const io::Member& member) { return member.key.ends_with(".ptx"); };
    const auto ptx = std::ranges::find_if(files->members, has_ptx);
    if (ptx == files->members.end()) return;  // of another kind of GPU
    auto module = parse(ptx->value.text, ptx->key);
    if (!module) {
      return complain("bad-ptx", fmt::format("{}: {}", ptx->key, module.error().front().message),
                      "PTX as Triton's NVIDIA backend writes it");
    }
    Compiled compiled;
    compiled.module = static_cast<int>(log_.modules.size());
    compiled.entry = text_at(metadata, "name");
    compiled.threads = kWarp * std::clamp<std::int64_t>(integer_at(metadata, "num_warps", 0), 0, kMostThreads);
    if (const io::Node* constants = find(metadata, "src_constants"); constants != nullptr) {
      for (const io::Member& constant : constants->members) compiled.constant.insert(constant.key);
    }
    if (integer_at(metadata, "num_ctas", 1) > 1) {
      return complain("block-cluster", compiled.entry + " runs in clusters of blocks", "num_ctas above 1 is not known");
    }
    if (compiled.threads < 1 || compiled.threads > kMostThreads) {
      return complain("wrong-block", fmt::format("{} has {} threads in a block", compiled.entry, compiled.threads),
                      "num_warps of the metadata is 1 to 32");
    }
    log_.modules.push_back(std::move(*module));
    compiled_[text_at(metadata, "hash")] = std::move(compiled);
  }

  void read_launch(const io::Node& event) {
    const auto compiled = compiled_.find(text_at(find(&event, "compilation_metadata"), "hash"));
    if (compiled == compiled_.end()) {
      return complain("unknown-kernel", fmt::format("the log does not compile {}", text_at(&event, "name")),
                      "it was in Triton's cache: record with an empty TRITON_CACHE_DIR");
    }
    const Compiled& of = compiled->second;
    RecordedLaunch recorded;
    recorded.line = line_;
    recorded.module = of.module;
    recorded.launch.entry = of.entry;
    recorded.launch.block = {of.threads, 1, 1};
    const auto grid = integers_at(&event, "grid");
    if (grid.empty() || grid.size() > recorded.launch.grid.size() || std::ranges::min(grid) < 1) {
      return complain("wrong-grid", fmt::format("{}: \"grid\" is one to three whole numbers from 1 on", of.entry),
                      "as in [4, 1, 1]");
    }
    std::ranges::copy(grid, recorded.launch.grid.begin());
    std::vector<std::pair<std::size_t, std::uint64_t>> pointers;
    if (!read_arguments(event, of, recorded.launch, pointers)) return;
    log_.launches.push_back(std::move(recorded));
    pointers_.push_back(std::move(pointers));
  }

  bool read_arguments(const io::Node& event, const Compiled& of, Launch& launch,
                      std::vector<std::pair<std::size_t, std::uint64_t>>& pointers) {
    const io::Node* arguments = find(&event, "extracted_args");
    const std::size_t count = arguments == nullptr ? 0 : arguments->members.size();
    for (std::size_t i = 0; i < count; ++i) {
      const io::Member& argument = arguments->members[i];
      if (of.constant.contains(fmt::format("({},)", i))) continue;
      if (const auto tensor = tensor_of(argument.value)) {
        allocations_.add(tensor->begin, tensor->end);
        pointers.emplace_back(launch.arguments.size(), tensor->address);
        launch.arguments.emplace_back(std::int64_t{0});
      } else if (const auto scalar = scalar_of(argument.value)) {
        launch.arguments.emplace_back(*scalar);
      } else {
        complain("unknown-argument",
                 fmt::format("{}: argument {} is {}", of.entry, argument.key, text_at(&argument.value, "type")),
                 "tensors with their addresses, and numbers are known");
        return false;
      }
    }
    return add_scratch(of, launch);
  }

  /// Booleans are numbers; floats are their bits: no range depends on them.
  static std::optional<std::int64_t> scalar_of(const io::Node& argument) {
    const io::Node* value = find(&argument, "value");
    if (value == nullptr) return std::nullopt;
    if (value->kind == io::NodeKind::kInteger) return value->integer;
    if (value->kind == io::NodeKind::kBoolean) return value->boolean ? 1 : 0;
    if (value->kind == io::NodeKind::kNumber) return std::bit_cast<std::int32_t>(static_cast<float>(value->number));
    return std::nullopt;
  }

  bool add_scratch(const Compiled& of, Launch& launch) {
    constexpr std::size_t kMostScratch = 2;  // global scratch, and that of profiles
    const Function* entry = log_.modules[static_cast<std::size_t>(of.module)].find(of.entry);
    const std::size_t parameters = entry == nullptr ? 0 : static_cast<std::size_t>(entry->parameters);
    if (launch.arguments.size() > parameters || launch.arguments.size() + kMostScratch < parameters) {
      complain("argument-count",
               fmt::format("{} is launched with {} arguments, its PTX has {} parameters", of.entry,
                           launch.arguments.size(), parameters),
               "the log must have the metadata of the compilation (src_constants)");
      return false;
    }
    launch.arguments.resize(parameters, std::int64_t{0});
    return true;
  }

  const std::string& file_;
  int line_ = 0;
  TritonLog log_;
  Allocations allocations_;
  std::map<std::string, Compiled> compiled_;                                  // by hash
  std::vector<std::vector<std::pair<std::size_t, std::uint64_t>>> pointers_;  // by launch: argument, address
  Diagnostics mistakes_;
};

}  // namespace

bool is_triton_log(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with('{') && line.find("\"event_type\"") != std::string_view::npos;
}

Expected<TritonLog> read_triton_log(const std::string& text, const std::string& file) {
  TritonLogReader reader(file);
  reader.read(text);
  return std::move(reader).result();
}

}  // namespace tangram::ptx
