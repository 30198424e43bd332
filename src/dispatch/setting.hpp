// What all timings of an emulation have in common.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "order.hpp"
#include "pieces.hpp"
#include "reference.hpp"
#include "tangram/dispatch/emulate.hpp"

namespace tangram::dispatch {

/// Refers to what it was made of.
struct Setting {
  const kernels::KernelGraph& graph;
  const Schedule& schedule;
  const EmulationOptions& options;
  Pieces pieces;
  std::vector<std::vector<PieceRange>> copies;  ///< by copy: what it brings
  std::vector<Touches> touches;                 ///< by kernel
  std::unordered_map<std::string, int> kernel_named;
  std::vector<int> device_of;                       ///< by kernel
  std::vector<std::vector<Step>> steps;             ///< by phase
  std::vector<std::vector<RunNumber>> first_holds;  ///< by device and piece: kFirst or kNothing
  Contents first_contents;                          ///< with PTX
  Reference reference;

  [[nodiscard]] bool has_code() const { return options.code != nullptr; }
};

[[nodiscard]] Expected<Setting> set_up(const kernels::KernelGraph& graph, const Schedule& schedule,
                                       const EmulationOptions& options);

}  // namespace tangram::dispatch
