#include "page_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace tangram::app {

namespace {

/// Also where neither is there yet.
bool leads_to(const std::string& a, const std::string& b) {
  std::error_code failure;
  const auto real = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, failure), failure);
  };
  return io::same_file(a, b) || (real(a) == real(b) && !failure);
}

}  // namespace

Option html_option(std::string help, std::string& path) { return {"html", "FILE", std::move(help), &path}; }

std::optional<Diagnostics> page_complaint(const Context& context, const std::string& html, const std::string& output,
                                          const std::vector<std::string>& inputs) {
  if (html.empty()) return std::nullopt;
  if (html == "-" && context.json) {
    return usage_mistake("two-standard-outputs", "--html -: standard output is taken by --json", "name a file");
  }
  if (html == "-" && output == "-") {
    return usage_mistake("two-standard-outputs", "only one of --html and --output can be standard output");
  }
  if (html == "-") return std::nullopt;
  if (std::ranges::any_of(inputs, [&](const std::string& input) { return io::same_file(html, input); })) {
    return usage_mistake("overwrites-input", fmt::format("--html {} would overwrite an input", html),
                         "give the page a name of its own");
  }
  if (!output.empty() && output != "-" && leads_to(html, output)) {
    return usage_mistake("overwrites-output", fmt::format("--html {} is where --output goes", html),
                         "give the page a name of its own");
  }
  return std::nullopt;
}

}  // namespace tangram::app
