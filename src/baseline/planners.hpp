// The planners by name.
#pragma once

#include <memory>

#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

[[nodiscard]] std::unique_ptr<BaselinePlanner> make_megatron();
[[nodiscard]] std::unique_ptr<BaselinePlanner> make_amp();
[[nodiscard]] std::unique_ptr<BaselinePlanner> make_metis();
[[nodiscard]] std::unique_ptr<BaselinePlanner> make_sailor();
[[nodiscard]] std::unique_ptr<BaselinePlanner> make_flashflex();

}  // namespace tangram::baseline
