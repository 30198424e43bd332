// The schema of the launch plan says what records.hpp says. It may say more: descriptions, and limits that are meant
// for people who write plans.
#include <fstream>

#include "records.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::plan;

namespace {

/// Limits beyond this keep arithmetic safe, and are the program's own.
constexpr double kLargestTold = 16;

Json typed(const char* type) { return Json{{"type", type}}; }

Json integer_schema(const io::IntegerRange& range) {
  Json out = typed("integer");
  out["minimum"] = range.min;
  if (range.max < static_cast<std::int64_t>(kLargestTold)) out["maximum"] = range.max;
  return out;
}

Json number_schema(const io::NumberRange& range) {
  Json out = typed("number");
  if (std::isfinite(range.min)) out[range.min_open ? "exclusiveMinimum" : "minimum"] = range.min;
  if (range.max < kLargestTold) out["maximum"] = range.max;
  return out;
}

Json array_schema(Json items, int least = 0) {
  Json out = typed("array");
  out["items"] = std::move(items);
  if (least > 0) out["minItems"] = least;
  return out;
}

/// Visits a record as FieldWriter does, and makes the JSON Schema of what FieldReader takes.
class FieldSchema {
 public:
  static constexpr bool kReads = false;

  template <class Function>
  static Json of(Function describe) {
    FieldSchema inner;
    describe(inner);
    return inner.schema_;
  }

  void text(std::string_view key, std::string_view) { need(key, typed("string")); }
  void text_or(std::string_view key, std::string_view) { allow(key, typed("string")); }
  void text_if(std::string_view key, std::string_view) { allow(key, typed("string")); }
  template <class T>
  void integer(std::string_view key, const T&, const io::IntegerRange& range) {
    need(key, integer_schema(range));
  }
  void index(std::string_view key, int, std::int64_t) { need(key, integer_schema({0})); }
  template <class T>
  void element(std::string_view key, const T&, const std::vector<T>&) {
    need(key, integer_schema({0}));
  }
  void identifier(std::string_view key, int, std::size_t) { need(key, integer_schema({0})); }
  template <class T>
  void number(std::string_view key, const T&, const io::NumberRange& range = {}) {
    need(key, number_schema(range));
  }
  template <class T>
  void number_if(std::string_view key, const T&, const io::NumberRange& range) {
    allow(key, number_schema(range));
  }
  void boolean(std::string_view key, bool) { need(key, typed("boolean")); }
  void boolean_or(std::string_view key, bool) { allow(key, typed("boolean")); }
  void milliseconds(std::string_view key, Nanoseconds) { need(key, number_schema({0.0})); }
  void milliseconds_if(std::string_view key, Nanoseconds) { allow(key, number_schema({0.0})); }
  void seconds(std::string_view key, Nanoseconds) { need(key, number_schema({0.0})); }
  void bytes(std::string_view key, Bytes) { need(key, integer_schema({0})); }
  template <class E>
  void choice(std::string_view key, E, io::Choices<E> choices, std::string_view = {}) {
    Json out = typed("string");
    for (const auto& [name, value] : choices) out["enum"].push_back(std::string(name));
    need(key, std::move(out));
  }
  template <class E, class Row>
  void row(std::string_view key, E, std::span<const Row> rows, E Row::*) {
    Json out = typed("string");
    for (const Row& each : rows) out["enum"].push_back(std::string(each.name));
    need(key, std::move(out));
  }
  void strings(std::string_view key, const std::vector<std::string>&) { allow(key, array_schema(typed("string"))); }
  void integers(std::string_view key, const std::vector<int>&, std::int64_t) {
    need(key, array_schema(integer_schema({0})));
  }
  template <class T>
  void range(std::string_view key, T, T, std::int64_t) {
    Json out = array_schema(integer_schema({0}), 2);
    out["maxItems"] = 2;
    need(key, std::move(out));
  }
  template <class Range>
  void ranges(std::string_view key, const std::vector<Range>&, std::int64_t) {
    Json range = array_schema(integer_schema({0}), 2);
    range["maxItems"] = 2;
    need(key, array_schema(std::move(range), 1));
  }
  /// Texts, and counts of what there is at least one of.
  template <class Function>
  void repeats(std::string_view key, Function value) {
    need(key, std::is_integral_v<decltype(value())> ? integer_schema({1}) : typed("string"));
  }
  [[nodiscard]] bool has(std::string_view key, bool) {
    optional_ = key;
    return true;
  }
  void check(bool, std::string_view, const char*, const std::string&) const {}
  template <class Function>
  void object(std::string_view key, Function describe) {
    need(key, of(describe));
  }
  template <class T, class Function>
  void object_if(std::string_view key, const std::optional<T>&, Function describe) {
    const T value;
    allow(key, of([&](FieldSchema& io) { describe(io, value); }));
  }
  template <class T, class Function>
  void records(std::string_view key, const std::vector<T>&, Presence presence, Function describe) {
    const bool some = presence == Presence::kSome;
    const T value;
    Json out = array_schema(of([&](FieldSchema& io) { describe(io, value, std::size_t{0}); }), some ? 1 : 0);
    some ? need(key, std::move(out)) : allow(key, std::move(out));
  }
  template <class T>
  void texts(std::string_view key, const std::vector<T>&, std::string T::*, std::string T::*) {
    allow(key, Json{{"type", "object"}, {"additionalProperties", typed("string")}});
  }
  void embedded(std::string_view key, const std::string&) { allow(key, Json{{"type", {"object", "string"}}}); }
  void embedded_if(std::string_view key, const std::string& text) { embedded(key, text); }

