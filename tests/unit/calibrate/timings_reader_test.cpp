// Lines of tangram.timings/1: what is taken, and where and why a line is refused.

#include "fixtures.hpp"

using namespace tangram;
using namespace tangram::calibrate;
using namespace tangram::calibrate::fixtures;

namespace {

std::string rows_refusal(const std::string& text) {
  return refusal_of(read_timings({{"timings.jsonl", text}}, cluster::catalogue()));
}

std::string header_line() { return timings_header(small_model(), true).dump() + "\n"; }

/// What is said of a row in line 2 in which one key is another.
std::string row_refusal_with(const std::string& key, const TimingJson& value) {
  TimingJson row = timings_row(block(0, 0));
  if (value.is_null()) {
    row.erase(key);
  } else {
    row[key] = value;
  }
  const std::string text = rows_refusal(header_line() + row.dump() + "\n");
  CHECK(text.starts_with("timings.jsonl:2:"));
  return text;
}

std::string header_refusal_with(const std::string& key, const TimingJson& value) {
  TimingJson header = timings_header(small_model(), true);
  if (value.is_null()) {
    header.erase(key);
  } else {
    header[key] = value;
  }
  const std::string text = rows_refusal(header.dump() + "\n" + timings_row(block(0, 0)).dump() + "\n");
  CHECK(text.starts_with("timings.jsonl:1:"));
  return text;
}

}  // namespace

TEST_CASE("timings: equal units of one type are one group, whatever file, run and step they are of") {
  TimingLine other = block(1, 1);
  other.samples = 2;
  TimingLine head = block(0, 1);
  head.kind = cost::ProfileKind::kHead;
  const Timings timings = timings_of({Lines().add(block(0, 0)).add(block(1, 1)).add(other).file("a.jsonl"),
                                      Lines().add(block(7, 2)).add(head).file("b.jsonl")});
  REQUIRE(timings.units.size() == 3);
  CHECK(timings.runs.size() == 2);
  const TimedUnit& first = timings.units.front();
  CHECK(first.observations.size() == 3);
  CHECK(first.device.name == kGpu);
  CHECK(first.type == "dense");
  CHECK(first.unit.sequence_length == 2048);
  CHECK(first.unit.block.hidden == 2048);
  CHECK(first.unit.block.name.empty());
  CHECK(first.observations.back().run == 1);
  CHECK(first.observations.back().step == 7);
  CHECK(first.observations.back().forward == 0.006);
  CHECK(first.modelled.forward > 0);
  CHECK(first.modelled.backward > first.modelled.forward);
  CHECK(timings.units.back().unit.kind == cost::ProfileKind::kHead);
  CHECK(timings.units.back().unit.vocabulary == 32000);
}

TEST_CASE("timings: a later header starts another run") {
  std::string text = Lines().add(block(0, 0)).file().text;
  text += "\n  \n" + Lines().add(block(0, 0)).file().text;
  const Timings timings = timings_of({{"timings.jsonl", text}});
  CHECK(timings.runs.size() == 2);
  REQUIRE(timings.units.size() == 1);
  CHECK(timings.units.front().observations.size() == 2);
}

TEST_CASE("timings: products of a precision that the GPU lacks run in the next wider one") {
  TimingLine line = block(0, 0);
  line.gpu = "V100-32GB-SXM";
  const Timings timings = timings_of({Lines().add(line).file()});
  CHECK(timings.units.front().unit.dtype == DType::kFp16);
}

TEST_CASE("timings: a wrong row is refused at its line, with what was expected") {
  CHECK(has(row_refusal_with("gpu", "A100-80GB-SMX"), "did you mean \"A100-80GB-SXM\"?"));
  CHECK(has(row_refusal_with("gpu", "Quux"), "--plan FILE adds those of the plan's fleet"));
  CHECK(has(row_refusal_with("unit", "layer"), "\"unit\""));
  CHECK(has(row_refusal_with("type", "moe"), "\"type\""));
  CHECK(has(row_refusal_with("type", nullptr), "missing key \"type\""));
  CHECK(has(row_refusal_with("forward_ms", 0), "forward_ms"));
  CHECK(has(row_refusal_with("forward_ms", "6"), "expected a number"));
  CHECK(has(row_refusal_with("backward_ms", nullptr), "missing key \"backward_ms\""));
  CHECK(has(row_refusal_with("step", -1), "step"));
  CHECK(has(row_refusal_with("rank", 1 << 20), "no job has more ranks"));
  CHECK(has(row_refusal_with("samples", 0), "samples"));
  CHECK(has(row_refusal_with("tp", 3), "16 attention heads cannot be divided by tp 3"));
  CHECK(has(row_refusal_with("sequence_parallel", true), "sequence parallelism shards over tp, which is 1"));
  CHECK(has(row_refusal_with("ep", 2), "expert parallelism needs experts"));
  CHECK(has(row_refusal_with("recompute", "some"), "recompute"));
  CHECK(has(row_refusal_with("forward", 6.0), "unknown key \"forward\""));
}

TEST_CASE("timings: degrees whose product no machine has are refused") {
  TimingJson row = timings_row(block(0, 0));
  row["tp"] = row["cp"] = row["ep"] = row["etp"] = 65536;
  CHECK(has(rows_refusal(header_line() + row.dump()), "more GPUs than any stage has"));
}

TEST_CASE("timings: a wrong header is refused at its line, and its rows are not read") {
  CHECK(has(header_refusal_with("schema", "tangram.timings/9"), "this program reads \"tangram.timings/1\""));
  CHECK(has(header_refusal_with("schema", "tangram.profile/1"), "this is a profile, not timings of a run"));
  CHECK(has(header_refusal_with("includes_tp_communication", nullptr), "includes_tp_communication"));
  CHECK(has(header_refusal_with("precision", "int8"), "precision"));
  CHECK(has(header_refusal_with("date", "31.1.2026"), "write YYYY-MM-DD"));
  CHECK(has(header_refusal_with("types", TimingJson::array()), "types"));
  CHECK(has(header_refusal_with("frobnicate", 1), "unknown key \"frobnicate\""));
  TimingJson twice = timings_header(small_model(), true);
  twice["types"].push_back(twice["types"].front());
  CHECK(has(rows_refusal(twice.dump()), "two block types are called \"dense\""));
}

TEST_CASE("timings: files that are none say so") {
  CHECK(has(rows_refusal(""), "the file holds no timings"));
  CHECK(has(rows_refusal("\n\n"), "its first line is a header"));
  CHECK(has(rows_refusal(timings_row(block(0, 0)).dump()), "timings.jsonl:1:1: error: expected a header of timings"));
  CHECK(has(rows_refusal("{\n}\n"), "timings.jsonl:1:1: error: expected a header of timings"));
  CHECK(has(rows_refusal(header_line() + "{\"step\": 1,"), "timings.jsonl:2:"));
  CHECK(has(rows_refusal(header_line() + "[1]\n"), "timings.jsonl:2:"));
}

TEST_CASE("timings: of many wrong lines the first are told") {
  std::string text = header_line();
  for (int i = 0; i < 1000; ++i) text += "{}\n";
  const auto timings = read_timings({{"timings.jsonl", text}}, cluster::catalogue());
  REQUIRE_FALSE(timings);
  CHECK(timings.error().size() < 100);
}
