#include "tangram/io/limits.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace tangram;
using Json = nlohmann::json;

namespace {

Json schema_of(const std::string& kind) {
  std::ifstream file(std::string(TANGRAM_SCHEMAS) + "/" + kind + ".schema.json");
  REQUIRE(file);
  return Json::parse(file);
}

bool is_number_schema(const Json& schema) {
  if (!schema.is_object() || !schema.contains("type")) return false;
  const Json& type = schema["type"];
  const auto numeric = [](const Json& name) { return name == "integer" || name == "number"; };
  return type.is_array() ? std::any_of(type.begin(), type.end(), numeric) : numeric(type);
}

/// The key of the table for a number at a path of a schema.
std::string table_key(const std::string& kind, const std::vector<std::string>& path) {
  std::string name;
  bool of_node = false;
  for (const std::string& step : path) {
    of_node = of_node || step == "node";
    const bool word = step == "properties" || step == "items" || step == "oneOf" || step == "anyOf";
    const bool index = step.find_first_not_of("0123456789") == std::string::npos;
    if (word || index) continue;
    if (name == "peak_tflops") return name;
    name = step;
  }
  if ((name == "count" || name == "blocks") && kind == "model") return "layers";
  if (name == "count") return of_node ? "hosts" : "gpus";
  return name;
}

void compare_with_table(const std::string& kind, const Json& schema, std::vector<std::string>& path,
                        std::set<std::string>& seen) {
  if (is_number_schema(schema)) {
    const std::string key = table_key(kind, path);
    INFO(kind << ": " << key);
    const io::Limit* limit = io::find_limit(key);
    REQUIRE(limit != nullptr);
    seen.insert(key);
    const Json& low = limit->or_zero || schema.contains("anyOf") ? schema.at("anyOf").at(1) : schema;
    CHECK(low.at("minimum").get<double>() == limit->least);
    CHECK(schema.at("maximum").get<double>() == limit->most);
    if (limit->or_zero) CHECK(schema.at("anyOf").at(0).at("const") == 0);
  }
  if (!schema.is_structured()) return;
  for (const auto& [key, child] : schema.items()) {
    path.push_back(key);
    compare_with_table(kind, child, path, seen);
    path.pop_back();
  }
}

}  // namespace

TEST_CASE("limits: the schemas of fleets, models, profiles and timings say what the readers take") {
  std::set<std::string> seen;
  for (const char* kind : {"cluster", "model", "profile", "timings"}) {
    std::vector<std::string> path;
    compare_with_table(kind, schema_of(kind), path, seen);
  }
  CHECK(seen.size() > 60);
}

TEST_CASE("limits: keys are unique, and every limit has a reason") {
  std::set<std::string_view> keys;
  for (const io::Limit& limit : io::kLimits) {
    INFO(limit.key);
    CHECK(keys.insert(limit.key).second);
    CHECK(limit.least <= limit.most);
    CHECK_FALSE(limit.why.empty());
    CHECK(limit.or_zero == (limit.or_zero && limit.least > 0));
  }
  CHECK(io::find_limit("no-such-key") == nullptr);
}

TEST_CASE("limits: 0 is none where a limit says so") {
  constexpr io::NumberRange kPeak = io::number_limit("peak_tflops");
  CHECK(kPeak.or_zero);
  CHECK_FALSE(kPeak.is_low(0));
  CHECK(kPeak.is_low(1e-300));
  CHECK(kPeak.is_low(-1));
  CHECK_FALSE(kPeak.is_low(kPeak.min));
}
