// The solver against COIN-OR CBC, where it is installed: 36 kernels as a mixed-integer program.
#include <cstdlib>
#include <fstream>
#include <string>

#include "support/catch.hpp"
#include "support/scratch_folder.hpp"
#include "tables.hpp"
#include "tangram/base/at.hpp"
#include "tangram/disaggregate/solve.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::Buffer;
using disaggregate::BufferKind;
using disaggregate::Objective;
using disaggregate::Problem;

namespace {

bool has_cbc() { return std::system("command -v cbc > /dev/null 2>&1") == 0; }

constexpr double kMicro = 1e6;  // seconds to microseconds: CBC's tolerances are absolute

// x_k = 1: kernel k on class 1. u_m, v_m: message m goes from class 0 to 1, from 1 to 0. One reader each, one phase.
std::string linear_program(const Problem& problem) {
  std::string forth;  // of the rows
  std::string back;
  std::string sent;
  std::string coupled;
  std::string names;
  std::string first = "T";
  std::string second = "T";
  double all_on_first = 0;
  for (int k = 0; k < problem.kernel_count(); ++k) {
    const std::vector<double>& seconds = at(problem.kernels, k).seconds;
    const std::string x = " x" + std::to_string(k);
    first += " + " + std::to_string(seconds[0] * kMicro) + x;
    second += " - " + std::to_string(seconds[1] * kMicro) + x;
    names += x;
    all_on_first += seconds[0] * kMicro;
  }
  int number = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.kind != BufferKind::kMessage) continue;
    const disaggregate::Link& link = problem.links(0, 1);
    const std::string m = std::to_string(number++);
    const std::string from = "x" + std::to_string(buffer.writer);
    const std::string to = "x" + std::to_string(buffer.readers.front());
    const std::string on_link = std::to_string(link.seconds(buffer.bytes) * kMicro);
    const std::string on_gpu = std::to_string(link.gpu_seconds * kMicro);
    sent += " - " + on_gpu + " u" + m + " - " + on_gpu + " v" + m;
    forth += " - " + on_link + " u" + m;
    back += " - " + on_link + " v" + m;
    coupled += " u" + m + " - " + to + " + " + from + " >= 0\n v" + m + " - " + from + " + " + to + " >= 0\n";
  }
  return "Minimize\n obj: T\nSubject To\n " + first + sent + " >= " + std::to_string(all_on_first) + "\n " + second +
         sent + " >= 0\n T" + forth + " >= 0\n T" + back + " >= 0\n " + coupled + "Binary\n" + names + "\nEnd\n";
}

// Seconds; negative: no answer.
double optimum_of(const Problem& problem, const testing::ScratchFolder& folder) {
  const std::string program = folder.file("program.lp");
  const std::string answer = folder.file("answer.txt");
  std::ofstream(program) << linear_program(problem);
  const std::string command = "cbc " + program + " ratio 0 sec 60 solve solu " + answer + " > /dev/null 2>&1";
  if (std::system(command.c_str()) != 0) return -1;
  std::ifstream stream(answer);
  std::string line;
  std::getline(stream, line);
  const std::string label = "Optimal - objective value ";
  if (!line.starts_with(label)) return -1;
  return std::stod(line.substr(label.size())) / kMicro;
}

}  // namespace

TEST_CASE("disaggregate: as good as CBC on 36 kernels") {
  if (!has_cbc()) {
    WARN("cbc is not installed: not compared");
    return;
  }
  const testing::ScratchFolder folder;
  for (const ModelCase& of : {ModelCase{.requests = 32, .link = kInfiniBand, .layers = 4},
                              ModelCase{.phase = "prefill", .requests = 4, .link = kInfiniBand, .layers = 4}}) {
    const Problem problem = model_problem(of);
    const double least = optimum_of(problem, folder);
    disaggregate::SolverEffort effort;
    effort.beam = 8192;  // all labels
    const disaggregate::Solution solution = disaggregate::solve(problem, Objective::kThroughput, effort);
    INFO(of.phase << ' ' << of.requests << ": CBC " << least << ", value " << solution.value << ", bound "
                  << solution.bound);
    REQUIRE(least > 0);
    CHECK(solution.bound <= least * (1 + 1e-6));
    CHECK(solution.value == Approx(least).epsilon(1e-6));
  }
}
