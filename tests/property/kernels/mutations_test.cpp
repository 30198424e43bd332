// Damaged inputs: every reader ends with an answer or with errors of its own, and what it answers can be written, read
// back, checked, unrolled and swept for hazards.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/kernels/alignment.hpp"
#include "tangram/kernels/check.hpp"
#include "tangram/kernels/document.hpp"
#include "tangram/kernels/hazards.hpp"
#include "tangram/kernels/held_out.hpp"
#include "tangram/kernels/recording.hpp"
#include "tangram/kernels/unroll.hpp"

using namespace tangram;
using namespace tangram::kernels;
using tangram::testing::cases;
using tangram::testing::pick;

namespace {

using Dice = std::mt19937_64;

const std::string kKineto =
    R"J({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA L40S"}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 5, "ts": 100, "dur": 10, "args": {"External id": 3}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 5, "ts": 101, "dur": 2, "args": {"correlation": 22}},
{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 200, "dur": 5.5, "args": {"External id": 22, "device": 0, "stream": 7,
 "correlation": 22, "grid": [4, 2, 1], "block": [128, 1, 1], "shared memory": 512}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "ts": 5, "args": {"stream": 20, "correlation": 23,
 "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 23}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "ts": 210, "dur": 1, "args": {"stream": 20, "correlation": 24, "bytes": 64}}]})J";

const std::string kExecution = R"J({"schema": "1.0.1", "nodes": [
{"name": "aten::mm", "id": 5, "rf_id": 3, "op_schema": "aten::mm(Tensor self, Tensor(a!) mat2) -> Tensor",
 "inputs": [[6, 7, 0, 64, 4, "cuda:0"], [[8, 9, 16, 16, 4, "cuda:0"]]], "outputs": [[10, 11, 0, 64, 4, "cuda:0"]]}]})J";

const std::string kDot = R"J(digraph dot {
"n0"[label="{KERNEL| {ID | 0 | _Z4gemm\<\<\<\{16,10,4\},256,49152\>\>\>}}"];
"n1"[label="{MEMCPY| {ID | 1}| {{node handle | kind} | {0x01 | DtoD}}| {{srcPtr | dstPtr} | {{pitch | ptr | xsize | ysize} | {64 | 0x0a | 64 | 2} | {pitch | ptr | xsize | ysize} | {64 | 0x0b | 64 | 2}}}| {{Extent} | {W | H | D} | {64 | 2 | 1}}}"];
"n3"[label="{MEMSET| {ID | 3}| {{node handle | dptr | pitch | value | elementSize | width | height} | {0x02 | 0x0a | 0 | 0 | 4 | 32 | 1}}}"];
"n0" -> "n1" -> "n3";
})J";

const std::string kNsys = R"J(Start (ns),Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Strm,Name
2000,1500,4,2,1,128,1,1,NVIDIA L40S (0),7,"void gemm<float, 4>(float*, ""x"")"
9000,700,,,,,,,NVIDIA L40S (0),7,[CUDA memcpy Host-to-Device]
)J";

const std::string kNcu =
    R"J("ID","Kernel Name","Stream","Block Size","Grid Size","Metric Name","Metric Unit","Metric Value"
"0","norm","7","(128, 1, 1)","(16, 1, 1)","gpu__time_duration.sum","usecond","3.5"
)J";

