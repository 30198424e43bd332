// The parts of Sailor's importer.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "context.hpp"
#include "sailor_models.hpp"

namespace tangram::profiles {

using OperatorProfiles = std::map<std::tuple<std::string, std::string, DType>, RawProfile>;  ///< by GPU, model, dtype

/// NAME_mbsB_tpT_algoA.csv, in GPU/profiled-data-{fp16,fp32}/. Rows of many files are judged together.
void import_operators(const SourceFile& file, SailorModels& models, OperatorProfiles& profiles, Context& context);

/// prim_NAME_OP_Ngpus.csv and p2p_{intra,inter}_node.csv.
void import_collective_csv(const SourceFile& file, Context& context);

}  // namespace tangram::profiles
