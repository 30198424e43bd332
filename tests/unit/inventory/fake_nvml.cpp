// A driver with five GPUs: four A6000 in NVLink pairs behind PCIe 3.0, and one that fell off the bus.
#include <cstdint>
#include <cstring>

namespace {
constexpr unsigned kGpus = 5;
constexpr unsigned kLost = 4;
constexpr int kGpuIsLost = 15;  // NVML's own number
std::uintptr_t index_of(void* device) { return reinterpret_cast<std::uintptr_t>(device) - 1; }
}  // namespace

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
const char* nvmlErrorString(int result);
int nvmlDeviceGetCount_v2(unsigned* count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);
int nvmlDeviceGetName(void* device, char* name, unsigned length);
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory);
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation);
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* width);
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending);
int nvmlDeviceGetP2PStatus(void* a, void* b, int capability, int* status);

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int result) { return result == kGpuIsLost ? "GPU is lost" : "Unknown Error"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1);
  return index == kLost ? kGpuIsLost : 0;
}
int nvmlDeviceGetName(void*, char* name, unsigned length) {
  std::strncpy(name, "NVIDIA RTX A6000", length);
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 49140ULL << 20U;
  memory[1] = memory[0];
  memory[2] = 0;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  *generation = 3;
  return 0;
}
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) {
  *width = 16;
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned*, unsigned*) { return 3; }  // not supported
int nvmlDeviceGetP2PStatus(void* a, void* b, int capability, int* status) {
  *status = capability == 2 && index_of(a) / 2 == index_of(b) / 2 ? 0 : 1;
  return 0;
}
}
