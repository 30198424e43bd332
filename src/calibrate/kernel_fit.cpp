#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tangram/base/compass_search.hpp"
#include "tangram/calibrate/kernel_times.hpp"
#include "tangram/cluster/usual_link.hpp"

namespace tangram::calibrate {
namespace {

using Factors = std::span<const double>;

constexpr std::array<std::string_view, 3> kProductFigures{"rate", "memory", "launch"};
constexpr std::array<std::string_view, 3> kExpertFigures{"rate", "rows", "launch"};
constexpr std::array<std::string_view, 2> kStreamFigures{"memory", "launch"};
constexpr std::array<std::string_view, 3> kCollectiveFigures{"bandwidth", "latency", "ramp"};
constexpr std::array<std::string_view, 2> kDispatchFigures{"bandwidth", "network"};

constexpr std::array kSteps{0.5, 0.2, 0.1, 0.05, 0.02, 0.01};
constexpr std::array kStarts{1.0, 0.4, 2.5};
constexpr double kLeastGain = 0.002;  // in the mean of rows, of a start over those before it
constexpr double kMost = 1e3;         // times the catalogue's figure: from here on rows say nothing of it

double factor(Factors factors, std::size_t figure) { return factors.empty() ? 1 : factors[figure]; }

BytesPerSecond times(BytesPerSecond rate, double by) { return BytesPerSecond(rate.value() * by); }
Nanoseconds times(Nanoseconds time, double by) { return Nanoseconds(std::llround(time.as_double() * by)); }

/// Kernels written for training, where the GPU has figures of such.
cost::DeviceRates rates_of(const KernelTable& table) {
  model::Job job;
  job.precision = table.precision;
  job.fp8_recipe = table.recipe;
  job.fused_kernels = true;
  return cost::device_rates(table.gpu, job);
}

/// So many GPUs, on nodes as the table has them.
cluster::DeviceShape shape_of(const KernelTable& table, int gpus) {
  cluster::DeviceShape shape;
  shape.device = table.gpu;
  shape.intra = cluster::usual_link(table.gpu, gpus);
  shape.per_node = table.gpus_per_node > 0 ? std::min(gpus, table.gpus_per_node) : gpus;
  shape.nodes = gpus / shape.per_node;
  shape.inter = table.network;
  return shape;
}

/// Matrix products of a table's precision, forward, and the casts of what they read.
class Products {
 public:
  Products(const KernelTable& table, double rate, double memory, double launch)
      : narrow_(is_narrow(table.precision)), rates_(rates_of(table)), wide_(bytes_of(table.precision)) {
    rates_.matrix *= rate;
    rates_.attention *= rate;
    rates_.memory *= memory;
    rates_.launch *= launch;
  }

  /// Bytes of a value that is multiplied, and of one that comes out.
  [[nodiscard]] double element() const { return narrow_ ? rates_.copies.one : static_cast<double>(wide_); }
  [[nodiscard]] double result() const { return narrow_ ? 2 : element(); }

  [[nodiscard]] double seconds(const cost::Gemm& product) const {
    return cost::gemm_seconds(product, element(), result(), rates_.matrix, rates_);
  }
  /// Of inputs to the narrow format; nothing where there is none.
  [[nodiscard]] double cast(double values) const {
    return narrow_ ? cost::streaming_seconds(values * (result() + element()), rates_) : 0;
  }

 private:
  bool narrow_;
  cost::DeviceRates rates_;
  std::int64_t wide_;
};

/// What moves rows by expert before, between and behind the products of TensorRT-LLM's experts: short rows from and to
/// scattered places, which reach a rate of their own (on H100 two thirds of a copy's, on Blackwell half of it).
class Rows {
 public:
  Rows(const KernelTable& table, const Products& products, double memory, double launch)
      : products_(products), rates_(rates_of(table)) {
    by_blocks_ = table.precision == DType::kFp8 && table.recipe == model::Fp8Recipe::kBlockwise;
    given_ = table.precision == DType::kFp4 ? products.result() : products.element();
    rates_.memory *= memory;
    rates_.launch *= launch;
  }

  /// Casts of tokens before they become rows, but where scales are of blocks.
  [[nodiscard]] double tokens_cast(double values) const { return by_blocks_ ? 0 : products_.cast(values); }
  /// Of tokens, into rows.
  [[nodiscard]] double gathered(double values) const {
    return moved(values * (by_blocks_ ? 2 * wide() + cast() : 2 * given_));
  }
  /// `read` values into `written` ones.
  [[nodiscard]] double activated(double read, double written) const {
    return moved(read * wide() + written * (by_blocks_ ? wide() + cast() : given_));
  }
  /// Rows into tokens.
  [[nodiscard]] double summed(double read, double written) const { return moved((read + written) * wide()); }

 private:
  [[nodiscard]] double moved(double bytes) const { return cost::streaming_seconds(bytes, rates_); }
  [[nodiscard]] double wide() const { return products_.result(); }
  [[nodiscard]] double cast() const { return products_.result() + products_.element(); }

  const Products& products_;
  cost::DeviceRates rates_;
  bool by_blocks_ = false;  ///< rows are moved in 16 bits, and cast by a kernel behind
  double given_ = 0;  ///< bytes of a value that products read, as it is moved: in 4 bits as slowly as in 16, eight
                      ///< values a thread (moe_kernels.cu, CVT_FP4_ELTS_PER_THREAD)
};

class Seconds {
 public:
  Seconds(const KernelTable& table, Factors factors) : table_(table), factors_(factors) {}

  double operator()(const ProductCall& call) const {
    const Products products(table_, factor(factors_, 0), factor(factors_, 1), factor(factors_, 2));
    return products.cast(call.m * call.k) + products.seconds({call.m, call.n, call.k, 1});
  }

