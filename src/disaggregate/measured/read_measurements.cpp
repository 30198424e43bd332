#include <utility>

#include "tangram/disaggregate/measured.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/reader.hpp"
#include "tangram/io/schema.hpp"

namespace tangram::disaggregate {

namespace {

constexpr io::NumberRange kTokensPerSecond{1e-6, 1e12, false, false, "tokens that are generated in a second"};
constexpr io::NumberRange kMessageMicroseconds = io::number_limit("latency_us");
constexpr io::IntegerRange kTokens{1, 10'000'000, "no request is longer"};
constexpr io::IntegerRange kRequests{1, 65'536, "no micro-batch has more"};
constexpr std::int64_t kTokensInMemory = 1'000'000'000;
constexpr io::IntegerRange kInFlight{1, 1000, "micro-batches under way"};

std::vector<std::string> arm_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kArmCount; ++i) names.emplace_back(to_string(static_cast<ArmKind>(i)));
  return names;
}

MeasuredArm read_arm(io::ObjectReader& reader) {
  MeasuredArm arm;
  if (const auto kind = reader.choice_of("arm", arm_names())) {
    arm.kind = static_cast<ArmKind>(*kind);
    if (arm.kind == ArmKind::kOneGpu) arm.gpu = reader.string("gpu");
  } else {
    reader.ignore("gpu");
  }
  arm.in_flight = static_cast<int>(reader.integer_or("in_flight", arm.in_flight, kInFlight));
  arm.measured = reader.number("tokens_s", kTokensPerSecond);
  arm.published = reader.number_or("published_tokens_s", 0, kTokensPerSecond);
  reader.finish();
  return arm;
}

void read_kernels(io::ObjectReader& reader, ServingCase& of) {
  of.model = reader.string_or("model", "");
  of.graph = reader.string_or("graph", "");
  if (of.model.empty() != of.graph.empty()) return;
  reader.error_at(of.model.empty() ? "name" : "graph", "model-or-graph", "expected either \"model\" or \"graph\"",
                  "the kernels are made of a model, or were recorded");
}

ServingCase read_case(io::ObjectReader& reader) {
  constexpr double kMicrosecond = 1e-6;
  ServingCase of;
  of.name = reader.string("name");
  of.cluster = reader.string("cluster");
  read_kernels(reader, of);
  of.prompt = reader.integer("prompt_tokens", kTokens);
  of.generated = reader.integer("generated_tokens", kTokens);
  of.requests = reader.integer("requests", kRequests);
  if ((of.prompt + of.generated) * of.requests > kTokensInMemory) {
    reader.error_at("requests", "too-many-tokens", "these requests have more than a thousand million tokens",
                    "shorter prompts or fewer requests");
  }
  of.deployment.generated_tokens = static_cast<double>(of.generated);
  of.deployment.message_seconds = kMicrosecond * reader.number("message_us", kMessageMicroseconds);
  of.deployment.message_gpu_seconds = kMicrosecond * reader.number("message_gpu_us", kMessageMicroseconds);
  for (io::ObjectReader& row : reader.objects("rows")) of.arms.push_back(read_arm(row));
  reader.finish();
  return of;
}

}  // namespace

Expected<ServingMeasurements> read_serving_measurements(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  if (!reader.valid() || !io::has_schema(reader, "tangram.serving_measurements/1")) return fail(std::move(mistakes));
  ServingMeasurements measurements;
  measurements.source = reader.string("source");
  for (io::ObjectReader& of : reader.objects("cases")) measurements.cases.push_back(read_case(of));
  reader.finish();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return measurements;
}

}  // namespace tangram::disaggregate
