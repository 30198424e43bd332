// What a job fixes of a module: degrees of the stages that hold its blocks, and the GPU types that may run them. Goes
// in: words of a user. Comes out: a constraint, which belongs to the module and to each of its blocks.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::model {

struct ModuleConstraint {
  int tp = 0;  ///< degrees; 0: searched
  int cp = 0;
  int ep = 0;                     ///< where they have experts
  std::vector<std::string> gpus;  ///< types, or what their names begin with ("A100", "A100-80GB"); empty: any

  [[nodiscard]] bool allows(std::string_view gpu_type) const;
  bool operator==(const ModuleConstraint&) const = default;
};

struct FixedDegree {
  std::string_view name;
  int ModuleConstraint::* value;
};
inline constexpr std::array kFixedDegrees{FixedDegree{"tp", &ModuleConstraint::tp},
                                          FixedDegree{"cp", &ModuleConstraint::cp},
                                          FixedDegree{"ep", &ModuleConstraint::ep}};

struct NamedConstraint {
  std::string module;
  ModuleConstraint constraint;
};

/// "A100" and "A100-80GB" name "A100-80GB-SXM", and so does itself.
[[nodiscard]] bool names_gpu_type(std::string_view name, std::string_view gpu_type);

/// Of words such as "vision:tp=2", "gpus=A100+H100", "language:tp=8": one with a colon begins a module. Names are
/// looked up where the model and the fleet are known.
[[nodiscard]] Expected<std::vector<NamedConstraint>> read_constraints(std::span<const std::string> words);

/// As people read it: "tp 2 on A100 or H100"; of a module: "vision: tp 2 on A100 or H100".
[[nodiscard]] std::string to_string(const ModuleConstraint& constraint);
[[nodiscard]] std::string to_string(const NamedConstraint& named);

}  // namespace tangram::model
