// What every importer needs: the request, what is known of GPUs and models, and where notes and mistakes go.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "raw.hpp"

namespace tangram::profiles {

struct Context {
  const Request& request;
  std::span<const cluster::GpuType> devices;
  Notes& notes;
  Diagnostics& mistakes;
  std::vector<cost::Profile> profiles;

  void add(RawProfile raw);               ///< normalizes it
  void add_error(Diagnostic diagnostic);  ///< a mistake of the input
  void add_error(Diagnostics diagnostics);
  void add_file_error(const std::string& file, std::string code, std::string message, std::string hint = {});

  /// The GPU type of a file that calls it `name` ("" where it does not). Null when --gpu asks for another one (noted)
  /// or the name says too little (a mistake).
  [[nodiscard]] const cluster::GpuType* gpu(const std::string& name, const std::string& file);

  /// The same in a file of several, where --gpu chooses and a name that is not known is noted.
  [[nodiscard]] const cluster::GpuType* one_of_several_gpus(const std::string& name, const std::string& file);

  /// Of --model, or what `otherwise` gives; the model must have one type of block.
  [[nodiscard]] std::optional<Dimensions> dimensions(const std::string& file);
};

/// A GPT-2 or OPT block: two-matrix feed-forward of 4h, LayerNorm, biases.
[[nodiscard]] model::BlockType gpt_block(std::int64_t hidden, int heads, std::int64_t tokens);

/// Points in `declared` time units become a curve in the unit that the GPU's links allow; bytes are S.
struct RawPoint {
  double bytes = 0;
  double time = 0;
};
void add_curve(Context& context, const cluster::GpuType& device, cost::Exchange operation,
               const cost::CurveGroup& group, const std::vector<RawPoint>& points, const Unit& declared,
               const std::string& file, const std::string& source);

// One function for each tool; what cannot be used is noted, what is wrong is an error.
void import_sailor(Context& context);
void import_metis(Context& context);
void import_galvatron(Context& context);
void import_amp(Context& context);
void import_nccl_tests(Context& context);

}  // namespace tangram::profiles
