#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer.hpp"
#include "reason.hpp"

namespace tangram::accuracy {

/// Generated from configs/models: Hugging Face configs and model files that stand by themselves.
std::vector<std::pair<std::string_view, std::string_view>> known_models();

namespace {

/// "LLAMA3.1_405B" and "llama-3.1-405b.json" are one.
std::string key_of(std::string_view name) {
  for (const std::string_view ending : {".json", ".yaml"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  std::string key;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return key;
}

}  // namespace

std::optional<Expected<model::Model>> known_model(const Measurement& m) {
  const std::string key = key_of(m.model.name);
  for (const auto& [file, text] : known_models()) {
    if (key_of(file) != key) continue;
    auto model = model::read_any_model(std::string(text), std::string(file), job_of(m));
    if (!model) return fail(reason(model.error().front().message));
    if (auto agrees = check_printed_dims(m.model, *model); !agrees) return tl::unexpected(agrees.error());
    return model;
  }
  return std::nullopt;
}

}  // namespace tangram::accuracy
