#include "claims.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "messages.hpp"
#include "recheck.hpp"
#include "tangram/base/at.hpp"

namespace tangram::parallelizer {
namespace {

using Json = nlohmann::json;

constexpr int kMostGpus = 1 << 20;
constexpr double kMostNanosecondsOrBytes = 9.0e18;  // what 63 bits hold

tl::unexpected<Rejection> reject(std::string code, std::string message) {
  return tl::unexpected<Rejection>({std::move(code), std::move(message)});
}

const Json* member_if_object(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// A whole number within [least, most]; `otherwise` where nothing is said.
Judged<int> whole(const Json& object, const char* key, int least, int most, int otherwise) {
  const Json* value = member_if_object(object, key);
  if (value == nullptr) return otherwise;
  if (!value->is_number_integer()) {
    return reject("malformed", fmt::format("{} is {}, not a whole number", key, excerpt(value->dump())));
  }
  const auto number = value->get<std::int64_t>();
  if (number < least || number > most) {
    return reject("malformed", fmt::format("{} is {}, not within {} and {}", key, value->dump(), least, most));
  }
  return static_cast<int>(number);
}

Judged<std::optional<double>> claim(const Json& object, const char* key) {
  const Json* value = member_if_object(object, key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_number()) {
    return reject("malformed", fmt::format("{} is {}, not a number", key, excerpt(value->dump())));
  }
  const double number = value->get<double>();
  if (!std::isfinite(number) || number > kMostNanosecondsOrBytes) {
    return reject("malformed", fmt::format("{} is {}, out of all range", key, excerpt(value->dump())));
  }
  if (number < 0) return reject("negative", fmt::format("{} is {}", key, excerpt(value->dump())));
  return number;
}

Judged<Claims> read_claims(const Json& stage) {
  Claims claims;
  const std::pair<const char*, std::optional<double>*> fields[] = {
      {"forward_ns", &claims.forward},
      {"backward_ns", &claims.backward},
      {"static_bytes", &claims.static_memory},
      {"transient_bytes", &claims.transient},
      {"activation_bytes_per_in_flight", &claims.activation},
  };
  for (const auto& [key, target] : fields) {
    auto read = claim(stage, key);
    if (!read) return tl::unexpected(read.error());
    *target = *read;
  }
  for (const char* key : {"gradient_sync_ns", "optimizer_step_ns"}) {  // recomputed, but no nonsense either
    if (auto read = claim(stage, key); !read) return tl::unexpected(read.error());
  }
  return claims;
}

Judged<cost::Degrees> read_degrees(const Json& stage) {
  const Json* object = member_if_object(stage, "degrees");
  if (object == nullptr || !object->is_object()) return reject("malformed", "a stage without \"degrees\"");
  cost::Degrees degrees;
  const std::pair<const char*, int*> fields[] = {{"tp", &degrees.tp},   {"cp", &degrees.cp},
                                                 {"dp", &degrees.dp},   {"ep", &degrees.ep},
                                                 {"etp", &degrees.etp}, {"dp_replicate", &degrees.dp_replicate}};
  for (const auto& [key, target] : fields) {
    const auto read = whole(*object, key, 1, kMostGpus, 1);
    if (!read) return tl::unexpected(read.error());
    *target = *read;
  }
  if (const Json* sp = member_if_object(*object, "sequence_parallel")) {
    if (!sp->is_boolean()) return reject("malformed", "sequence_parallel is neither true nor false");
    degrees.sequence_parallel = sp->get<bool>();
  }
  return degrees;
}

Judged<cost::MemoryPolicy> read_policy(const Json& stage, int blocks) {
  cost::MemoryPolicy policy;
  const auto zero = whole(stage, "zero", 0, 3, 0);
  if (!zero) return tl::unexpected(zero.error());
  policy.zero = *zero;
  const Json* recompute = member_if_object(stage, "recompute");
  if (recompute == nullptr || recompute->is_null()) return policy;
  const Json* mode = member_if_object(*recompute, "mode");
  if (mode == nullptr || !mode->is_string()) return reject("malformed", "recompute without a \"mode\"");
  const auto name = mode->get<std::string>();
  if (name == "none") return policy;
  if (name == "selective") {
    policy.recompute = cost::RecomputeMode::kSelective;
    return policy;
  }
  if (name != "full") return reject("malformed", fmt::format("recompute mode \"{}\"", excerpt(name)));
  const auto layers = whole(*recompute, "layers", 1, blocks, blocks);
  if (!layers) return tl::unexpected(layers.error());
  policy.recompute = cost::RecomputeMode::kFull;
  policy.recompute_layers = *layers;
  return policy;
}

std::string blocks_text(const model::Model& model, const model::SliceSignature& slice) {
  std::string text;
  for (const auto& [type, count] : slice.runs) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} x {}", count, at(model.types, type).name);
  }
  return text;
}

/// A count of blocks, or runs like those of the query.
bool are_of_slice(const Json& blocks, const model::Model& model, const model::SliceSignature& slice) {
  if (blocks.is_number_integer()) return blocks == Json(slice.block_count());
  if (!blocks.is_array() || blocks.size() != slice.runs.size()) return false;
  for (std::size_t i = 0; i < slice.runs.size(); ++i) {
    const auto& [type, count] = slice.runs[i];
    const Json* name = member_if_object(blocks[i], "type");
    const Json* number = member_if_object(blocks[i], "count");
    if (name == nullptr || *name != Json(at(model.types, type).name)) return false;
    if (number == nullptr || *number != Json(count)) return false;
  }
  return true;
}

Judged<std::string> read_opaque(const Json& stage) {
  const Json* strategy = member_if_object(stage, "strategy");
  if (strategy == nullptr) return std::string();
  std::string text = strategy->is_string() ? strategy->get<std::string>()
                                           : strategy->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLongestOpaque) return reject("malformed", "\"strategy\" is longer than 1 MiB");
  return text;
}

}  // namespace

Judged<ClaimedPlan> read_claimed_plan(const Json& plan, const model::Model& model, const model::SliceSignature& slice) {
  const Json* stages = member_if_object(plan, "stages");
  if (stages == nullptr || !stages->is_array() || stages->empty()) return reject("malformed", "a plan without stages");
  if (stages->size() > 1) {
    return reject("several-stages", fmt::format("{} inner stages: pipelines are built by the host", stages->size()));
  }
  const Json& stage = stages->front();
  if (const Json* blocks = member_if_object(stage, "blocks");
      blocks == nullptr || !are_of_slice(*blocks, model, slice)) {
    return reject("wrong-blocks",
                  fmt::format("its blocks are {}, asked was {}",
                              blocks == nullptr ? "not said" : excerpt(blocks->dump()), blocks_text(model, slice)));
  }
  auto degrees = read_degrees(stage);
  if (!degrees) return tl::unexpected(degrees.error());
  auto policy = read_policy(stage, slice.block_count());
  if (!policy) return tl::unexpected(policy.error());
  auto claims = read_claims(stage);
  if (!claims) return tl::unexpected(claims.error());
  auto opaque = read_opaque(stage);
  if (!opaque) return tl::unexpected(opaque.error());
  return ClaimedPlan{{*degrees, *policy}, *claims, std::move(*opaque)};
}

}  // namespace tangram::parallelizer
