// Recordings as profilers write them, small enough to be worked out by hand.
#include <fmt/format.h>

#include <algorithm>

#include "support/catch.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/kernels/hazards.hpp"
#include "tangram/kernels/recording.hpp"

using namespace tangram;
using namespace tangram::kernels;

namespace {

std::string op_event(const std::string& name, int id, int start, int duration, int tid = 5) {
  return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "{}", "pid": 9, "tid": {}, "ts": {}, "dur": {},
    "args": {{"External id": {}}}}})",
                     name, tid, start, duration, id);
}

std::string call_event(int correlation, int start, int tid = 5) {
  return fmt::format(R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": {}, "ts": {},
    "dur": 2, "args": {{"External id": {}, "correlation": {}}}}})",
                     tid, start, correlation, correlation);
}

std::string kernel_event(const std::string& name, int correlation, double start, double duration, int stream = 7) {
  return fmt::format(R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": {}, "ts": {}, "dur": {},
    "args": {{"External id": {}, "device": 0, "stream": {}, "correlation": {}, "grid": [4, 2, 1], "block": [128, 1, 1],
    "shared memory": 512}}}})",
                     name, stream, start, duration, correlation, stream, correlation);
}

std::string trace_of(const std::vector<std::string>& events, const std::string& gpu = "NVIDIA L40S") {
  return fmt::format(R"({{"schemaVersion": 1, "deviceProperties": [{{"id": 0, "name": "{}"}}], "traceEvents": [{}]}})",
                     gpu, fmt::join(events, ",\n"));
}

std::string tensor(int storage, int elements, int offset = 0, const std::string& device = "cuda:0") {
  return fmt::format(R"([{}, {}, {}, {}, 4, "{}"])", 100 + storage, storage, offset, elements, device);
}

std::string et_node(const std::string& name, int rf_id, const std::string& schema, const std::string& inputs,
                    const std::string& outputs) {
  return fmt::format(R"({{"name": "{}", "id": {}, "rf_id": {}, "op_schema": "{}", "inputs": [{}], "outputs": [{}]}})",
                     name, 1000 + rf_id, rf_id, schema, inputs, outputs);
}

std::string execution_of(const std::vector<std::string>& nodes) {
  return fmt::format(R"({{"schema": "1.0.1", "nodes": [{}]}})", fmt::join(nodes, ",\n"));
}

Recording imported(const std::vector<RecordingFile>& files, const std::string& gpu = "") {
  auto recording = import_recording(files, gpu, cluster::catalogue());
  INFO((recording ? std::string() : render(recording.error())));
  REQUIRE(recording);
  return *recording;
}

std::string mistake(const std::vector<RecordingFile>& files, const std::string& gpu = "") {
  const auto recording = import_recording(files, gpu, cluster::catalogue());
  REQUIRE_FALSE(recording);
  return render(recording.error().front());
}

/// A fills x, B adds x and x into y (two kernels), C adds y to x in place, D takes y's memory anew and fills it.
std::vector<RecordingFile> four_operators() {
  const std::string kineto = trace_of(
      {op_event("aten::fill_", 1, 100, 10), call_event(22, 102), kernel_event("fill", 22, 200, 5),
       op_event("aten::linear", 2, 120, 30), op_event("aten::mm", 3, 125, 20), call_event(23, 126), call_event(24, 130),
       kernel_event("split", 23, 210, 7.5), kernel_event("reduce", 24, 220, 2.25), op_event("aten::add_", 4, 160, 10),
       call_event(25, 161), kernel_event("add", 25, 230, 4), op_event("aten::zeros", 5, 180, 10),
       op_event("aten::zero_", 6, 182, 5), call_event(26, 183), kernel_event("zero", 26, 240, 1)});
  const std::string x = tensor(7, 64);
  const std::string y = tensor(8, 64);
  const std::string execution = execution_of(
      {et_node("aten::fill_", 1, "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", x + ", 0", x),
       et_node("aten::mm", 3, "aten::mm(Tensor self, Tensor mat2) -> Tensor", x + ", " + x, y),
       et_node("aten::add_", 4, "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
               x + ", " + y + ", 1", x),
       et_node("aten::zeros", 5, "aten::zeros(SymInt[] size, *, Device? device=None) -> Tensor", "[64]", y),
       et_node("aten::zero_", 6, "aten::zero_(Tensor(a!) self) -> Tensor(a!)", y, y)});
  return {{"trace.json", kineto}, {"execution.json", execution}};
}

