// The simulation of streams once more, as simply as can be.
#pragma once

#include "tangram/streams/streams.hpp"

namespace tangram::tests {

/// Looks at everything again at each time at which something ends or arrives.
[[nodiscard]] streams::Run naive_run(const streams::Schedule& schedule);

}  // namespace tangram::tests
