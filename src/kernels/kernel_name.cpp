#include "kernel_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace tangram::kernels {
namespace {

constexpr std::size_t kLongestMangled = 1 << 14;  // templates of CUTLASS have some thousand letters

std::string demangled(std::string_view text) {
  if (!text.starts_with("_Z") || text.size() > kLongestMangled) return std::string(text);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(text).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && plain ? std::string(plain.get()) : std::string(text);
}

/// "void " of "void flash::flash_fwd_kernel": functions of templates are written with their results.
void drop_result(std::string& function) {
  const std::size_t space = function.rfind(' ');
  if (space != std::string::npos) function.erase(0, space + 1);
}

}  // namespace

KernelName kernel_name(std::string_view text) {
  const std::string plain = demangled(text);
  constexpr std::string_view kCopies = "[CUDA ";  // "[CUDA memcpy Host-to-Device]" of Nsight
  if (plain.starts_with(kCopies) || plain.starts_with("Memcpy ") || plain.starts_with("Memset ")) return {plain, ""};
  KernelName name;
  const std::size_t open = plain.find_first_of("<(");
  name.function = plain.substr(0, open);
  if (open != std::string::npos) name.arguments = plain.substr(open);
  drop_result(name.function);
  return name;
}

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t star = std::string_view::npos;  // the last one passed, and what it stands for so far
  std::size_t taken = 0;
  std::size_t p = 0;
  std::size_t t = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

}  // namespace tangram::kernels