using Touched = std::vector<std::pair<std::string, bool>>;  // buffer, exact

Touched touched(const KernelGraph& graph, const std::vector<Access>& accesses) {
  Touched result;
  for (const Access& access : accesses) result.emplace_back(at(graph.buffers, access.buffer).id, access.exact);
  return result;
}

}  // namespace

TEST_CASE("a Kineto trace and an execution trace of one run are joined by rf_id") {
  const Recording recording = imported(four_operators());
  const KernelGraph& graph = recording.graph;
  CHECK(recording.notes == std::vector<std::string>{"5 of 5 kernels joined with their tensors"});
  CHECK(graph.gpus == std::vector<std::string>{"L40S"});
  REQUIRE(graph.kernel_count() == 5);
  CHECK(graph.kernels[0].position == "aten::fill_#0");
  CHECK(graph.kernels[1].position == "aten::linear/aten::mm#0");
  CHECK(graph.kernels[2].position == graph.kernels[1].position);
  CHECK(graph.kernels[4].position == "aten::zeros/aten::zero_#0");
  CHECK(graph.kernels[1].op == "aten::mm");
  CHECK(graph.kernels[1].times[0]->time == Nanoseconds(7500));
  CHECK(graph.kernels[2].launch == Launch{{4, 2, 1}, {128, 1, 1}, Bytes(512)});
  // A fills all of x unread; an operator of two kernels works in parts that nobody tells apart; D's y is another one.
  CHECK(touched(graph, graph.kernels[0].writes) == Touched{{"storage7", true}});
  CHECK(graph.kernels[0].updates.empty());
  CHECK(touched(graph, graph.kernels[1].reads) == Touched{{"storage7", false}});
  CHECK(touched(graph, graph.kernels[1].updates) == Touched{{"storage8.1", false}});
  CHECK(touched(graph, graph.kernels[3].updates) == Touched{{"storage7", true}});
  CHECK(touched(graph, graph.kernels[3].reads) == Touched{{"storage8.1", true}});
  CHECK(touched(graph, graph.kernels[4].writes) == Touched{{"storage8.2", true}});
  std::vector<std::tuple<int, int, HazardKind, bool>> edges;
  for (const Hazard& h : hazards(graph, graph.phases.front())) edges.emplace_back(h.from, h.to, h.kind, h.storage);
  using Kind = HazardKind;
  for (const auto& edge :
       {std::tuple(0, 1, Kind::kReadAfterWrite, false), std::tuple(1, 2, Kind::kReadAfterWrite, false),
        std::tuple(2, 3, Kind::kReadAfterWrite, false), std::tuple(1, 3, Kind::kWriteAfterRead, false),
        std::tuple(0, 3, Kind::kWriteAfterWrite, false), std::tuple(3, 4, Kind::kWriteAfterRead, true),
        std::tuple(2, 4, Kind::kWriteAfterWrite, true)}) {
    INFO(std::get<0>(edge) << " -> " << std::get<1>(edge));
    CHECK(std::ranges::find(edges, edge) != edges.end());
  }
}

TEST_CASE("execution traces of newer schemas keep values in an object and the rest in attributes") {
  std::vector<RecordingFile> files = four_operators();
  files[1].text = fmt::format(
      R"J({{"schema": "1.1.0-chakra.0.0.4", "nodes": [{{"id": 3, "name": "aten::mm", "inputs": {{"values": [{}, {}],
      "shapes": [[8, 8], [8, 8]], "types": ["Tensor(float)", "Tensor(float)"]}}, "outputs": {{"values": [{}]}},
      "attrs": [{{"name": "rf_id", "type": "uint64", "value": 3}},
                {{"name": "op_schema", "type": "string", "value": "aten::mm(Tensor self, Tensor mat2) -> Tensor"}}]}}]}})J",
      tensor(7, 64), tensor(7, 64), tensor(8, 64));
  const Recording recording = imported(files);
  CHECK(recording.notes.front() == "2 of 5 kernels joined with their tensors");
  CHECK(touched(recording.graph, recording.graph.kernels[1].reads) == Touched{{"storage7", false}});
  CHECK(recording.graph.kernels[0].pinned == Pin::kUnknownPointer);
}

