// Times of single kernels: what is read, what is refused and where, and that a table which the model itself has made,
// with other figures, is found to be of these.
#include "tangram/calibrate/kernel_times.hpp"

#include <fmt/format.h>

#include "fixtures.hpp"

using namespace tangram;
using namespace tangram::calibrate;
using namespace tangram::calibrate::fixtures;

namespace {

Expected<std::vector<KernelTable>> kernel_tables(const std::string& tables) {
  return read_kernel_times(fmt::format(R"({{"schema": "tangram.kernel_times/1", "tables": [{}]}})", tables),
                           "kernels.json", cluster::catalogue());
}

KernelTable kernel_table(const std::string& text) {
  auto tables = kernel_tables(text);
  REQUIRE(tables);
  REQUIRE(tables->size() == 1);
  return tables->front();
}

std::string kernels_refusal(const std::string& tables) { return refusal_of(kernel_tables(tables)); }

/// The same calls, as long as the model with changed figures has them take.
KernelTable with_figures(KernelTable table, const std::vector<double>& factors) {
  for (KernelTime& row : table.rows) row.seconds = modelled_seconds(table, row.call, factors);
  return table;
}

double largest(const std::vector<double>& errors) {
  double most = 0;
  for (const double error : errors) most = std::max(most, std::abs(error));
  return most;
}

}  // namespace

TEST_CASE("kernel times: tables of all five kernels") {
  const auto tables = kernel_tables(R"(
    {"kernel": "product", "gpu": "H100-80GB-SXM", "precision": "fp8", "rows": [[1024, 4096, 2048, 20.5]]},
    {"kernel": "stream", "gpu": "H200-141GB-SXM", "rows": [[1000000, 5]]},
    {"kernel": "collective", "gpu": "A100-80GB-SXM", "rows": [["all_reduce", 8, 1048576, 38.9]]},
    {"kernel": "dispatch", "gpu": "GB200-186GB", "gpus_per_node": 72, "rows": [[64, 4096, 7168, 8, 675]]},
    {"kernel": "experts", "gpu": "B200-180GB-SXM", "precision": "fp8", "fp8_recipe": "blockwise",
     "rows": [[16384, 2048, 768, 3, 128, 8, 32, 150.7]]})");
  REQUIRE(tables);
  REQUIRE(tables->size() == 5);
  CHECK((*tables)[0].precision == DType::kFp8);
  CHECK(std::get<ProductCall>((*tables)[0].rows.front().call).n == 4096);
  CHECK((*tables)[0].rows.front().seconds == Approx(20.5e-6));
  CHECK(std::get<StreamCall>((*tables)[1].rows.front().call).bytes == 1e6);
  CHECK(std::get<CollectiveCall>((*tables)[2].rows.front().call).operation == cost::Collective::kAllReduce);
  CHECK(std::get<DispatchCall>((*tables)[3].rows.front().call).choice.experts == 8);
  CHECK((*tables)[0].recipe == model::Fp8Recipe::kDelayed);
  CHECK((*tables)[4].recipe == model::Fp8Recipe::kBlockwise);
  CHECK(std::get<ExpertsCall>((*tables)[4].rows.front().call).ranks == 32);
}

TEST_CASE("kernel times: mistakes are told with their place") {
  const auto product = [](const std::string& gpu, const std::string& rest) {
    return kernels_refusal(fmt::format(R"({{"kernel": "product", "gpu": "{}", {}}})", gpu, rest));
  };
  const auto collective = [](const std::string& rest) {
    return kernels_refusal(fmt::format(R"({{"kernel": "collective", "gpu": "L40S", {}}})", rest));
  };
  CHECK(has(kernels_refusal(R"({"kernel": "gemm", "gpu": "L40S", "rows": [[1, 2]]})"), "\"gemm\""));
  CHECK(has(product("H100-80GB-SXN", R"("rows": [[1, 2, 3, 4]])"), "did you mean \"H100-80GB-SXM\"?"));
  CHECK(has(product("A100-80GB-SXM", R"("precision": "fp8", "rows": [[1, 2, 3, 4]])"), "has no such products"));
  CHECK(has(product("L40S", R"("rows": [[1, 2, 3]])"), "product: [m, n, k, microseconds], numbers above 0"));
  CHECK(has(product("L40S", R"("rows": [[1, 2, 3, 0]])"), "numbers above 0"));
  CHECK(has(product("L40S", R"("rows": [])"), "an array of rows"));
  CHECK(has(product("L40S", R"("gpus_per_node": 8, "rows": [[1, 2, 3, 4]])"), "gpus_per_node"));
  CHECK(has(product("L40S", R"("fp8_recipe": "blockwise", "rows": [[1, 2, 3, 4]])"), "unknown key \"fp8_recipe\""));
  const auto experts = [](const std::string& row) {
    return kernels_refusal(fmt::format(R"({{"kernel": "experts", "gpu": "L40S", "rows": [{}]}})", row));
  };
  CHECK(has(experts("[4096, 2048, 768, 4, 128, 8, 8, 90]"), "an expert has 2 matrices or 3, not 4"));
  CHECK(has(experts("[4096, 2048, 768, 3, 8, 16, 8, 90]"), "a token cannot choose 16 of 8 experts"));
  CHECK(has(experts("[4096, 2048, 768, 3, 128, 8, 24, 90]"), "128 experts do not divide among 24 ranks"));
  CHECK(has(collective(R"("rows": [["all_sum", 8, 1024, 5]])"), "operations are all_reduce"));
  CHECK(has(collective(R"("rows": [["all_gather", 1, 1024, 5]])"), "two GPUs at least"));
  CHECK(has(collective(R"("gpus_per_node": 8, "rows": [["all_gather", 16, 1024, 5]])"), "16 GPUs need a network"));
  CHECK(has(collective(R"("gpus_per_node": 8, "network_gbit_s": 400, "rows": [["all_gather", 12, 1024, 5]])"),
            "12 GPUs do not divide into nodes of 8"));
}

