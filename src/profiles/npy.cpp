#include "npy.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include "reading.hpp"

namespace tangram::profiles {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kFixed = 8;  // magic and version

Diagnostic refusal(const std::string& file, const char* message) {
  return error_in(file, "", 0, "wrong-type", message,
                  "expected a one-dimensional array of little-endian floats (.npy)");
}

/// Little-endian, whatever the machine.
std::uint64_t whole(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

double real(std::string_view bytes) {
  if (bytes.size() == 8) return std::bit_cast<double>(whole(bytes));
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(whole(bytes))));
}

}  // namespace

Expected<std::vector<double>> read_npy(const std::string& content, const std::string& file) {
  const std::string_view all = content;
  if (all.size() < kFixed + 4 || !all.starts_with(kMagic)) return fail(refusal(file, "not a NumPy array"));
  const std::size_t length_bytes = all[6] == 1 ? 2 : 4;
  const std::uint64_t header_size = whole(all.substr(kFixed, length_bytes));
  const std::size_t begin = kFixed + length_bytes;
  if (header_size > all.size() - begin) return fail(refusal(file, "the array's header is cut off"));
  const std::string_view header = all.substr(begin, header_size);
  const bool doubles = header.find("'<f8'") != std::string_view::npos;
  const bool floats = header.find("'<f4'") != std::string_view::npos;
  const auto shape = words_of(text_between(header, "(", ",)").value_or(""));
  const auto count = shape.size() == 1 ? whole_number(shape.front()) : std::nullopt;
  if ((!doubles && !floats) || !count) return fail(refusal(file, "an array of another type or shape"));
  const std::size_t width = doubles ? 8 : 4;
  const std::string_view data = all.substr(begin + header_size);
  if (data.size() != static_cast<std::size_t>(*count) * width)
    return fail(refusal(file, "the array's data are cut off"));
  std::vector<double> values;
  for (std::size_t i = 0; i < data.size(); i += width) values.push_back(real(data.substr(i, width)));
  return values;
}

}  // namespace tangram::profiles