  double operator()(const ExpertsCall& call) const {
    const Products products(table_, factor(factors_, 0), 1, factor(factors_, 2));
    const Rows moved(table_, products, factor(factors_, 1), factor(factors_, 2));
    const double rows = call.tokens * call.chosen / call.ranks;  // of all experts of the rank
    const double experts = call.experts / call.ranks;
    const double first = (call.products - 1) * call.inner;  // beside each other: gate and up
    return moved.tokens_cast(call.tokens * call.values) + moved.gathered(rows * call.values) +
           products.seconds({rows / experts, first, call.values, experts}) +
           moved.activated(rows * first, rows * call.inner) +
           products.seconds({rows / experts, call.values, call.inner, experts}) +
           moved.summed(rows * call.values, call.tokens * call.values);
  }

  double operator()(const StreamCall& call) const {
    cost::DeviceRates rates = rates_of(table_);
    rates.memory *= factor(factors_, 0);
    rates.launch *= factor(factors_, 1);
    return cost::streaming_seconds(call.bytes, rates);
  }

  double operator()(const CollectiveCall& call) const {
    cluster::DeviceShape shape = shape_of(table_, call.gpus);
    shape.intra.bandwidth = times(shape.intra.bandwidth, factor(factors_, 0));
    shape.intra.latency = times(shape.intra.latency, factor(factors_, 1));
    shape.intra.ramp = times(shape.intra.ramp, factor(factors_, 2));
    return cost::collective_seconds(call.operation, call.bytes, group_of(shape, call.gpus), shape);
  }

  double operator()(const DispatchCall& call) const {
    constexpr double kElement = 2;
    cluster::DeviceShape shape = shape_of(table_, call.gpus);
    shape.intra.bandwidth = times(shape.intra.bandwidth, factor(factors_, 0));
    shape.inter.bandwidth = times(shape.inter.bandwidth, factor(factors_, 1));
    return cost::dispatch_seconds(kElement * call.tokens * call.values, call.choice, group_of(shape, call.gpus), shape);
  }

 private:
  static cost::Group group_of(const cluster::DeviceShape& shape, int gpus) { return cost::place_group(gpus, 1, shape); }

  const KernelTable& table_;
  Factors factors_;
};

double error_of(const KernelTable& table, const KernelTime& row, Factors factors) {
  return modelled_seconds(table, row.call, factors) / row.seconds - 1;
}

/// By the parity of the bits of their number: rows on a grid are spread over both halves in every direction.
bool is_in_half(std::size_t row, int half) { return std::popcount(row) % 2 == half; }

/// Each figure as the catalogue has it, less and more, beside each of all others; the catalogue's first.
std::vector<std::vector<double>> starts(std::size_t figures) {
  std::size_t count = 1;
  for (std::size_t figure = 0; figure < figures; ++figure) count *= kStarts.size();
  std::vector<std::vector<double>> all(count);
  for (std::size_t number = 0; number < count; ++number) {
    std::size_t left = number;
    for (std::size_t figure = 0; figure < figures; ++figure, left /= kStarts.size()) {
      all[number].push_back(kStarts[left % kStarts.size()]);
    }
  }
  return all;
}

/// With the least mean of |log(modelled / measured)|.
std::vector<double> fitted_factors(const KernelTable& table, const std::vector<const KernelTime*>& rows) {
  const auto loss = [&](const std::vector<double>& factors) {
    if (std::ranges::any_of(factors, [](double by) { return by > kMost || by < 1 / kMost; })) {
      return std::numeric_limits<double>::infinity();
    }
    double sum = 0;
    for (const KernelTime* row : rows) {
      sum += std::abs(std::log(modelled_seconds(table, row->call, factors) / row->seconds));
    }
    return sum;
  };
  // Sums of absolute values have creases in which steps along single figures stall: the search starts many times. A
  // figure that rows say little of stays near the catalogue's.
  const double least_gain = kLeastGain * static_cast<double>(rows.size());
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& start : starts(figures_of(table).size())) {
    std::vector<double> found = compass_search(start, kSteps, loss);
    const double lost = loss(found);
    if (!best.empty() && !(lost < least - least_gain)) continue;
    best = std::move(found);
    least = lost;
  }
  return best;
}

std::vector<double> fitted_to(const KernelTable& table, int half) {
  std::vector<const KernelTime*> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (half < 0 || is_in_half(i, half)) rows.push_back(&table.rows[i]);
  }
  return fitted_factors(table, rows);
}

}  // namespace

bool has_products(const KernelTable& table) {
  return table.kernel == Kernel::kProduct || table.kernel == Kernel::kExperts;
}

std::span<const std::string_view> figures_of(const KernelTable& table) {
  switch (table.kernel) {
    case Kernel::kProduct: return kProductFigures;
    case Kernel::kExperts: return kExpertFigures;
    case Kernel::kStream: return kStreamFigures;
    case Kernel::kCollective: return kCollectiveFigures;
    case Kernel::kDispatch: return kDispatchFigures;
  }
  return {};
}

double modelled_seconds(const KernelTable& table, const KernelCall& call, std::span<const double> factors) {
  return std::visit(Seconds(table, factors), call);
}

KernelFit fit_kernels(const KernelTable& table) {
  constexpr int kAll = -1;
  KernelFit fit;
  const std::array halves{fitted_to(table, 0), fitted_to(table, 1)};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const KernelTime& row = table.rows[i];
    fit.catalogue.push_back(error_of(table, row, {}));
    fit.held_out.push_back(error_of(table, row, is_in_half(i, 0) ? halves[1] : halves[0]));
  }
  fit.factors = fitted_to(table, kAll);
  return fit;
}

}  // namespace tangram::calibrate
