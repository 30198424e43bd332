// Operator profiles in Aceso's format, as Sailor's baselines and Mist ship them: one line an operator of one block
// ("enc-..."), the embedding, and what makes the head ("final-layernorm", "gpt-post-process"):
//   op_name,forward-compute,backward-compute,input_size,output_size,weights,activations,fwd_reserved,bwd_reserved
// Times are microseconds, sizes MB. The script behind most of these files times the gradient of an operator's input and
// not of its weights; see detect.hpp. At tp > 1 the products after which ranks exchange (attention-dense, MLP-GEMM-2)
// may hold the all-reduce, so that their weight gradient is taken from the product before them of as many FLOPs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "reading.hpp"
#include "sailor.hpp"

namespace tangram::profiles {
namespace {

constexpr std::size_t kColumns = 9;
/// A product's backward is at most a few times its forward, either way; a first call that loads kernels takes 100
/// times.
constexpr double kColdCall = 20;

struct Operator {
  double forward = 0;
  double backward = 0;
  double weights = 0;
  double activations = 0;
};

using Operators = std::map<std::string, Operator>;

struct FileName {
  std::string model;
  int samples = 0;
  int tp = 0;
  int algorithm = 0;
};

std::optional<FileName> parse_name(const std::string& path) {
  const std::string name = file_name(path);
  const std::size_t at = name.find("_mbs");
  const auto samples = text_between(name, "_mbs", "_tp");
  const auto tp = text_between(name, "_tp", "_algo");
  const auto algorithm = text_between(name, "_algo", ".csv");
  if (at == std::string::npos || !samples || !tp || !algorithm) return std::nullopt;
  const auto b = whole_number(*samples);
  const auto t = whole_number(*tp);
  const auto a = whole_number(*algorithm);
  if (!b || !t || !a || *b < 1 || *t < 1) return std::nullopt;
  return FileName{name.substr(0, at), *b, *t, *a};
}

Expected<Operators> read_operators(const SourceFile& file) {
  Operators operators;
  const std::vector<std::string> lines = lines_of(file.text);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::vector<std::string> cells = split(lines[i], ',');
    std::vector<double> values;
    for (std::size_t c = 1; c < cells.size(); ++c) {
      if (const auto value = number(cells[c])) values.push_back(*value);
    }
    if (cells.size() != kColumns || values.size() != kColumns - 1) {
      return fail(error_in(file.path, file.text, static_cast<int>(i) + 1, "wrong-type",
                           "expected an operator's name and eight numbers"));
    }
    operators[cells[0]] = {values[0], values[1], values[4], values[5]};
  }
  return operators;
}

bool has_weights(const std::string& name) {
  return name.ends_with("attention-qkv") || name.ends_with("attention-dense") ||
         name.find("MLP-GEMM") != std::string::npos;
}

class OperatorImport {
 public:
  OperatorImport(const SourceFile& file, const FileName& name, const Operators& operators, const Dimensions& dimensions,
                 Context& context)
      : file_(file), name_(name), operators_(operators), dimensions_(dimensions), context_(context) {}

  void run(RawProfile& raw) {
    if (cold_call()) return;
    const double mib = size_scale();
    if (!(mib > 0)) return;
    for (RawRow& row : std::vector<RawRow>{block(mib), head(), embedding()}) {
      if (row.samples > 0) raw.rows.push_back(std::move(row));
    }
  }

 private:
  [[nodiscard]] RawRow row(cost::ProfileKind kind) const {
    RawRow out;
    out.kind = kind;
    out.sequence_length = dimensions_.sequence_length;
    out.tp = name_.tp;
    out.samples = name_.samples;
    out.file = file_.path;
    return out;
  }

  [[nodiscard]] RawRow block(double mib) const {
    RawRow out = row(cost::ProfileKind::kBlock);
    for (const auto& [name, op] : operators_) {
      if (!name.starts_with("enc-")) continue;
      out.forward += op.forward;
      out.backward += op.backward;
      out.activation += op.activations * mib;
      if (!has_weights(name)) continue;
      out.weight_forward += op.forward;
      out.weight_backward += op.backward;
      out.weight_gradient += weight_gradient(name, op.forward);
    }
    return out;
  }

