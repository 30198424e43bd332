#include "nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "places.hpp"

namespace tangram::inventory {
namespace {

// The part of NVML's binary interface that is used here (NVML API reference; stable since driver 410).
using Device = void*;
using Result = int;
constexpr Result kSuccess = 0;
constexpr int kNvlinkCapability = 2;  // of nvmlDeviceGetP2PStatus
constexpr int kPeersReach = 0;        // its answer "OK"

// nvmlMemory_t: total, free, used.
using Memory = std::array<unsigned long long, 3>;

class Library {
 public:
  explicit Library(const std::string& name) : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL), &close) {
    if (!handle_) {
      const char* why = dlerror();
      error_ = why != nullptr ? why : "it cannot be opened";
    }
  }

  [[nodiscard]] const std::string& error() const { return error_; }

  /// Null, with error(), where the library has no such function.
  template <class Function>
  Function* find(const char* name) {
    void* found = handle_ ? dlsym(handle_.get(), name) : nullptr;
    if (found == nullptr && error_.empty()) error_ = fmt::format("it has no {}", name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  static void close(void* handle) { dlclose(handle); }

  std::unique_ptr<void, void (*)(void*)> handle_;
  std::string error_;
};

struct Functions {
  explicit Functions(Library& library)
      : init(library.find<Result()>("nvmlInit_v2")),
        shutdown(library.find<Result()>("nvmlShutdown")),
        error_text(library.find<const char*(Result)>("nvmlErrorString")),
        count(library.find<Result(unsigned*)>("nvmlDeviceGetCount_v2")),
        device(library.find<Result(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2")),
        name(library.find<Result(Device, char*, unsigned)>("nvmlDeviceGetName")),
        memory(library.find<Result(Device, unsigned long long*)>("nvmlDeviceGetMemoryInfo")),
        generation(library.find<Result(Device, unsigned*)>("nvmlDeviceGetMaxPcieLinkGeneration")),
        width(library.find<Result(Device, unsigned*)>("nvmlDeviceGetMaxPcieLinkWidth")),
        mig(library.find<Result(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode")),
        peers(library.find<Result(Device, Device, int, int*)>("nvmlDeviceGetP2PStatus")) {}

  Result (*init)();
  Result (*shutdown)();
  const char* (*error_text)(Result);
  Result (*count)(unsigned*);
  Result (*device)(unsigned, Device*);
  Result (*name)(Device, char*, unsigned);
  Result (*memory)(Device, unsigned long long*);
  Result (*generation)(Device, unsigned*);
  Result (*width)(Device, unsigned*);
  Result (*mig)(Device, unsigned*, unsigned*);
  Result (*peers)(Device, Device, int, int*);
};

class Driver {
 public:
  explicit Driver(const Functions& functions) : call_(functions) {}

  tl::expected<DriverGpus, std::string> ask() {
    unsigned count = 0;
    if (const Result result = call_.count(&count); result != kSuccess) return tl::unexpected(text(result));
    for (unsigned i = 0; i < count; ++i) take(i);
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      std::vector<bool>& row = found_.nvlink.emplace_back();
      for (std::size_t b = 0; b < devices_.size(); ++b) row.push_back(a != b && linked(devices_[a], devices_[b]));
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::string text(Result result) const {
    const char* text = call_.error_text(result);
    return text != nullptr ? printable(text) : fmt::format("error {}", result);
  }

  void take(unsigned index) {
    DriverGpu& gpu = found_.gpus.emplace_back();
    Device& device = devices_.emplace_back(nullptr);
    std::array<char, 128> name{};  // NVML's names have at most 96
    Memory memory{};
    Result result = call_.device(index, &device);
    if (result == kSuccess) result = call_.name(device, name.data(), static_cast<unsigned>(name.size() - 1));
    if (result == kSuccess) result = call_.memory(device, memory.data());
    if (result != kSuccess) {
      gpu.failure = text(result);
      device = nullptr;
      return;
    }
    gpu.name = name.data();
    gpu.memory = Bytes(static_cast<std::int64_t>(memory[0]));
    unsigned generation = 0;
    unsigned width = 0;
    unsigned sliced = 0;
    unsigned pending = 0;
    if (call_.generation(device, &generation) == kSuccess) gpu.pcie_generation = static_cast<int>(generation);
    if (call_.width(device, &width) == kSuccess) gpu.pcie_lanes = static_cast<int>(width);
    gpu.sliced = call_.mig(device, &sliced, &pending) == kSuccess && sliced != 0;
  }

  [[nodiscard]] bool linked(Device a, Device b) const {
    int status = -1;
    if (a == nullptr || b == nullptr) return false;
    return call_.peers(a, b, kNvlinkCapability, &status) == kSuccess && status == kPeersReach;
  }

  const Functions& call_;
  std::vector<Device> devices_;
  DriverGpus found_;
};

}  // namespace

tl::expected<DriverGpus, std::string> ask_driver(const std::string& name) {
  Library library(name);
  const Functions functions(library);
  if (!library.error().empty()) return tl::unexpected(printable(library.error()));
  if (const Result result = functions.init(); result != kSuccess) {
    const char* text = functions.error_text(result);
    return tl::unexpected(text != nullptr ? printable(text) : fmt::format("error {}", result));
  }
  auto found = Driver(functions).ask();
  functions.shutdown();
  return found;
}

}  // namespace tangram::inventory
