#include "cuda.h"

#include <mutex>
#include <vector>

#include "platform.h"

namespace triton::cuda {
namespace {

using Result = int;  // CUresult
using Context = void*;

struct LaunchAttribute {  // CUlaunchAttribute: an id, padding to 8 bytes, a union of 64 bytes
  int id;
  char pad[4];
  union {
    char bytes[64];
    int flag;
    unsigned dimensions[3];
  } value;
};

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};

// The entry points: one line each, used through `api`.
#define TRITON_CUDA_ENTRIES(X)                                                            \
  X(cuInit, "cuInit", unsigned)                                                           \
  X(cuDriverGetVersion, "cuDriverGetVersion", int*)                                       \
  X(cuGetErrorName, "cuGetErrorName", Result, const char**)                               \
  X(cuGetErrorString, "cuGetErrorString", Result, const char**)                           \
  X(cuDeviceGetCount, "cuDeviceGetCount", int*)                                           \
  X(cuDeviceGet, "cuDeviceGet", int*, int)                                                \
  X(cuDeviceGetName, "cuDeviceGetName", char*, int, int)                                  \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", int*, int, int)                         \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", Context*, int)                  \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", Context*)                                         \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", Context)                                          \
  X(cuCtxGetDevice, "cuCtxGetDevice", int*)                                               \
  X(cuCtxSynchronize, "cuCtxSynchronize")                                                 \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", void**, const void*, unsigned, int*, void**) \
  X(cuModuleUnload, "cuModuleUnload", void*)                                              \
  X(cuModuleGetFunction, "cuModuleGetFunction", void**, void*, const char*)               \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", int*, int, void*)                           \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", void*, int, int)                            \
  X(cuLaunchKernel, "cuLaunchKernel", void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", void*, int, uint64_t)

struct Api {
#define TRITON_CUDA_MEMBER(member, symbol, ...) Result (*member)(__VA_ARGS__) = nullptr;
  TRITON_CUDA_ENTRIES(TRITON_CUDA_MEMBER)
#undef TRITON_CUDA_MEMBER
  Result (*cuLaunchKernelEx)(const LaunchConfig*, void*, void**, void**) = nullptr;  // drivers from CUDA 11.8 on
  Result (*cuTensorMapEncodeTiled)(void*, int, unsigned, void*, const uint64_t*, const uint64_t*, const unsigned*, const unsigned*, int, int, int,
                                   int) = nullptr;  // drivers from CUDA 12.0 on
  std::string error;  // why the driver cannot be used; empty when it can
  int devices = 0;
};

Api api;
std::once_flag opened;

std::string message(Result result, const char* what) {
  const char *name = nullptr, *text = nullptr;
  if (api.cuGetErrorName) api.cuGetErrorName(result, &name);
  if (api.cuGetErrorString) api.cuGetErrorString(result, &text);
  return std::string(what) + ": " + (text ? text : "error") + " (" + (name ? name : std::to_string(result).c_str()) + ")";
}

void open_driver() {
  std::string reason;
  void* library = platform::open_library(platform::cuda_driver_name(), &reason);
  if (!library) {
    api.error = std::string("no NVIDIA driver: ") + platform::cuda_driver_name() + " cannot be opened (" + reason + ")";
    return;
  }
  std::string missing;
#define TRITON_CUDA_FIND(member, symbol, ...)                                                                  \
  api.member = reinterpret_cast<decltype(api.member)>(platform::find_symbol(library, symbol));                 \
  if (!api.member) missing = symbol;
  TRITON_CUDA_ENTRIES(TRITON_CUDA_FIND)
#undef TRITON_CUDA_FIND
  api.cuLaunchKernelEx = reinterpret_cast<decltype(api.cuLaunchKernelEx)>(platform::find_symbol(library, "cuLaunchKernelEx"));
  api.cuTensorMapEncodeTiled =
      reinterpret_cast<decltype(api.cuTensorMapEncodeTiled)>(platform::find_symbol(library, "cuTensorMapEncodeTiled"));
  if (!missing.empty()) {
    api.error = "the NVIDIA driver has no " + missing + "; it is too old";
    return;
  }
  if (Result result = api.cuInit(0)) {
    api.error = message(result, "the NVIDIA driver does not start");
    return;
  }
  if (Result result = api.cuDeviceGetCount(&api.devices)) {
    api.error = message(result, "the NVIDIA driver does not list its devices");
  } else if (api.devices == 0) {
    api.error = "the NVIDIA driver finds no GPU";
  }
}

