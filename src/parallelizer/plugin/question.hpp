// Queries as text. Goes in: the model and profiles once, then queries. Comes out: questions whose text is canonical,
// with what they refer to: the model, the measured profiles, and each shape with its collectives.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tangram/parallelizer/answers.hpp"

namespace tangram::parallelizer {

class QuestionWriter {
 public:
  QuestionWriter(const model::Model& model, const cost::ProfileSet* profiles);
  [[nodiscard]] Question write(const Query& query);

 private:
  [[nodiscard]] std::shared_ptr<const Material> shape_material(const cluster::DeviceShape& shape);

  const model::Model& model_;
  std::vector<std::shared_ptr<const Material>> common_;
  std::vector<std::pair<cluster::DeviceShape, std::shared_ptr<const Material>>> shapes_;  ///< few: searched in order
};

}  // namespace tangram::parallelizer