 private:
  void allow(std::string_view key, Json schema) { schema_["properties"][std::string(key)] = std::move(schema); }
  void need(std::string_view key, Json schema) {
    if (key != optional_) schema_["required"].push_back(std::string(key));
    allow(key, std::move(schema));
  }

  Json schema_ = {
      {"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}, {"additionalProperties", false}};
  std::string_view optional_;
};

template <class T, class... Context>
Json record_schema(const Context&... context) {
  const T value;
  return FieldSchema::of([&](FieldSchema& io) { fields(io, value, context...); });
}

/// What the file does not say of what the records say, one line each.
class Comparison {
 public:
  explicit Comparison(const Json& root) : root_(&root) {}

  void compare(const std::string& place, const Json& wanted, const Json& said) {
    if (said.contains("$ref")) return compare(place, wanted, (*root_)["$defs"]["link"]);
    for (const auto& [key, value] : wanted.items()) {
      if (key == "properties") {
        compare_properties(place, value, said.value(key, Json::object()));
      } else if (key == "required") {
        for (const Json& name : value) expect(holds(said.value(key, Json::array()), name), place, "requires", name);
      } else if (key == "items") {
        compare(place + "[]", value, said.value(key, Json::object()));
      } else {
        expect(said.contains(key) && said[key] == value, place, key, value);
      }
    }
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  static bool holds(const Json& list, const Json& name) { return std::ranges::find(list, name) != list.end(); }

  void compare_properties(const std::string& place, const Json& wanted, const Json& said) {
    for (const auto& [name, schema] : wanted.items()) {
      compare(place + "/" + name, schema, said.value(name, Json::object()));
    }
    for (const auto& [name, schema] : said.items()) expect(wanted.contains(name), place, "has no", name);
  }

  void expect(bool ok, const std::string& place, const std::string& what, const Json& value) {
    if (!ok) missing_ += place + ": " + what + " " + value.dump() + "\n";
  }

  const Json* root_;
  std::string missing_;
};

LaunchPlan plan_of_one_pipeline() {
  LaunchPlan plan;
  plan.pipelines.resize(1);
  return plan;
}

}  // namespace

TEST_CASE("the schema of the launch plan says what its records say") {
  std::ifstream file(std::string(TANGRAM_SOURCE_DIR) + "/configs/schemas/launch_plan.schema.json");
  const Json schema = Json::parse(file);
  const Json& said = schema["properties"];
  const References known;
  const std::size_t first = 0;
  const LaunchPlan plan = plan_of_one_pipeline();
  const Json batch = FieldSchema::of([&](FieldSchema& io) { batch_fields(io, plan); });

  Comparison comparison(schema);
  comparison.compare("provenance", record_schema<PlanProvenance>(), said["provenance"]);
  comparison.compare("batch", batch, said["batch"]);
  comparison.compare("predicted", record_schema<Predicted>(known), said["predicted"]);
  comparison.compare("targets", record_schema<TargetVerdict>(known), said["targets"]["additionalProperties"]);
  comparison.compare("gpu_types", record_schema<cluster::GpuType>(), said["gpu_types"]["items"]);
  comparison.compare("islands", record_schema<PlanIsland>(known, first), said["islands"]["items"]);
  comparison.compare("pipelines", record_schema<Pipeline>(known, first), said["pipelines"]["items"]);
  comparison.compare("stages", record_schema<Stage>(known, first), said["stages"]["items"]);
  comparison.compare("boundaries", record_schema<Boundary>(known, first), said["boundaries"]["items"]);
  comparison.compare("ranks", record_schema<Rank>(known, first), said["ranks"]["items"]);
  comparison.compare("idle", record_schema<IdleGpus>(known, first), said["idle"]["items"]);
  CHECK(comparison.missing() == "");
}