TEST_CASE("an operator without a schema may write all that it is given") {
  std::vector<RecordingFile> files = four_operators();
  files[1].text = execution_of({et_node("my_kernel", 1, "", tensor(7, 64), "")});
  const KernelGraph graph = imported(files).graph;
  CHECK(touched(graph, graph.kernels[0].updates) == Touched{{"storage7", false}});
  CHECK(graph.kernels[0].evidence == Evidence::kConservative);
}

TEST_CASE("what an operator without a schema returns anew is all that a kernel of known family wrote") {
  // An attention of Python: q and k are given, o and the sums of rows come back.
  const std::string flash = "void flash::flash_fwd_kernel<T>(Flash_fwd_params)";
  const std::string trace =
      trace_of({op_event("FlashAttnFunc", 1, 100, 10), call_event(22, 102), kernel_event(flash, 22, 200, 5)});
  const auto graph_of = [&](const std::string& outputs) {
    const std::string inputs = tensor(7, 64) + ", " + tensor(8, 64);
    return imported({{"t.json", trace}, {"e.json", execution_of({et_node("FlashAttnFunc", 1, "", inputs, outputs)})}})
        .graph;
  };
  const KernelGraph both = graph_of(tensor(9, 64) + ", " + tensor(10, 8));
  CHECK(both.kernels[0].evidence == Evidence::kSignature);
  CHECK(both.kernels[0].signature == "attention");
  CHECK(both.kernels[0].pinned == Pin::kNone);
  CHECK(touched(both, both.kernels[0].reads) == Touched{{"storage7", false}, {"storage8", false}});
  CHECK(touched(both, both.kernels[0].writes) == Touched{{"storage9", false}, {"storage10", false}});
  CHECK(both.kernels[0].updates.empty());
  // Where the sums do not come back, they may lie in an input.
  const KernelGraph one = graph_of(tensor(9, 64));
  CHECK(one.kernels[0].evidence == Evidence::kConservative);
  CHECK(one.kernels[0].updates.size() == 3);
}

TEST_CASE("a fill among an operator's kernels reads no inputs") {
  std::string trace = trace_of({op_event("aten::mm", 3, 125, 20), call_event(23, 126), call_event(24, 130),
                                kernel_event("Memset (Device)", 23, 210, 1), kernel_event("split", 24, 220, 2)});
  trace.replace(trace.find("\"cat\": \"kernel\", \"name\": \"Memset"), 15, "\"cat\": \"gpu_memset\"");
  const std::string node = et_node("aten::mm", 3, "aten::mm(Tensor self, Tensor mat2) -> Tensor",
                                   tensor(7, 64) + ", " + tensor(7, 64), tensor(8, 64));
  const KernelGraph graph = imported({{"t.json", trace}, {"e.json", execution_of({node})}}).graph;
  CHECK(graph.kernels[0].reads.empty());
  CHECK(touched(graph, graph.kernels[0].updates) == Touched{{"storage8", false}});
  CHECK(graph.kernels[0].signature == "fill");
  CHECK(touched(graph, graph.kernels[1].reads) == Touched{{"storage7", false}});
}

TEST_CASE("without tensors a kernel of known family stays pinned, by what is missing") {
  const std::string gemm = "ampere_sgemm_128x64_tn";
  const std::string trace = trace_of({kernel_event(gemm, 9, 1, 1), kernel_event("mine", 10, 3, 2)});
  const KernelGraph graph = imported({{"t.json", trace}}).graph;
  CHECK(graph.kernels[0].signature == "gemm");
  CHECK(graph.kernels[0].pinned == Pin::kUnknownOperands);
  CHECK(graph.kernels[1].pinned == Pin::kUnknownPointer);
}

