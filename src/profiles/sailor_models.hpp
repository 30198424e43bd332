// The models Sailor profiled, as its own files describe them: training_config_*.json and llm_info.json.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "context.hpp"
#include "tangram/io/document.hpp"

namespace tangram::profiles {

/// One layer of llm_info at one degree of tensor parallelism.
struct LayerFacts {
  double parameters = 0;  ///< of one rank
  double output = 0;      ///< values, of all ranks
  double activation = 0;  ///< bytes of one rank kept for backward, one sample
};

class SailorModels {
 public:
  /// Takes the document if it is one of the two kinds.
  [[nodiscard]] bool take(const io::Document& document, Context& context);

  /// Of --model, else of the training config, else worked out of llm_info. Nothing: noted, or an error.
  [[nodiscard]] std::optional<Dimensions> dimensions(const std::string& name, const std::string& file,
                                                     Context& context);

  /// Whether llm_info, where there is one, counts as many parameters in a block as these dimensions do.
  [[nodiscard]] bool agrees(const std::string& name, const Dimensions& dimensions, const std::string& file,
                            Context& context) const;

  /// Bytes that one block keeps for one sample at this tp; 0: not in llm_info.
  [[nodiscard]] double activation(const std::string& name, int tp, int blocks) const;

 private:
  void take_config(const io::Document& document);
  void take_info(const io::Document& document);
  [[nodiscard]] std::optional<Dimensions> from_info(const std::string& name, const std::string& file, Context& context);

  using Layers = std::map<int, LayerFacts>;
  std::map<std::string, Dimensions> configs_;
  std::map<std::string, std::map<int, Layers>> info_;  ///< by model, tp
};

}  // namespace tangram::profiles
