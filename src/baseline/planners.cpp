#include "planners.hpp"

#include <array>

namespace tangram::baseline {

namespace {

constexpr std::array<std::string_view, 5> kNames{"megatron", "amp", "metis", "sailor", "flashflex"};

}  // namespace

std::string_view to_string(Mode mode) { return mode == Mode::kFaithful ? "faithful" : "repaired"; }

std::string_view to_string(Label label) {
  switch (label) {
    case Label::kOk: return "ok";
    case Label::kMisCosted: return "mis-costed";
    case Label::kOutOfMemory: return "out of memory";
    case Label::kLayersMissing: return "layers missing";
    case Label::kStageEmpty: return "stage empty";
    case Label::kOtherBatch: return "other batch";
    case Label::kInexpressible: return "not expressible";
  }
  return "ok";
}

std::span<const std::string_view> planner_names() { return kNames; }

std::unique_ptr<BaselinePlanner> make_planner(std::string_view name) {
  if (name == "megatron") return make_megatron();
  if (name == "amp") return make_amp();
  if (name == "metis") return make_metis();
  if (name == "sailor") return make_sailor();
  if (name == "flashflex") return make_flashflex();
  return nullptr;
}

}  // namespace tangram::baseline