TEST_CASE("kernel times: experts of a rank are two grouped products and what moves rows between them") {
  // 8,192 tokens that choose 2 of 8 experts, 4 ranks: 4,096 rows on each, 2 experts of 2,048 rows.
  const auto seconds = [](const std::string& table) {
    const KernelTable one = kernel_table(fmt::format(R"({{"gpu": "H100-80GB-SXM", {}}})", table));
    return modelled_seconds(one, one.rows.front().call);
  };
  const auto streamed = [&](double bytes) {
    return seconds(fmt::format(R"("kernel": "stream", "rows": [[{}, 1]])", bytes));
  };
  const double experts = seconds(R"("kernel": "experts", "rows": [[8192, 4096, 1024, 3, 8, 2, 4, 1]])");
  const double gathered = streamed(4096.0 * 4096 * 2 * 2);
  const double activated = streamed(4096.0 * 1024 * 3 * 2);
  const double summed = streamed((4096.0 + 8192) * 4096 * 2);
  // Products of 2 x 2,048 rows: as many tiles as those of 4,096 rows, beside weights that count twice.
  const double products = seconds(R"("kernel": "product", "rows": [[4096, 2048, 4096, 1]])") +
                          seconds(R"("kernel": "product", "rows": [[4096, 4096, 1024, 1]])");
  CHECK(experts == Approx(gathered + activated + summed + products).epsilon(1e-6));
  // In 8 bits the rows of all ranks' tokens are cast, and there are fewer bytes to gather.
  CHECK(seconds(R"("kernel": "experts", "precision": "fp8", "rows": [[8192, 4096, 1024, 3, 8, 2, 4, 1]])") != experts);
}

TEST_CASE("kernel times: what moves rows by expert has a rate of its own, products have the catalogue's") {
  const auto seconds = [](const std::string& format, double rows) {
    const KernelTable table = kernel_table(fmt::format(
        R"({{"gpu": "B200-180GB-SXM", "kernel": "experts", {}, "rows": [[8192, 4096, 1024, 3, 8, 2, 4, 1]]}})",
        format));
    return modelled_seconds(table, table.rows.front().call, std::array{1.0, rows, 1.0});
  };
  // At half of the rate the bytes that are moved take as long again: those of 4,096 rows gathered in, those of two
  // inner values out to one, and those of rows and 8,192 tokens.
  const auto moved = [&](const std::string& format) { return seconds(format, 0.5) - seconds(format, 1); };
  const double values = 4096.0 * 4096, inner = 4096.0 * 1024, summed = (4096.0 + 8192) * 4096 * 2;
  const double byte = moved(R"("precision": "bf16")") / (values * 4 + inner * (4 + 2) + summed);
  CHECK(moved(R"("precision": "fp8")") == Approx(byte * (values * 2 + inner * (4 + 1) + summed)).epsilon(1e-6));
  CHECK(moved(R"("precision": "fp4")") == Approx(byte * (values * 4 + inner * (4 + 2) + summed)).epsilon(1e-6));
  const double cast =
      (moved(R"("precision": "fp8", "fp8_recipe": "blockwise")") / byte) - (values * 4 + inner * (4 + 2) + summed);
  CHECK(cast == Approx((values + inner) * (2 + 1)).epsilon(0.02));  // scales of blocks beside
}

TEST_CASE("kernel times: tables that the model has made with other figures are found to be of these") {
  std::string products, collectives;
  for (const int m : {1024, 4096, 16384}) {
    for (const int n : {1024, 5120, 8192, 28672}) {
      for (const int k : {512, 4096, 8192}) products += fmt::format("[{}, {}, {}, 1],", m, n, k);
    }
  }
  for (const char* operation : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    for (const int gpus : {2, 4, 8}) {
      for (const int mib : {1, 8, 64, 512}) {
        collectives += fmt::format(R"(["{}", {}, {}, 1],)", operation, gpus, mib * 1048576);
      }
    }
  }
  products.pop_back();
  collectives.pop_back();
  for (const auto& [kernel, rows] : {std::pair("product", products), std::pair("collective", collectives)}) {
    const KernelTable table =
        kernel_table(fmt::format(R"({{"kernel": "{}", "gpu": "H100-80GB-SXM", "rows": [{}]}})", kernel, rows));
    const KernelFit own = fit_kernels(with_figures(table, {}));
    CHECK(largest(own.catalogue) < 1e-12);
    CHECK(own.factors == std::vector<double>(3, 1.0));
    const KernelFit other = fit_kernels(with_figures(table, {1.3, 0.8, 2}));
    CHECK(largest(other.catalogue) > 0.1);
    CHECK(largest(other.held_out) < 0.02);
    CHECK(other.factors[0] == Approx(1.3).epsilon(0.02));
  }
}
