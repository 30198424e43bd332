// Number formats that matrix units compute in.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace tangram {

enum class DType : std::uint8_t { kFp32, kTf32, kFp16, kBf16, kFp8, kFp4 };
inline constexpr int kDTypeCount = 6;

/// Of one value, in whole bytes: two of fp4 share theirs.
[[nodiscard]] constexpr std::int64_t bytes_of(DType type) {
  switch (type) {
    case DType::kFp32:
    case DType::kTf32: return 4;
    case DType::kFp16:
    case DType::kBf16: return 2;
    case DType::kFp8:
    case DType::kFp4: return 1;
  }
  return 4;
}

/// Of products alone: parameters and activations beside them have 2 bytes.
[[nodiscard]] constexpr bool is_narrow(DType type) { return type == DType::kFp8 || type == DType::kFp4; }

[[nodiscard]] constexpr std::string_view to_string(DType type) {
  switch (type) {
    case DType::kFp32: return "fp32";
    case DType::kTf32: return "tf32";
    case DType::kFp16: return "fp16";
    case DType::kBf16: return "bf16";
    case DType::kFp8: return "fp8";
    case DType::kFp4: return "fp4";
  }
  return "fp32";
}

[[nodiscard]] constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (to_string(static_cast<DType>(i)) == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

/// What matrix products of training can be told to compute in, as files have it.
inline const std::initializer_list<std::pair<std::string_view, DType>> kPrecisions = {
    {"bf16", DType::kBf16}, {"fp16", DType::kFp16}, {"fp8", DType::kFp8},
    {"fp4", DType::kFp4},   {"fp32", DType::kFp32}, {"tf32", DType::kTf32}};

}  // namespace tangram
