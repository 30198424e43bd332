// Placed kernels as a page for browsers: how busy GPUs and links are, micro-batches on streams and links as they are
// simulated, and what more of them in flight bring. Goes in: a schedule. Comes out: HTML that needs nothing else.
#pragma once

#include <string>
#include <vector>

#include "disaggregation_view.hpp"
#include "tangram/dispatch/document.hpp"

namespace tangram::app {

/// `rows`: the schedule with other numbers of micro-batches in flight.
[[nodiscard]] std::string schedule_page(const dispatch::ScheduleFile& file, const std::vector<InFlight>& rows);

}  // namespace tangram::app