const std::string kGraph = R"J({"schema": "tangram.kernels/1", "source": [{"kind": "model", "file": "x"}],
"gpus": ["L40S", "T4"], "phases": [{"name": "decode", "requests": 2, "first": 0, "count": 3,
"repeats": [{"first": 1, "kernels": 1, "times": 3}]}],
"buffers": [{"id": "a", "bytes": 64, "kind": "kv", "per": "token", "copies": 3}, {"id": "b", "bytes": 8, "storage": "s", "epoch": 1}],
"kernels": [{"id": "x", "position": "p", "operator": "gemm", "shape": [1, 2, 3], "order": 0, "writes": [{"buffer": "b", "bytes": 8}]},
{"id": "y", "position": "q", "operator": "stream", "order": 1, "layer": 0, "reads": [{"buffer": "a", "offset": 8, "bytes": 8, "exact": false}],
 "updates": [{"buffer": "b", "bytes": 4}], "after": ["x"], "times": {"T4": {"us": 1.5, "from": "roofline", "error": 0.2}}},
{"id": "z", "position": "r", "operator": "stream", "order": 2, "reads": [{"buffer": "b", "bytes": 8}], "pinned": "host",
 "launch": {"grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0}, "names": {"L40S": "k"}}]})J";

const std::string kTable =
    R"J({"schema": "tangram.operator_times/1", "operator": "gemm", "dtype": "bf16", "source": "made up",
"interpolated": ["n", "m"], "gpus": ["L40S", "A40"], "rows": [[16, 64, 64, 4, null], [64, 64, 64, 4, 5], [256, 128, 64, 8, 9]]})J";

std::string damaged(std::string text, Dice& dice) {
  static const std::vector<std::string> pieces{
      "0",   "-1",       "1e308", "9223372036854775807", "null", "[]", "{}", "\"", ",", "|", "\n", "\\", "{", "]", "0x",
      "<<<", "\"L40S\"", "true",  "99999999999",         " "};
  for (int changes = pick(dice, 1, 4); changes > 0 && !text.empty(); --changes) {
    const auto place = static_cast<std::size_t>(pick(dice, 0, static_cast<int>(text.size()) - 1));
    const auto length = static_cast<std::size_t>(pick(dice, 0, 12));
    switch (pick(dice, 0, 3)) {
      case 0: text[place] = static_cast<char>(pick(dice, 0, 255)); break;
      case 1: text.erase(place, length); break;
      case 2:
        text.insert(place, pieces[static_cast<std::size_t>(pick(dice, 0, static_cast<int>(pieces.size()) - 1))]);
        break;
      default: text.insert(place, text.substr(place / 2, length)); break;
    }
  }
  return text;
}

/// A number of the text, replaced by another.
std::string renumbered(std::string text, Dice& dice) {
  static const std::vector<std::string> numbers{"0", "-1", "2", "7", "1000", "1e30", "0.5", "9223372036854775807"};
  std::vector<std::size_t> places;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
        std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0) {
      places.push_back(i);
    }
  }
  const std::size_t place = places[static_cast<std::size_t>(pick(dice, 0, static_cast<int>(places.size()) - 1))];
  const std::size_t end = std::min(text.find_first_not_of("0123456789.", place), text.size());
  return text.replace(place, end - place,
                      numbers[static_cast<std::size_t>(pick(dice, 0, static_cast<int>(numbers.size()) - 1))]);
}

std::string changed(const std::string& text, Dice& dice) {
  return pick(dice, 0, 2) == 0 ? renumbered(text, dice) : damaged(text, dice);
}

/// All that is done with graphs.
void use(const KernelGraph& graph) {
  const auto again = read_kernel_graph(io::write_canonical(kernel_graph_json(graph)), "again.json");
  INFO((again ? std::string() : render(again.error())));
  REQUIRE(again);
  REQUIRE(*again == graph);
  const auto findings = check(graph);
  const KernelGraph few = unrolled(graph, 3);
  for (const Phase& phase : few.phases) (void)hazards(few, phase);
  (void)aligned(graph, graph);
  (void)findings;
}

struct Tried {
  int answered = 0;
  int refused = 0;
};

void try_recording(const std::vector<RecordingFile>& files, Tried& tried) {
  const auto recording = import_recording(files, "", cluster::catalogue());
  if (recording) {
    ++tried.answered;
    use(recording->graph);
    return;
  }
  ++tried.refused;
  REQUIRE_FALSE(recording.error().empty());
  REQUIRE_FALSE(render(recording.error()).empty());
}

}  // namespace

TEST_CASE("damaged recordings are refused or understood") {
  Dice dice(11);
  Tried tried;
  for (int round = 0; round < cases(3000); ++round) {
    INFO("round " << round);
    switch (round % 5) {
      case 0: try_recording({{"t.json", changed(kKineto, dice)}, {"e.json", kExecution}}, tried); break;
      case 1: try_recording({{"t.json", kKineto}, {"e.json", changed(kExecution, dice)}}, tried); break;
      case 2: try_recording({{"g.dot", changed(kDot, dice)}}, tried); break;
      case 3: try_recording({{"n.csv", changed(kNsys, dice)}}, tried); break;
      default: try_recording({{"c.csv", changed(kNcu, dice)}}, tried); break;
    }
  }
  CHECK(tried.answered > tangram::testing::enough(300));
  CHECK(tried.refused > tangram::testing::enough(300));
}

TEST_CASE("damaged kernel graphs are refused or understood") {
  Dice dice(12);
  Tried tried;
  REQUIRE(read_kernel_graph(kGraph, "g.json"));
  for (int round = 0; round < cases(4000); ++round) {
    INFO("round " << round);
    const auto graph = read_kernel_graph(changed(kGraph, dice), "g.json");
    (graph ? tried.answered : tried.refused) += 1;
    if (graph) use(*graph);
    if (!graph) REQUIRE_FALSE(graph.error().empty());
  }
  CHECK(tried.answered > tangram::testing::enough(150));
}

TEST_CASE("damaged operator times are refused or understood") {
  Dice dice(13);
  int answered = 0;
  for (int round = 0; round < cases(3000); ++round) {
    INFO("round " << round);
    auto table = read_operator_table(changed(kTable, dice), "t.json");
    if (!table) continue;
    const auto again = inferred(std::move(*table), cluster::catalogue());
    if (!again) continue;
    ++answered;
    REQUIRE(read_operator_table(io::write_canonical(operator_table_json(*again)), "again.json"));
  }
  CHECK(answered > 0);
}