bool ready(std::string* error) {
  std::call_once(opened, open_driver);
  if (api.error.empty()) return true;
  *error = api.error;
  return false;
}

bool check(Result result, const char* what, std::string* error) {
  if (!result) return true;
  *error = message(result, what);
  return false;
}

std::mutex contexts_lock;
std::vector<Context> contexts;  // primary contexts, retained for the life of the process

bool primary_context(int device, Context* out, std::string* error) {
  std::lock_guard<std::mutex> guard(contexts_lock);
  if (contexts.empty()) contexts.resize(static_cast<size_t>(api.devices), nullptr);
  if (device < 0 || device >= api.devices) {
    *error = "there is no GPU " + std::to_string(device) + "; this machine has " + std::to_string(api.devices);
    return false;
  }
  Context& context = contexts[static_cast<size_t>(device)];
  int handle = 0;
  if (!context) {
    if (!check(api.cuDeviceGet(&handle, device), "cuDeviceGet", error)) return false;
    if (!check(api.cuDevicePrimaryCtxRetain(&context, handle), "cannot use the GPU", error)) return false;
  }
  *out = context;
  return true;
}

// Makes a context current on this thread: one of `device`, or any when it is -1 and one is current already.
bool enter(int device, std::string* error) {
  Context current = nullptr;
  if (!check(api.cuCtxGetCurrent(&current), "cuCtxGetCurrent", error)) return false;
  int here = -1;
  if (current && device >= 0 && !check(api.cuCtxGetDevice(&here), "cuCtxGetDevice", error)) return false;
  if (current && (device < 0 || here == device)) return true;
  Context wanted = nullptr;
  if (!primary_context(device < 0 ? 0 : device, &wanted, error)) return false;
  return check(api.cuCtxSetCurrent(wanted), "cuCtxSetCurrent", error);
}

// Makes a context current while it lives, then puts back the one before. A thread without one keeps device 0's, as the
// CUDA runtime would have chosen.
class InContext {
 public:
  bool enter(Context wanted, int device, std::string* error) {
    if (!check(api.cuCtxGetCurrent(&before_), "cuCtxGetCurrent", error)) return false;
    if (before_ == wanted) return true;
    if (!check(api.cuCtxSetCurrent(wanted), "cuCtxSetCurrent", error)) return false;
    restore_ = before_ || device != 0;
    return true;
  }
  ~InContext() {
    if (restore_) api.cuCtxSetCurrent(before_);
  }

 private:
  Context before_ = nullptr;
  bool restore_ = false;
};

struct alignas(64) TensorMap {
  char bytes[128];
};

// Driver API, "Tensor Map Object Management": axes are named fastest first; strides are in bytes, without the fastest.
bool encode(const MapPlan& plan, const Launch& launch, TensorMap* out, std::string* error) {
  static constexpr uint64_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (!api.cuTensorMapEncodeTiled) {
    *error = "tensor maps need a driver of CUDA 12.0 or newer";
    return false;
  }
  const auto rank = static_cast<size_t>(plan.rank);
  if (plan.rank < 1 || plan.rank > 5 || plan.slot < 0 || plan.type < 0 || plan.type > 12 ||
      static_cast<size_t>(plan.slot) + 1 + 2 * rank > launch.count) {
    *error = "a tensor map's plan does not fit the kernel's arguments";
    return false;
  }
  const uint64_t* given = static_cast<const uint64_t*>(launch.args) + plan.slot;
  uint64_t sizes[5], strides[5];
  unsigned box[5];
  static const unsigned steps[5] = {1, 1, 1, 1, 1};
  for (size_t d = 0; d < rank; ++d) {
    sizes[d] = given[rank - d];
    box[d] = static_cast<unsigned>(plan.box[d]);
    if (d) strides[d - 1] = given[2 * rank - d] * kBytes[plan.type];
  }
  void* base = reinterpret_cast<void*>(static_cast<uintptr_t>(given[0]));
  const int interleave = 0, promotion = 2;  // none; CU_TENSOR_MAP_L2_PROMOTION_L2_128B
  return check(api.cuTensorMapEncodeTiled(out, plan.type, static_cast<unsigned>(rank), base, sizes, strides, box, steps, interleave, plan.swizzle,
                                          promotion, plan.fill),
               "a tensor descriptor cannot be passed", error);
}

}  // namespace