TEST_CASE("a view is a part of its storage, nobody knows which") {
  std::vector<RecordingFile> files = four_operators();
  files[1].text = execution_of(
      {et_node("aten::fill_", 1, "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", tensor(7, 8, 16),
               ""),
       et_node("aten::mm", 3, "aten::mm(Tensor self, Tensor mat2) -> Tensor", tensor(7, 64), tensor(8, 64))});
  const KernelGraph graph = imported(files).graph;
  REQUIRE(graph.kernels[0].writes.size() == 1);
  CHECK(graph.kernels[0].writes[0] == Access{0, 0, 256, false});
}

TEST_CASE("kernels keep their streams, and wait for events of others") {
  const std::string wait = R"({"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "ts": 5, "dur": 0, "args": {
    "stream": 20, "correlation": 12, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 11}})";
  const std::string trace = trace_of({kernel_event("a", 9, 1, 1), kernel_event("b", 10, 3, 2), wait,
                                      kernel_event("c", 13, 6, 1, 20), kernel_event("ncclDevKernel", 14, 5.5, 1)});
  const KernelGraph graph = imported({{"trace.json", trace}}).graph;
  REQUIRE(graph.kernel_count() == 4);
  CHECK(graph.kernels[2].names.front() == "ncclDevKernel");  // in the order of the GPU
  CHECK(graph.kernels[2].pinned == Pin::kCollective);
  CHECK(graph.kernels[3].stream == 20);
  CHECK(graph.kernels[3].after == std::vector<int>{1});
  CHECK(graph.kernels[3].position == "#3");
}

TEST_CASE("a trace of 1,154 kernels is read in order") {
  std::vector<std::string> events;
  for (int k = 0; k < 1154; ++k) {
    events.push_back(op_event("aten::mm", 10 + k, 1000 + 20 * k, 15));
    events.push_back(op_event("aten::record", 5000 + k, 1001 + 20 * k, 2, 6));
    events.push_back(call_event(9000 + k, 1002 + 20 * k));
    events.push_back(kernel_event("gemm_" + std::to_string(k), 9000 + k, 1010 + 20 * k, 12, 7 + k % 4));
  }
  std::ranges::reverse(events);
  const std::string trace = trace_of(events);
  const KernelGraph graph = imported({{"trace.json", trace}}).graph;
  REQUIRE(graph.kernel_count() == 1154);
  for (int k = 0; k < 1154; ++k) {
    const Kernel& kernel = at(graph.kernels, k);
    REQUIRE(kernel.names.front() == "gemm_" + std::to_string(k));
    REQUIRE(kernel.stream == 7 + k % 4);
    REQUIRE(kernel.position == "aten::mm#" + std::to_string(k));
  }
}

TEST_CASE("what is wrong with traces is told with its place") {
  CHECK_THAT(mistake({{"t.json", trace_of({R"({"cat": "kernel", "name": "k", "dur": 3})"})}}),
             ContainsSubstring("t.json:1:") && ContainsSubstring("an event without \"ts\""));
  CHECK_THAT(mistake({{"t.json", trace_of({op_event("aten::mm", 1, 1, 1)})}}),
             ContainsSubstring("the trace has no kernels of a GPU"));
  CHECK_THAT(mistake({{"t.json", R"({"traceEvents": 3})"}}), ContainsSubstring("expected \"traceEvents\""));
  CHECK_THAT(mistake({{"t.json", trace_of({kernel_event("k", 1, 1, 1)}, "NVIDIA A100-PG509-200")}}),
             ContainsSubstring("it ran on \"NVIDIA A100-PG509-200\"") && ContainsSubstring("--gpu NAME"));
  CHECK(imported({{"t.json", trace_of({kernel_event("k", 1, 1, 1)}, "x")}}, "A100-80").graph.gpus.front() ==
        "A100-80GB-SXM");
  CHECK_THAT(mistake({{"t.json", trace_of({kernel_event("k", 1, 1, 1)})}}, "L40X"),
             ContainsSubstring("unknown GPU type \"L40X\"") && ContainsSubstring("did you mean \"L40"));
  std::vector<RecordingFile> files = four_operators();
  CHECK_THAT(mistake({files[1]}), ContainsSubstring("an execution trace alone has no kernels"));
  CHECK_THAT(mistake({files[0], files[0]}), ContainsSubstring("2 files are not one recording"));
  CHECK_THAT(mistake({{"t.json.gz", std::string("\x1f\x8b\x08")}}), ContainsSubstring("gunzip it first"));
  CHECK_THAT(mistake({{"notes.txt", "hello"}}), ContainsSubstring("this is no recording that is known"));
  files[1].text =
      execution_of({et_node("aten::mm", 3, "aten::mm(Tensor self) -> Tensor", "[1, 2, -3, 4, 4, \"cuda:0\"]", "")});
  CHECK_THAT(mistake(files), ContainsSubstring("execution.json:1:") && ContainsSubstring("no memory has"));
}

