#include "program_digest.hpp"

#include <dlfcn.h>

#include "tangram/base/digest.hpp"
#include "tangram/io/file.hpp"

namespace tangram::app {

namespace {

std::string digest_of_file(const std::string& name) {
  const auto content = io::read_file(name);
  return content ? digest(*content) : name;
}

/// Where exp, log and the like come from; empty: linked statically.
std::string mathematics() {
  Dl_info object{};
  void* const symbol = dlsym(RTLD_DEFAULT, "exp");
  if (symbol == nullptr || dladdr(symbol, &object) == 0 || object.dli_fname == nullptr) return "";
  return object.dli_fname;
}

}  // namespace

std::string program_digest() { return digest(digest_of_file("/proc/self/exe") + " " + digest_of_file(mathematics())); }

}  // namespace tangram::app