int driver_version() {
  std::string ignored;
  int version = 0;
  if (ready(&ignored)) api.cuDriverGetVersion(&version);
  return version;
}

int device_count(std::string* error) { return ready(error) ? api.devices : -1; }

bool device_attributes(int device, std::map<std::string, int64_t>* out, std::string* name, std::string* error) {
  if (!ready(error)) return false;
  static const struct {
    const char* name;
    int number;
  } wanted[] = {{"warpSize", 10},          {"max_num_regs", 12},         {"sm_clock_rate", 13},       {"multiprocessor_count", 16},
                {"mem_clock_rate", 36},    {"mem_bus_width", 37},        {"l2_cache_size", 38},       {"max_threads_per_sm", 39},
                {"major", 75},             {"minor", 76},                {"max_shared_mem_per_sm", 81}, {"max_shared_mem", 97}};
  int handle = 0;
  if (!check(api.cuDeviceGet(&handle, device), "cuDeviceGet", error)) return false;
  for (const auto& attribute : wanted) {
    int value = 0;
    if (!check(api.cuDeviceGetAttribute(&value, attribute.number, handle), attribute.name, error)) return false;
    (*out)[attribute.name] = value;
  }
  char text[256] = {};
  if (!check(api.cuDeviceGetName(text, sizeof text - 1, handle), "cuDeviceGetName", error)) return false;
  *name = text;
  return true;
}

int current_device(std::string* error) {
  if (!ready(error)) return -1;
  Context current = nullptr;
  if (!check(api.cuCtxGetCurrent(&current), "cuCtxGetCurrent", error)) return -1;
  if (!current) return 0;
  int device = 0;
  return check(api.cuCtxGetDevice(&device), "cuCtxGetDevice", error) ? device : -1;
}

bool set_current_device(int device, std::string* error) { return ready(error) && enter(device, error); }

bool load(const std::string& image, const std::string& name, unsigned shared, int device, Kernel* out, std::string* error) {
  if (!ready(error) || !enter(device, error)) return false;
  // Log buffers: CU_JIT_INFO_LOG_BUFFER 3, its size 4, CU_JIT_ERROR_LOG_BUFFER 5, its size 6. PTX must end with a zero byte.
  if (!check(api.cuCtxGetCurrent(&out->context), "cuCtxGetCurrent", error)) return false;
  std::string log(8192, '\0');
  int options[] = {5, 6};
  void* values[] = {log.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(log.size()))};
  Result result = api.cuModuleLoadDataEx(&out->module, image.c_str(), 2, options, values);
  if (result) {
    log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
    *error = message(result, "the NVIDIA driver refuses the code object") + (log.empty() ? "" : "\n" + log);
    return false;
  }
  out->device = device;
  bool good = check(api.cuModuleGetFunction(&out->function, out->module, name.c_str()), name.c_str(), error);
  struct {
    int number;
    int* value;
  } facts[] = {{0, &out->max_threads}, {1, &out->static_shared}, {3, &out->local_bytes}, {4, &out->registers}};
  for (auto& fact : facts) good = good && check(api.cuFuncGetAttribute(fact.value, fact.number, out->function), "cuFuncGetAttribute", error);
  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES 8: more than 48 KiB must be asked for.
  if (good && shared > 48 * 1024) good = check(api.cuFuncSetAttribute(out->function, 8, static_cast<int>(shared)), "shared memory", error);
  if (!good) {
    unload(*out);
    *out = Kernel();
  }
  return good;
}

