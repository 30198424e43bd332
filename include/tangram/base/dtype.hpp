// Number formats that matrix units compute in.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tangram {

enum class DType : std::uint8_t { kFp32, kTf32, kFp16, kBf16, kFp8 };
inline constexpr int kDTypeCount = 5;

[[nodiscard]] constexpr std::int64_t bytes_of(DType type) {
  switch (type) {
    case DType::kFp32:
    case DType::kTf32: return 4;
    case DType::kFp16:
    case DType::kBf16: return 2;
    case DType::kFp8: return 1;
  }
  return 4;
}

[[nodiscard]] constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::kFp32: return "fp32";
    case DType::kTf32: return "tf32";
    case DType::kFp16: return "fp16";
    case DType::kBf16: return "bf16";
    case DType::kFp8: return "fp8";
  }
  return "fp32";
}

[[nodiscard]] constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (to_string(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace tangram