  /// Of as many FLOPs as the forward product, without the all-reduce that may be in it.
  [[nodiscard]] double weight_gradient(const std::string& name, double forward) const {
    const auto forward_of = [&](const char* other, double share) {
      const auto found = operators_.find(other);
      return found == operators_.end() ? forward : std::min(forward, share * found->second.forward);
    };
    if (name_.tp == 1) return forward;
    if (name == "enc-MLP-GEMM-2") return forward_of("enc-MLP-GEMM-1", 1);
    if (name == "enc-attention-dense") return forward_of("enc-attention-qkv", 1.0 / 3);  // h to h against h to 3 h
    return forward;
  }

  [[nodiscard]] RawRow head() const {
    RawRow out = row(cost::ProfileKind::kHead);
    for (const char* name : {"final-layernorm", "gpt-post-process"}) {
      const auto found = operators_.find(name);
      if (found == operators_.end()) {
        out.samples = 0;  // half a head is none
        return out;
      }
      out.forward += found->second.forward;
      out.backward += found->second.backward;
    }
    out.weight_gradient = operators_.at("gpt-post-process").forward;
    return out;
  }

  [[nodiscard]] RawRow embedding() const {
    RawRow out = row(cost::ProfileKind::kEmbedding);
    const auto found = operators_.find("encoder-embedding");
    out.samples = found == operators_.end() ? 0 : out.samples;
    if (found != operators_.end()) {
      out.forward = found->second.forward;
      out.backward = found->second.backward;
    }
    return out;
  }

  /// The first operators that run may have loaded the library inside their time.
  [[nodiscard]] bool cold_call() const {
    for (const auto& [name, op] : operators_) {
      if (!has_weights(name) || op.forward <= kColdCall * op.backward) continue;
      context_.notes.left_out("outlier", file_.path,
                              fmt::format("{} takes {:.0f} us forward and {:.0f} backward: a first call that loaded "
                                          "kernels?",
                                          name, op.forward, op.backward));
      return true;
    }
    return false;
  }

  /// Bytes of the files' "MB", from the weights they give to a block, which are known.
  [[nodiscard]] double size_scale() const {
    double weights = 0;
    for (const auto& [name, op] : operators_) weights += has_weights(name) ? op.weights : 0;
    const auto parameters = model::parameters(dimensions_.block);
    const auto sharded = static_cast<double>(parameters.attention + parameters.feed_forward);
    const auto element = static_cast<double>(std::max<std::int64_t>(2, bytes_of(dimensions_.dtype)));
    const auto unit = size_unit(weights, sharded * element / name_.tp, element);
    if (!unit) {
      context_.notes.left_out(
          "other-model", file_.path,
          fmt::format("{:g} MB of weights in a block; the dimensions make {:.4g} MiB in {}", weights,
                      sharded * element / name_.tp / (1 << 20), to_string(dimensions_.dtype)));
      return 0;
    }
    if (unit->name != "MB") {
      context_.notes.detected(
          "size-unit", file_.path,
          fmt::format("sizes called MB are {}: that is what the weights of a block make", unit->name));
    }
    return unit->scale;
  }

  const SourceFile& file_;
  const FileName& name_;
  const Operators& operators_;
  const Dimensions& dimensions_;
  Context& context_;
};

}  // namespace

void import_operators(const SourceFile& file, SailorModels& models, OperatorProfiles& profiles, Context& context) {
  const auto name = parse_name(file.path);
  if (!name) {
    return context.add_file_error(file.path, "unknown-value", "the name does not say model, samples and tp",
                                  "files are named MODEL_mbs1_tp2_algo0.csv");
  }
  if (name->algorithm != 0) {
    return context.notes.left_out("algorithm", file.path, "another way to shard the same operators; algo0 counts");
  }
  const auto* device = context.gpu(folder_above(file.path, 2), file.path);
  if (device == nullptr) return;
  auto dimensions = models.dimensions(name->model, file.path, context);
  const auto operators = read_operators(file);
  if (!operators) return context.add_error(operators.error());
  if (!dimensions || !models.agrees(name->model, *dimensions, file.path, context)) return;
  if (folder_above(file.path).ends_with("fp16")) dimensions->dtype = DType::kFp16;
  RawProfile& raw = profiles[{device->name, name->model, dimensions->dtype}];
  raw.gpu = device->name;
  raw.dimensions = *dimensions;
  raw.source = fmt::format("Aceso's operator profiler (as in github.com/eth-easl/sailor), {}", name->model);
  raw.unit = kMicroseconds;
  OperatorImport(file, *name, *operators, *dimensions, context).run(raw);
}

}  // namespace tangram::profiles
