// Measurements that cannot be true of their GPU. Goes in: a row and what it is of. Comes out: at most one error, in the
// row's sink.
#pragma once

#include "tangram/cost/profile.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cost {

void report_implausible(io::ObjectReader& reader, const Profile& profile, const ProfileUnit& unit,
                        const ProfileRow& row);

}  // namespace tangram::cost
