// What optimizers keep. Goes in: the keys of a job that name one, and its precision. Comes out: the optimizer.
#pragma once

#include "tangram/io/reader.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

/// Of the key "optimizer": a name, or an object with a name and what it keeps. The precision and how its values are
/// kept have been read.
void read_optimizer(io::ObjectReader& reader, Job& job);

}  // namespace tangram::model
