// What the bounds and the checker rely on when times are interpolated: no point costs less than the least row says, and
// the rows a point names give the same point without all the others.
#include <algorithm>
#include <set>

#include "support/property.hpp"
#include "tangram/cost/profile.hpp"

using namespace tangram;
using namespace tangram::cost;
using tangram::testing::holds;

namespace {

int pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

constexpr std::int64_t kLengths[] = {512, 1024, 2048, 4096};

model::BlockType block_at(std::int64_t tokens) {
  model::BlockType block;
  block.hidden = 1024;
  block.attention.heads = 16;
  block.attention.kv_heads = 16;
  block.attention.head_dim = 64;
  block.feed_forward.hidden = 4096;
  block.tokens = tokens;
  return block;
}

cluster::GpuType device() {
  cluster::GpuType gpu;
  gpu.name = "drawn";
  return gpu;
}

ProfileRow draw_row(int tp, int samples) {
  ProfileRow row;
  row.degrees.tp = tp;
  row.degrees.sequence_parallel = tp > 1 && pick(0, 1) == 1;
  row.samples = samples;
  row.forward = Nanoseconds(pick(1, 1'000'000));
  row.backward = Nanoseconds(pick(1, 1'000'000));
  row.activation = Bytes(pick(0, 3) * 1'000'000);
  return row;
}

ProfileUnit draw_unit(std::int64_t tokens) {
  ProfileUnit unit;
  unit.block = block_at(tokens);
  unit.sequence_length = tokens;
  for (const int tp : {1, 2, 4, 8}) {
    for (const int samples : {1, 2, 4, 8}) {
      if (pick(0, 2) == 0) unit.rows.push_back(draw_row(tp, samples));
    }
  }
  return unit;
}

ProfileSet draw_set() {
  ProfileSet set;
  for (int profiles = pick(1, 2); profiles > 0; --profiles) {
    Profile profile;
    profile.device = device();
    for (const std::int64_t tokens : kLengths) {
      if (pick(0, 1) == 1) profile.units.push_back(draw_unit(tokens));
    }
    set.add(std::move(profile));
  }
  return set;
}

struct Query {
  model::BlockType block;
  model::Job job;
  Degrees degrees;
  std::int64_t samples = 1;
};

Query draw_query() {
  Query query;
  query.block = block_at(kLengths[pick(0, 3)]);
  query.degrees.tp = 1 << pick(0, 3);
  query.degrees.sequence_parallel = query.degrees.tp > 1 && pick(0, 1) == 1;
  query.samples = pick(1, 8);
  return query;
}

std::optional<Measured> ask(const ProfileSet& set, const Query& query) {
  return set.block(query.block, query.job, query.degrees, query.samples, device());
}

}  // namespace

TEST_CASE("no interpolated point costs less than the least row") {
  holds(10'000, [] {
    const ProfileSet set = draw_set();
    const Query query = draw_query();
    const auto found = ask(set, query);
    if (!found) return;
    const double seconds = found->time.forward + found->time.backward;
    RC_ASSERT(seconds > 0);
    const double each = seconds * query.degrees.gpus() / static_cast<double>(query.samples);
    RC_ASSERT(each >= set.least_block_gpu_seconds(query.block, query.job, device()));
  });
}

TEST_CASE("the rows of a point, with or without others, give it again") {
  holds(10'000, [] {
    const ProfileSet set = draw_set();
    const Query query = draw_query();
    const auto found = ask(set, query);
    if (!found) return;
    RC_ASSERT(std::is_sorted(found->rows.begin(), found->rows.end()));
    RC_ASSERT((found->provenance == Provenance::kMeasured) == (found->rows.size() == 1));
    std::set<RowId> rows(found->rows.begin(), found->rows.end());
    const auto same = [&] {
      const auto again = ask(set.select({rows, {}}), query);
      return again && again->time.forward == found->time.forward && again->time.backward == found->time.backward &&
             again->activation == found->activation && again->provenance == found->provenance;
    };
    RC_ASSERT(same());
    if (const auto other = ask(set, draw_query())) rows.insert(other->rows.begin(), other->rows.end());
    RC_ASSERT(same());
  });
}