TEST_CASE("a dump of a CUDA graph has its order, and the addresses of copies and fills") {
  const std::string dot = R"DOT(digraph dot {
subgraph cluster_1 {
label="graph_1" graph[style="dashed"];
"n2"[shape="record" label="{KERNEL
| {ID | 2 (topoId: 0) | _Z4gemmPf\<\<\<\{16,10,4\},256,49152\>\>\>}
| {cooperative | 0}}"];
"n0"[label="{KERNEL| {ID | 0 (topoId: 3) | _Z4normPf\<\<\<8,128,0\>\>\>}}"];
"n1"[label="{MEMCPY| {ID | 1 (topoId: 2)}| {{node handle | kind} | {0x01 | DtoD}}
| {{srcPtr | dstPtr} | {{pitch | ptr | xsize | ysize} | {64 | 0x0000000a | 64 | 2} | {pitch | ptr | xsize | ysize} | {64 | 0x0000000b | 64 | 2}}}
| {{Extent} | {W | H | D} | {64 | 2 | 1}}}"];
"n3"[label="{MEMSET| {ID | 3 (topoId: 1)}
| {{node handle | dptr | pitch | value | elementSize | width | height} | {0x02 | 0x0000000a | 0 | 0 | 4 | 32 | 1}}}"];
"n0" -> "n1" [headlabel=0];
"n1" -> "n2";
"n0" -> "n3" -> "n2";
}
})DOT";
  const KernelGraph graph = imported({{"graph.dot", dot}}).graph;
  REQUIRE(graph.kernel_count() == 4);
  std::vector<std::string> order;
  for (const Kernel& kernel : graph.kernels) order.push_back(kernel.id);
  CHECK(order == std::vector<std::string>{"n0", "n1", "n3", "n2"});
  CHECK(graph.kernels[0].op == "_Z4normPf");
  CHECK(graph.kernels[3].launch == Launch{{16, 10, 4}, {256, 1, 1}, Bytes(49152)});
  CHECK(graph.kernels[3].after == std::vector<int>{1, 2});
  // The fill takes the memory that the copy reads.
  const auto found = hazards(graph, graph.phases.front());
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == HazardKind::kWriteAfterRead);
  CHECK(found[0].bytes == 128);
  CHECK_THAT(mistake({{"g.dot", "digraph g {\n\"a\"[label=\"x\"];\n\"b\"[];\n\"a\" -> \"b\";\n\"b\" -> \"a\";\n}"}}),
             ContainsSubstring("g.dot:2:1: error: \"a\" waits for itself"));
  CHECK_THAT(mistake({{"g.dot", "digraph g {\n\"a\"[];\n\"a\" -> \"c\";\n}"}}),
             ContainsSubstring("g.dot:3:1: error: an edge of \"c\", which is no node"));
  CHECK_THAT(mistake({{"g.dot", "digraph g {\n\"a\"[label=3 4];\n"}}), ContainsSubstring("g.dot:2:"));
  CHECK_THAT(mistake({{"g.dot", "digraph g {\n\"a\"[label=\"x"}}),
             ContainsSubstring("g.dot:2:11: error: a quoted text that does not end"));
}

