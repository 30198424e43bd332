// What is wrong with a graph, a plan or a problem, by its places.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tangram/base/expected.hpp"

namespace tangram::multimodal {

class Faults {
 public:
  explicit Faults(std::string_view code) : code_(code) {}

  void need(bool holds, std::string place, std::string_view what) {
    if (holds) return;
    Diagnostic diagnostic;
    diagnostic.code = code_;
    diagnostic.pointer = std::move(place);
    diagnostic.message = std::string(what);
    found_.push_back(std::move(diagnostic));
  }

  /// What is wrong with a part, which lies at `place`.
  void add(const std::string& place, Expected<void> part) {
    if (part) return;
    for (Diagnostic& diagnostic : part.error()) {
      diagnostic.pointer = place + diagnostic.pointer;
      found_.push_back(std::move(diagnostic));
    }
  }

  [[nodiscard]] Expected<void> answer() && {
    if (found_.empty()) return {};
    return fail(std::move(found_));
  }

 private:
  std::string code_;
  Diagnostics found_;
};

}  // namespace tangram::multimodal
