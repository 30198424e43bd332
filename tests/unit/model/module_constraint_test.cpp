// What a job fixes of modules: read, looked up, written, and part of their blocks.
#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

const std::string kLlava = "configs/models/llava-1.5-7b.yaml";

std::vector<NamedConstraint> constraints_in(const std::vector<std::string>& words) {
  auto read = read_constraints(words);
  REQUIRE(read);
  return *std::move(read);
}

Expected<Model> constrained(const std::vector<std::string>& words) {
  const std::string path = source_path(kLlava);
  JobOverrides overrides;
  overrides.constraints = constraints_in(words);
  return read_model(content(path), path, overrides);
}

std::string mistake_in(const std::vector<std::string>& words) {
  const auto read = read_constraints(words);
  REQUIRE_FALSE(read);
  return read.error().front().message;
}

Expected<Model> with_constraints(const std::string& constraints) {
  return read_model(R"({"schema": "tangram.model/1", "name": "m", "architecture": {"vocabulary": 256, "hidden": 64,
    "layers": 2, "heads": 4, "ffn_hidden": 128, "encoders": [{"name": "vision", "hidden": 32, "layers": 1, "heads": 4,
    "ffn_hidden": 64, "tokens_in": 4}]}, "training": {"sequence_length": 32, "global_batch_samples": 4, "constraints": )" +
                        constraints + "}}",
                    "model.json");
}

}  // namespace

TEST_CASE("constraints of modules: words") {
  const auto read = constraints_in({"vision:tp=2", "gpus=A100+L40S", "language:cp=4", "ep=8"});
  REQUIRE(read.size() == 2);
  CHECK(read[0].module == "vision");
  CHECK(read[0].constraint == ModuleConstraint{2, 0, 0, {"A100", "L40S"}});
  CHECK(to_string(read[0].constraint) == "tp 2 on A100 or L40S");
  CHECK(to_string(read[1].constraint) == "cp 4 ep 8");
  CHECK(constraints_in({}).empty());

  CHECK(mistake_in({"tp=2"}) == "\"tp=2\" is of no module");
  CHECK(mistake_in({"vision:tp"}) == "\"tp\" has no \"=\"");
  CHECK(mistake_in({"vision:dp=2"}) == "nothing called \"dp\" can be fixed of a module");
  for (const char* degree : {"0", "-1", "x", "", "2.5", "65537", "99999999999"}) {
    CHECK(mistake_in({std::string("vision:tp=") + degree}) == "tp \"" + std::string(degree) + "\" is no degree");
  }
  CHECK(mistake_in({"vision:gpus=A100+"}) == "a GPU type has no name");
}

TEST_CASE("constraints of modules: GPU types by their names or what these begin with") {
  CHECK(names_gpu_type("A100", "A100-80GB-SXM"));
  CHECK(names_gpu_type("A100-80GB", "A100-80GB-SXM"));
  CHECK(names_gpu_type("A100-80GB-SXM", "A100-80GB-SXM"));
  CHECK_FALSE(names_gpu_type("A10", "A100-80GB-SXM"));
  CHECK_FALSE(names_gpu_type("A100-80GB-SXM4", "A100-80GB-SXM"));
  CHECK(ModuleConstraint{}.allows("H100"));
  CHECK_FALSE(ModuleConstraint{0, 0, 0, {"A100"}}.allows("H100"));
}

TEST_CASE("constraints of modules: blocks have them, and a model is read as it was written") {
  const Model model = valid(constrained({"vision:tp=2", "gpus=A100", "language:tp=4"}));
  CHECK(model.block(0).constraint == ModuleConstraint{2, 0, 0, {"A100"}});
  CHECK(model.block(23).constraint.tp == 2);
  CHECK(model.block(24).constraint.tp == 4);
  CHECK(constraints(model.graph).size() == 2);
  const Model again = valid(read_model(write_model(model), "model.json"));
  CHECK(again.graph == model.graph);
  CHECK(again.types == model.types);
  CHECK(plain(model.block(24)).constraint == ModuleConstraint{});
}

TEST_CASE("constraints of modules: in a model file, of a model without modules, too") {
  const Model model = valid(with_constraints(R"({"vision": {"tp": 2, "gpus": "A100"}, "language": {"cp": 2}})"));
  CHECK(model.block(0).constraint == ModuleConstraint{2, 0, 0, {"A100"}});
  CHECK(model.block(1).constraint == ModuleConstraint{0, 2, 0, {}});

  const std::string dense = source_path("configs/models/llama-3-8b.yaml");
  JobOverrides overrides;
  overrides.constraints = {{"language", {8, 0, 0, {}}}};
  const Model text = valid(read_model(content(dense), dense, overrides));
  CHECK(text.block(0).constraint.tp == 8);
  CHECK(valid(read_model(write_model(text), "model.json")).types == text.types);
}

TEST_CASE("constraints of modules: mistakes have their place") {
  const auto unknown = with_constraints(R"({"visoin": {"tp": 2}})");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().front().message.find("no module is called \"visoin\"") != std::string::npos);
  CHECK(unknown.error().front().hint == "did you mean \"vision\"?");
  CHECK(unknown.error().front().where.line > 0);
  CHECK_FALSE(with_constraints(R"({"vision": {"tp": 0}})"));
  CHECK_FALSE(with_constraints(R"({"vision": {"dp": 2}})"));
  CHECK_FALSE(constrained({"audio:tp=2"}));
}