void unload(const Kernel& kernel) {
  std::string ignored;
  InContext scope;
  if (kernel.module && scope.enter(kernel.context, kernel.device, &ignored)) api.cuModuleUnload(kernel.module);
}

bool allow_large_clusters(const Kernel& kernel, std::string* error) {
  InContext scope;  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED 14
  return ready(error) && scope.enter(kernel.context, kernel.device, error) &&
         check(api.cuFuncSetAttribute(kernel.function, 14, 1), "the GPU does not allow clusters of more than 8 blocks", error);
}

bool launch(const Launch& launch, std::string* error) {
  if (!ready(error)) return false;
  InContext scope;
  if (!(launch.context ? scope.enter(launch.context, launch.device, error) : enter(-1, error))) return false;
  void* few[64];
  std::vector<void*> many;
  void** params = few;
  if (launch.count + launch.map_count > 64) {
    many.resize(launch.count + launch.map_count);
    params = many.data();
  }
  for (size_t i = 0; i < launch.count; ++i) params[i] = const_cast<char*>(static_cast<const char*>(launch.args)) + 8 * i;
  TensorMap few_maps[8];
  std::vector<TensorMap> many_maps(launch.map_count > 8 ? launch.map_count : 0);
  TensorMap* maps = many_maps.empty() ? few_maps : many_maps.data();
  for (size_t i = 0; i < launch.map_count; ++i) {
    if (!encode(launch.maps[i], launch, maps + i, error)) return false;
    params[launch.count + i] = maps + i;
  }
  bool clustered = launch.cluster[0] * launch.cluster[1] * launch.cluster[2] > 1;
  if (!clustered && !launch.cooperative && !launch.overlap) {
    Result result = api.cuLaunchKernel(launch.function, launch.grid[0], launch.grid[1], launch.grid[2], launch.threads, 1, 1, launch.shared,
                                       launch.stream, params, nullptr);
    return check(result, "the kernel cannot be launched", error);
  }
  if (!api.cuLaunchKernelEx) {
    *error = "clusters, cooperative grids and dependent launches need a driver of CUDA 11.8 or newer";
    return false;
  }
  LaunchAttribute attributes[3] = {};
  LaunchConfig config = {{launch.grid[0], launch.grid[1], launch.grid[2]}, {launch.threads, 1, 1}, launch.shared, launch.stream, attributes, 0};
  if (launch.cooperative) {  // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    attributes[config.count].id = 2;
    attributes[config.count++].value.flag = 1;
  }
  if (clustered) {  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attributes[config.count].id = 4;
    for (int i = 0; i < 3; ++i) attributes[config.count].value.dimensions[i] = launch.cluster[i];
    ++config.count;
  }
  if (launch.overlap) {  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attributes[config.count].id = 6;
    attributes[config.count++].value.flag = 1;
  }
  return check(api.cuLaunchKernelEx(&config, launch.function, params, nullptr), "the kernel cannot be launched", error);
}

bool synchronize(std::string* error) { return ready(error) && enter(-1, error) && check(api.cuCtxSynchronize(), "the GPU", error); }

bool pointer_device(uint64_t pointer, int* device, std::string* error) {
  if (!ready(error) || !enter(-1, error)) return false;
  int kind = 0;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE 2: host 1, device 2, unified 4; CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL 9
  *device = -1;
  if (api.cuPointerGetAttribute(&kind, 2, pointer) || kind == 1) return true;
  return check(api.cuPointerGetAttribute(device, 9, pointer), "cuPointerGetAttribute", error);
}

bool host_pointer_mapped(uint64_t pointer) {
  std::string ignored;
  uint64_t there = 0;  // CU_POINTER_ATTRIBUTE_DEVICE_POINTER 3; with unified addressing it is the address itself
  return ready(&ignored) && enter(-1, &ignored) && api.cuPointerGetAttribute(&there, 3, pointer) == 0 && there == pointer;
}

}  // namespace triton::cuda
