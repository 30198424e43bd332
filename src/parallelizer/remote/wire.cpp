#include "wire.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <charconv>
#include <stdexcept>
#include <vector>

#include "../words.hpp"

namespace tangram::parallelizer {
namespace {

constexpr std::string_view kProgram = "tangram-worker/1";
constexpr std::size_t kSecretBytes = 16;
constexpr std::size_t kLongestOrder = std::size_t{16} << 20;  // arguments and environment: execve(2) takes 6 MiB

struct RoleName {
  Role role;
  std::string_view name;
};
constexpr std::array kRoleNames{RoleName{Role::kAgent, "agent"}, RoleName{Role::kChannel, "channel"},
                                RoleName{Role::kOutput, "output"}};

std::string random_digits() {
  std::array<unsigned char, kSecretBytes> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("the kernel gives no random bytes");
  }
  std::string digits;
  for (const unsigned char byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

std::optional<std::int64_t> number_from(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

void append(std::string& payload, std::string_view text) {
  payload += text;
  payload += '\0';
}

/// The numbers of a start line.
struct StartLine {
  std::int64_t launch = 0;
  std::int64_t memory = 0;  ///< bytes; 0: no limit
  std::size_t arguments = 0;
  std::size_t variables = 0;
  std::size_t bytes = 0;
};

std::optional<StartLine> read_start_line(const std::vector<std::string_view>& words) {
  if (words.size() != 6) return std::nullopt;
  std::array<std::int64_t, 5> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = number_from(words[i + 1]);
    if (!number) return std::nullopt;
    numbers[i] = *number;
  }
  StartLine line{numbers[0], numbers[1], static_cast<std::size_t>(numbers[2]), static_cast<std::size_t>(numbers[3]),
                 static_cast<std::size_t>(numbers[4])};
  if (line.arguments == 0 || line.bytes > kLongestOrder) return std::nullopt;
  return line;
}

std::optional<StartOrder> start_order(const StartLine& line, std::string_view payload) {
  const std::vector<std::string_view> strings = parts_of(payload, '\0');
  if (strings.size() != line.arguments + line.variables) return std::nullopt;
  StartOrder order;
  order.launch = line.launch;
  if (line.memory > 0) order.command.memory_limit = Bytes(line.memory);
  for (std::size_t i = 0; i < strings.size(); ++i) {
    if (i < line.arguments) {
      order.command.arguments.emplace_back(strings[i]);
      continue;
    }
    const std::size_t equals = strings[i].find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    order.command.environment.emplace_back(strings[i].substr(0, equals), strings[i].substr(equals + 1));
  }
  return order;
}

}  // namespace

Secret make_secret() { return {random_digits(), random_digits()}; }

std::string to_text(const Secret& secret) { return secret.call + ":" + secret.answer; }

std::optional<Secret> secret_from(std::string_view text) {
  constexpr std::size_t kDigits = 2 * kSecretBytes;
  if (text.size() != 2 * kDigits + 1 || text[kDigits] != ':') return std::nullopt;
  return Secret{std::string(text.substr(0, kDigits)), std::string(text.substr(kDigits + 1))};
}

std::string greeting_line(const Greeting& greeting) {
  std::string_view role;
  for (const RoleName& entry : kRoleNames) {
    if (entry.role == greeting.role) role = entry.name;
  }
  return fmt::format("{} {} {} {}\n", kProgram, greeting.call, role, greeting.of);
}

std::optional<Greeting> read_greeting(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 4 || words[0] != kProgram) return std::nullopt;
  for (const RoleName& entry : kRoleNames) {
    if (entry.name == words[2]) return Greeting{std::string(words[1]), entry.role, std::string(words[3])};
  }
  return std::nullopt;
}

std::string to_text(const StartOrder& order) {
  std::string payload;
  for (const std::string& word : order.command.arguments) append(payload, word);
  for (const auto& [name, value] : order.command.environment) append(payload, fmt::format("{}={}", name, value));
  return fmt::format("start {} {} {} {} {}\n", order.launch, order.command.memory_limit.value_or(Bytes(0)).value(),
                     order.command.arguments.size(), order.command.environment.size(), payload.size()) +
         payload;
}

std::string to_text(const StopOrder& order) { return fmt::format("stop {}\n", order.grace.count()); }

std::optional<Order> take_order(std::string& incoming, bool& broken) {
  const std::size_t end = incoming.find('\n');
  if (end == std::string::npos) {
    broken = incoming.size() > kLongestGreeting;
    return std::nullopt;
  }
  const std::vector<std::string_view> words = words_of(std::string_view(incoming).substr(0, end));
  broken = true;
  if (words.size() == 2 && words[0] == "stop") {
    const auto grace = number_from(words[1]);
    if (!grace) return std::nullopt;
    incoming.erase(0, end + 1);
    broken = false;
    return StopOrder{std::chrono::milliseconds(*grace)};
  }
  if (words.empty() || words[0] != "start") return std::nullopt;
  const auto line = read_start_line(words);
  if (!line) return std::nullopt;
  broken = false;
  if (incoming.size() < end + 1 + line->bytes) return std::nullopt;
  auto order = start_order(*line, std::string_view(incoming).substr(end + 1, line->bytes));
  incoming.erase(0, end + 1 + line->bytes);
  broken = !order;
  if (!order) return std::nullopt;
  return std::move(*order);
}

std::optional<std::string> take_line(std::string& incoming) {
  const std::size_t end = incoming.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = incoming.substr(0, end);
  incoming.erase(0, end + 1);
  return line;
}

}  // namespace tangram::parallelizer
