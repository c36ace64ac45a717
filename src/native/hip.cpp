#include "hip.h"

#include <cctype>
#include <cstring>
#include <mutex>
#include <vector>

#include "platform.h"

namespace triton::hip {
namespace {

using Result = int;  // hipError_t

// The entry points: one line each, used through `api`.
#define TRITON_HIP_ENTRIES(X)                                                        \
  X(hipInit, Result, unsigned)                                                       \
  X(hipGetErrorName, const char*, Result)                                            \
  X(hipGetErrorString, const char*, Result)                                          \
  X(hipGetDeviceCount, Result, int*)                                                 \
  X(hipGetDevice, Result, int*)                                                      \
  X(hipSetDevice, Result, int)                                                       \
  X(hipDeviceGetName, Result, char*, int, int)                                       \
  X(hipDeviceGetAttribute, Result, int*, int, int)                                   \
  X(hipDeviceSynchronize, Result)                                                    \
  X(hipModuleLoadDataEx, Result, void**, const void*, unsigned, int*, void**)        \
  X(hipModuleUnload, Result, void*)                                                  \
  X(hipModuleGetFunction, Result, void**, void*, const char*)                        \
  X(hipFuncGetAttribute, Result, int*, int, void*)                                   \
  X(hipModuleLaunchKernel, Result, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) \
  X(hipMalloc, Result, void**, size_t)                                               \
  X(hipFree, Result, void*)                                                          \
  X(hipMemcpy, Result, void*, const void*, size_t, int)

struct Api {
#define TRITON_HIP_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
  TRITON_HIP_ENTRIES(TRITON_HIP_MEMBER)
#undef TRITON_HIP_MEMBER
  Result (*properties)(void*, int) = nullptr;  // hipGetDeviceProperties, under the name of the release
  Result (*cooperative)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**) = nullptr;
  std::string error;  // why the runtime cannot be used; empty when it can
  int devices = 0;
};

Api api;
std::once_flag opened;

std::string message(Result result, const char* what) {
  const char* name = api.hipGetErrorName ? api.hipGetErrorName(result) : nullptr;
  const char* text = api.hipGetErrorString ? api.hipGetErrorString(result) : nullptr;
  return std::string(what) + ": " + (text ? text : "error") + " (" + (name ? name : std::to_string(result).c_str()) + ")";
}

template <typename Function>
void find(void* library, const char* symbol, Function* function) {
  *function = reinterpret_cast<Function>(platform::find_symbol(library, symbol));
}

void open_runtime() {
  std::string reason, first;
  void* library = nullptr;
  const char* const* names = platform::hip_runtime_names();
  for (size_t i = 0; names[i] && !library; ++i) {
    library = platform::open_library(names[i], &reason);
    if (first.empty()) first = reason;
  }
  if (!library) {
    api.error = std::string("no HIP runtime: ") + names[0] + " cannot be opened (" + first + ")";
    return;
  }
  std::string missing;
#define TRITON_HIP_FIND(name, result, ...) \
  find(library, #name, &api.name);         \
  if (!api.name) missing = #name;
  TRITON_HIP_ENTRIES(TRITON_HIP_FIND)
#undef TRITON_HIP_FIND
  find(library, "hipGetDevicePropertiesR0600", &api.properties);
  if (!api.properties) find(library, "hipGetDeviceProperties", &api.properties);
  if (!api.properties) missing = "hipGetDeviceProperties";
  find(library, "hipModuleLaunchCooperativeKernel", &api.cooperative);
  if (!missing.empty()) {
    api.error = "the HIP runtime has no " + missing + "; it is too old";
    return;
  }
  if (Result result = api.hipInit(0)) {
    api.error = message(result, "the HIP runtime does not start");
    return;
  }
  if (Result result = api.hipGetDeviceCount(&api.devices)) {
    api.error = message(result, "the HIP runtime does not list its devices");
  } else if (api.devices == 0) {
    api.error = "the HIP runtime finds no GPU";
  }
}

bool ready(std::string* error) {
  std::call_once(opened, open_runtime);
  if (api.error.empty()) return true;
  *error = api.error;
  return false;
}

bool check(Result result, const char* what, std::string* error) {
  if (!result) return true;
  *error = message(result, what);
  return false;
}

// Makes a device current while it lives, then puts back the one before.
class OnDevice {
 public:
  bool enter(int device, std::string* error) {
    if (!check(api.hipGetDevice(&before_), "hipGetDevice", error)) return false;
    if (before_ == device) return true;
    if (!check(api.hipSetDevice(device), "cannot use the GPU", error)) return false;
    restore_ = true;
    return true;
  }
  ~OnDevice() {
    if (restore_) api.hipSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool restore_ = false;
};

// The processor's name in hipDeviceProp_t (field gcnArchName). It is found by its text, since its place differs among releases of HIP.
std::string processor_name(const std::vector<char>& properties) {
  for (size_t at = 256; at + 8 < properties.size(); ++at) {
    const char* text = properties.data() + at;
    if (std::strncmp(text, "gfx", 3) == 0 && std::isxdigit(static_cast<unsigned char>(text[3]))) return std::string(text, strnlen(text, 256));
  }
  return std::string();
}

}  // namespace

int device_count(std::string* error) { return ready(error) ? api.devices : -1; }

bool device_attributes(int device, std::map<std::string, int64_t>* out, std::map<std::string, std::string>* texts, std::string* error) {
  if (!ready(error)) return false;
  static const struct {
    const char* name;
    int number;
  } wanted[] = {{"sm_clock_rate", 5},        {"l2_cache_size", 19},       {"major", 23},         {"max_threads_per_sm", 57}, {"mem_bus_width", 59},
                {"mem_clock_rate", 60},      {"minor", 61},               {"multiprocessor_count", 63}, {"max_num_regs", 71}, {"max_shared_mem", 74},
                {"warpSize", 87}};
  for (const auto& attribute : wanted) {
    int value = 0;
    if (!check(api.hipDeviceGetAttribute(&value, attribute.number, device), attribute.name, error)) return false;
    (*out)[attribute.name] = value;
  }
  char name[256] = {};
  if (!check(api.hipDeviceGetName(name, sizeof name - 1, device), "hipDeviceGetName", error)) return false;
  std::vector<char> properties(16384, '\0');  // more than any release's structure
  if (!check(api.properties(properties.data(), device), "hipGetDeviceProperties", error)) return false;
  (*texts)["name"] = name;
  (*texts)["arch"] = processor_name(properties);
  return true;
}

int current_device(std::string* error) {
  int device = 0;
  return ready(error) && check(api.hipGetDevice(&device), "hipGetDevice", error) ? device : -1;
}

bool set_current_device(int device, std::string* error) {
  if (!ready(error)) return false;
  if (device < 0 || device >= api.devices) {
    *error = "there is no GPU " + std::to_string(device) + "; this machine has " + std::to_string(api.devices);
    return false;
  }
  return check(api.hipSetDevice(device), "cannot use the GPU", error);
}

bool load(const std::string& image, const std::string& name, int device, Kernel* out, std::string* error) {
  OnDevice scope;
  if (!ready(error) || !scope.enter(device, error)) return false;
  out->device = device;
  if (!check(api.hipModuleLoadDataEx(&out->module, image.data(), 0, nullptr, nullptr), "the HIP runtime refuses the code object", error))
    return false;
  bool good = check(api.hipModuleGetFunction(&out->function, out->module, name.c_str()), name.c_str(), error);
  struct {
    int number;
    int* value;
  } facts[] = {{0, &out->max_threads}, {1, &out->static_shared}, {3, &out->local_bytes}, {4, &out->registers}};
  for (auto& fact : facts) good = good && check(api.hipFuncGetAttribute(fact.value, fact.number, out->function), "hipFuncGetAttribute", error);
  if (!good) {
    api.hipModuleUnload(out->module);
    *out = Kernel();
  }
  return good;
}

void unload(const Kernel& kernel) {
  std::string ignored;
  OnDevice scope;
  if (kernel.module && scope.enter(kernel.device, &ignored)) api.hipModuleUnload(kernel.module);
}

bool launch(const Launch& launch, std::string* error) {
  if (!ready(error)) return false;
  void* few[64];
  std::vector<void*> many;
  void** params = few;
  if (launch.count > 64) {
    many.resize(launch.count);
    params = many.data();
  }
  for (size_t i = 0; i < launch.count; ++i) params[i] = const_cast<char*>(static_cast<const char*>(launch.args)) + 8 * i;
  const unsigned* grid = launch.grid;
  if (!launch.cooperative) {
    Result result = api.hipModuleLaunchKernel(launch.function, grid[0], grid[1], grid[2], launch.threads, 1, 1, launch.shared, launch.stream,
                                              params, nullptr);
    return check(result, "the kernel cannot be launched", error);
  }
  if (!api.cooperative) {
    *error = "this HIP runtime has no cooperative launches of loaded kernels";
    return false;
  }
  Result result = api.cooperative(launch.function, grid[0], grid[1], grid[2], launch.threads, 1, 1, launch.shared, launch.stream, params);
  return check(result, "the kernel cannot be launched", error);
}

bool synchronize(std::string* error) {
  return ready(error) && check(api.hipDeviceSynchronize(), "a kernel failed", error);
}

bool allocate(size_t bytes, uint64_t* pointer, std::string* error) {
  void* block = nullptr;
  if (!ready(error) || !check(api.hipMalloc(&block, bytes), "hipMalloc", error)) return false;
  *pointer = reinterpret_cast<uintptr_t>(block);
  return true;
}

bool release(uint64_t pointer, std::string* error) {
  return ready(error) && check(api.hipFree(reinterpret_cast<void*>(static_cast<uintptr_t>(pointer))), "hipFree", error);
}

bool copy_in(uint64_t to, const void* from, size_t bytes, std::string* error) {  // hipMemcpyHostToDevice 1
  return ready(error) && check(api.hipMemcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(to)), from, bytes, 1), "hipMemcpy", error);
}

bool copy_out(void* to, uint64_t from, size_t bytes, std::string* error) {  // hipMemcpyDeviceToHost 2
  return ready(error) && check(api.hipMemcpy(to, reinterpret_cast<void*>(static_cast<uintptr_t>(from)), bytes, 2), "hipMemcpy", error);
}

}  // namespace triton::hip
