#include "inputs.hpp"

#include <utility>

#include "tangram/io/file.hpp"

namespace tangram::app {

namespace {

/// Reads a file and hands its text and the name shown in errors to `reader`.
template <class Reader>
auto load(const std::string& path, Reader reader) -> decltype(reader(std::string(), std::string())) {
  auto text = io::read_file(path);
  if (!text) return fail(std::move(text.error()));
  return reader(std::move(*text), path);
}

}  // namespace

Expected<cluster::Fleet> load_fleet(const std::string& path) {
  return load(path,
              [](std::string text, std::string file) { return cluster::read_fleet(std::move(text), std::move(file)); });
}

Expected<model::Model> load_model(const std::string& path, const model::JobOverrides& overrides) {
  return load(path, [&](std::string text, std::string file) {
    return model::read_any_model(std::move(text), std::move(file), overrides);
  });
}

Expected<plan::LaunchPlan> load_plan(const std::string& path) {
  return load(path,
              [](std::string text, std::string file) { return plan::read_plan(std::move(text), std::move(file)); });
}

}  // namespace tangram::app