TEST_CASE("a table of nsys has kernels in the order of their start") {
  const std::string csv = R"J(Processing [report.sqlite] with [cuda_gpu_trace.py]...

Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name
2000,1500,2,4,2,1,128,1,1,32,0.000,0.000,,,,,NVIDIA L40S (0),1,7,"void gemm<float, 4>(float*, ""x"")"
1000,2500,1,8,1,1,256,1,1,32,0.000,0.000,,,,,NVIDIA L40S (0),1,14,norm
9000,700,3,,,,,,,,,,0.004,5.8,Pageable,Device,NVIDIA L40S (0),1,7,[CUDA memcpy Host-to-Device]
)J";
  const KernelGraph graph = imported({{"trace.csv", csv}}).graph;
  REQUIRE(graph.kernel_count() == 3);
  CHECK(graph.gpus.front() == "L40S");
  CHECK(graph.kernels[0].names.front() == "norm");
  CHECK(graph.kernels[0].stream == 14);
  CHECK(graph.kernels[1].names.front() == "void gemm<float, 4>(float*, \"x\")");
  CHECK(graph.kernels[1].times[0]->time == Nanoseconds(1500));
  CHECK(graph.kernels[1].launch == Launch{{4, 2, 1}, {128, 1, 1}, Bytes(0)});
  CHECK(graph.kernels[2].pinned == Pin::kHost);
  CHECK_THAT(mistake({{"t.csv", "Start (ns),Duration (ns),Name\n1,x,k\n"}}),
             ContainsSubstring("t.csv:2:1: error: expected times"));
  CHECK_THAT(mistake({{"t.csv", "Start (ns),Duration (ns),Name\n1,2\n"}}),
             ContainsSubstring("t.csv:2:1: error: a row of 2 fields under a header of 3"));
  CHECK_THAT(mistake({{"t.csv", "Start (ns),Duration (ns),Name\n"}}), ContainsSubstring("no kernels"));
}

TEST_CASE("tables of ncu have one row a metric, or one row a kernel with units below the header") {
  const std::string rows = R"J(==PROF== Connected to process 7
"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","Section Name","Metric Name","Metric Unit","Metric Value"
"0","7","norm","7","(128, 1, 1)","(16, 1, 1)","Command line profiler metrics","dram__bytes.sum","Mbyte","1.5"
"0","7","norm","7","(128, 1, 1)","(16, 1, 1)","Command line profiler metrics","gpu__time_duration.sum","usecond","3.5"
"1","7","gemm","7","(256, 1, 1)","(8, 4, 1)","Command line profiler metrics","gpu__time_duration.sum","nsecond","12,250"
)J";
  const KernelGraph graph = imported({{"ncu.csv", rows}}, "L40S").graph;
  REQUIRE(graph.kernel_count() == 2);
  CHECK(graph.kernels[0].times[0]->time == Nanoseconds(3500));
  CHECK(graph.kernels[1].times[0]->time == Nanoseconds(12'250));
  CHECK(graph.kernels[1].launch == Launch{{8, 4, 1}, {256, 1, 1}, Bytes(0)});
  const std::string raw = R"J("ID","Kernel Name","Stream","Block Size","Grid Size","gpu__time_duration.sum"
"","","","","","ms"
"0","norm","7","(128, 1, 1)","(16, 1, 1)","0.5"
)J";
  CHECK(imported({{"raw.csv", raw}}, "L40S").graph.kernels[0].times[0]->time == Nanoseconds(500'000));
  CHECK_THAT(mistake({{"ncu.csv", rows}}), ContainsSubstring("the recording does not say which GPU ran it"));
  CHECK_THAT(mistake({{"ncu.csv", "\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n"}}, "L40S"),
             ContainsSubstring("no column \"gpu__time_duration.sum\""));
  CHECK_THAT(mistake({{"ncu.csv", "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"hours\"\n"}}, "L40S"),
             ContainsSubstring("ncu.csv:2:1: error: expected units"));
}
