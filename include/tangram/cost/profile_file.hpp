// Profiles as files (tangram.profile/1, described in profile_reader.cpp). Goes in: text. Comes out: a profile whose
// numbers can be true of its GPU, or what is wrong with them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "tangram/base/expected.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cost {

/// `devices`: the GPU types a profile may be of; of equal names the first counts.
[[nodiscard]] Expected<Profile> read_profile(std::string text, std::string file,
                                             std::span<const cluster::GpuType> devices);

/// The same inside another document. Mistakes go to the reader's sink.
[[nodiscard]] Profile read_profile(io::ObjectReader& reader, std::span<const cluster::GpuType> devices);

/// Every dimension written out: read_profile of it gives the same profile.
[[nodiscard]] nlohmann::ordered_json profile_json(const Profile& profile);

}  // namespace tangram::cost
