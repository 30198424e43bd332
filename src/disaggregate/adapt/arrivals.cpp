#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <random>
#include <string_view>

#include "tangram/base/problem.hpp"
#include "tangram/disaggregate/adapt.hpp"

namespace tangram::disaggregate {

namespace {

constexpr double kMostTokens = 10'000'000;  // no model has such a context

std::optional<double> next_number(std::string_view& rest) {
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
  return value;
}

bool is_count(const std::optional<double>& tokens) {
  return tokens && *tokens >= 1 && *tokens <= kMostTokens && *tokens == std::floor(*tokens);
}

Diagnostic wrong_arrival(const std::string& file, int line, std::string message) {
  Diagnostic wrong = problem(ErrorKind::kInput, "wrong-arrival", std::move(message),
                             "a line is milliseconds, prompt and generated tokens: 1250,1024,128");
  wrong.where = {file, line, 1};
  return wrong;
}

}  // namespace

Expected<std::vector<Request>> read_arrivals(const std::string& text, const std::string& file) {
  std::vector<Request> requests;
  Diagnostics mistakes;
  std::string_view rest = text;
  bool may_be_header = true;
  for (int line = 1; !rest.empty() && mistakes.size() < kMaxDiagnostics; ++line) {
    const std::size_t end = rest.find('\n');
    std::string_view row = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    if (row.empty() || row.front() == '#') continue;
    const auto ms = next_number(row);
    if (!ms && may_be_header) {
      may_be_header = false;
      continue;
    }
    may_be_header = false;
    const auto prompt = next_number(row);
    const auto generated = next_number(row);
    if (!ms || !std::isfinite(*ms) || !is_count(prompt) || !is_count(generated) || !row.empty()) {
      mistakes.push_back(wrong_arrival(file, line, "expected a time and two counts of tokens"));
    } else if (!requests.empty() && *ms * 1e-3 < requests.back().arrival) {
      mistakes.push_back(wrong_arrival(file, line, "the request arrives before the one above"));
    } else {
      requests.push_back({*ms * 1e-3, static_cast<int>(*prompt), static_cast<int>(*generated)});
    }
  }
  if (requests.empty() && mistakes.empty()) mistakes.push_back(wrong_arrival(file, 1, "the file holds no requests"));
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return requests;
}

std::vector<Request> random_arrivals(int count, double per_second, Request like, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Request> requests;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;  // in [0, 1), alike on every machine
    now -= std::log1p(-share) / per_second;
    requests.push_back({now, like.prompt, like.generated});
  }
  return requests;
}

}  // namespace tangram::disaggregate
