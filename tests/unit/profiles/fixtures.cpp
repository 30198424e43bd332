#include "fixtures.hpp"

#include <nlohmann/json.hpp>

#include "tangram/io/json_writer.hpp"

namespace tangram::profiles::fixtures {

void check_readable(const cost::Profile& profile) {
  const auto again =
      cost::read_profile(io::write_canonical(cost::profile_json(profile)), "again.json", cluster::catalogue());
  if (!again) FAIL(render(again.error()));
  CHECK(*again == profile);
}

}  // namespace tangram::profiles::fixtures
