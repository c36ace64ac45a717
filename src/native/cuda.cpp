// The CUDA driver. Types and numbers are those of the CUDA Driver API reference (enumerations CUdevice_attribute,
// CUfunction_attribute, CUjit_option, CUlaunchAttributeID).
#include "gpu.h"
#include "platform.h"

namespace triton::gpu {
namespace {

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

struct alignas(64) TensorMap {  // CUtensorMap
  char bytes[128];
};

class Cuda : public Driver {
 public:
  Cuda() : Driver("cuda", "NVIDIA driver") {}

  bool copy_in(uint64_t to, const void* from, size_t bytes, std::string* error) override {
    return ready(error) && check(cuMemcpyHtoD(to, from, bytes), "cuMemcpyHtoD", error);
  }

  bool copy_out(void* to, uint64_t from, size_t bytes, std::string* error) override {
    return ready(error) && check(cuMemcpyDtoH(to, from, bytes), "cuMemcpyDtoH", error);
  }

  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES 8: more than 48 KiB must be asked for;
  // CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED 14: not every device of an architecture can.
  bool prepare(const Kernel& kernel, const Shape& shape, std::string* error) override {
    const bool large = shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > 8;
    if (!large && shape.shared <= 48 * 1024) return true;
    Scope scope;
    if (!ready(error) || !enter(kernel.context, kernel.device, &scope, error)) return false;
    if (shape.shared > 48 * 1024 &&
        !check(cuFuncSetAttribute(kernel.function, 8, static_cast<int>(shape.shared)), "shared memory", error))
      return false;
    return !large || check(cuFuncSetAttribute(kernel.function, 14, 1), "the GPU does not allow clusters of more than 8 blocks", error);
  }

 protected:
  const char* const* file_names() override {
    static const char* names[] = {platform::cuda_driver_name(), nullptr};
    return names;
  }

  std::vector<Entry> entries() override {
    return {entry("cuInit", &api_.init),
            entry("cuDriverGetVersion", &api_.version),
            entry("cuGetErrorName", &cuGetErrorName),
            entry("cuGetErrorString", &cuGetErrorString),
            entry("cuDeviceGetCount", &api_.device_count),
            entry("cuDeviceGet", &cuDeviceGet),
            entry("cuDeviceGetName", &api_.device_name),
            entry("cuDeviceGetAttribute", &api_.device_attribute),
            entry("cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain),
            entry("cuCtxGetCurrent", &cuCtxGetCurrent),
            entry("cuCtxSetCurrent", &cuCtxSetCurrent),
            entry("cuCtxGetDevice", &cuCtxGetDevice),
            entry("cuCtxSynchronize", &api_.synchronize),
            entry("cuModuleLoadDataEx", &api_.load),
            entry("cuModuleUnload", &api_.unload),
            entry("cuModuleGetFunction", &api_.function),
            entry("cuFuncGetAttribute", &api_.function_attribute),
            entry("cuFuncSetAttribute", &cuFuncSetAttribute),
            entry("cuLaunchKernel", &api_.launch),
            entry("cuLaunchKernelEx", &cuLaunchKernelEx, false),              // from CUDA 11.8 on
            entry("cuTensorMapEncodeTiled", &cuTensorMapEncodeTiled, false),  // from CUDA 12.0 on
            entry("cuPointerGetAttribute", &api_.pointer_attribute),
            entry("cuMemAlloc_v2", &api_.allocate),
            entry("cuMemFree_v2", &api_.release),
            entry("cuMemcpyHtoD_v2", &cuMemcpyHtoD),
            entry("cuMemcpyDtoH_v2", &cuMemcpyDtoH)};
  }

  std::vector<Attribute> attribute_numbers() override {
    return {{"warpSize", 10},       {"max_num_regs", 12},   {"sm_clock_rate", 13}, {"multiprocessor_count", 16},
            {"mem_clock_rate", 36}, {"mem_bus_width", 37},  {"l2_cache_size", 38}, {"max_threads_per_sm", 39},
            {"major", 75},          {"minor", 76},          {"max_shared_mem_per_sm", 81}, {"max_shared_mem", 97}};
  }

  bool device_handle(int device, int* handle, std::string* error) override { return check(cuDeviceGet(handle, device), "cuDeviceGet", error); }

  const char* error_name(Result result) override {
    const char* name = nullptr;
    if (cuGetErrorName) cuGetErrorName(result, &name);
    return name;
  }

  const char* error_text(Result result) override {
    const char* text = nullptr;
    if (cuGetErrorString) cuGetErrorString(result, &text);
    return text;
  }

  bool current(int* device, std::string* error) override {
    Context context = nullptr;
    *device = 0;
    return check(cuCtxGetCurrent(&context), "cuCtxGetCurrent", error) && (!context || check(cuCtxGetDevice(device), "cuCtxGetDevice", error));
  }

  // A thread without a context keeps device 0's, as the CUDA runtime would have chosen.
  bool enter(void* context, int device, Scope* scope, std::string* error) override {
    Context before = nullptr;
    if (!check(cuCtxGetCurrent(&before), "cuCtxGetCurrent", error)) return false;
    if (context ? before == context : before && device < 0) return true;
    if (!context && before) {
      int here = -1;
      if (!check(cuCtxGetDevice(&here), "cuCtxGetDevice", error)) return false;
      if (here == device) return true;
    }
    if (!context && !primary_context(device < 0 ? 0 : device, &context, error)) return false;
    if (!check(cuCtxSetCurrent(context), "cuCtxSetCurrent", error)) return false;
    if (before || device > 0) scope->restore(this, before);
    return true;
  }

  void put_back(void* before) override { cuCtxSetCurrent(before); }

  bool load_module(const std::string& image, Kernel* out, std::string* error) override {
    if (!check(cuCtxGetCurrent(&out->context), "cuCtxGetCurrent", error)) return false;
    // CU_JIT_ERROR_LOG_BUFFER 5, its size 6. PTX must end with a zero byte.
    std::string log(8192, '\0');
    int options[] = {5, 6};
    void* values[] = {log.data(), reinterpret_cast<void*>(static_cast<uintptr_t>(log.size()))};
    if (check(api_.load(&out->module, image.c_str(), 2, options, values), "the NVIDIA driver refuses the code object", error)) return true;
    log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
    if (!log.empty()) *error += "\n" + log;
    return false;
  }

  bool queue(const Launch& launch, void** params, std::string* error) override {
    TensorMap few_maps[8];
    std::vector<TensorMap> many_maps(launch.map_count > 8 ? launch.map_count : 0);
    TensorMap* maps = many_maps.empty() ? few_maps : many_maps.data();
    for (size_t i = 0; i < launch.map_count; ++i) {
      if (!encode(launch.maps[i], launch, maps + i, error)) return false;
      params[launch.count + i] = maps + i;
    }
    const Shape& shape = launch.shape;
    const bool clustered = shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > 1;
    if (!clustered && !shape.cooperative && !shape.overlap) {
      Result result = api_.launch(launch.function, launch.grid[0], launch.grid[1], launch.grid[2], shape.threads, 1, 1, shape.shared,
                                  launch.stream, params, nullptr);
      return check(result, "the kernel cannot be launched", error);
    }
    if (!cuLaunchKernelEx) {
      *error = "clusters, cooperative grids and dependent launches need a driver of CUDA 11.8 or newer";
      return false;
    }
    LaunchAttribute attributes[3] = {};
    LaunchConfig config = {{launch.grid[0], launch.grid[1], launch.grid[2]}, {shape.threads, 1, 1}, shape.shared, launch.stream, attributes, 0};
    if (shape.cooperative) {  // CU_LAUNCH_ATTRIBUTE_COOPERATIVE
      attributes[config.count].id = 2;
      attributes[config.count++].value.flag = 1;
    }
    if (clustered) {  // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
      attributes[config.count].id = 4;
      for (int i = 0; i < 3; ++i) attributes[config.count].value.dimensions[i] = shape.cluster[i];
      ++config.count;
    }
    if (shape.overlap) {  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
      attributes[config.count].id = 6;
      attributes[config.count++].value.flag = 1;
    }
    return check(cuLaunchKernelEx(&config, launch.function, params, nullptr), "the kernel cannot be launched", error);
  }

 private:
  // Primary contexts are retained for the life of the process.
  bool primary_context(int device, Context* out, std::string* error) {
    std::lock_guard<std::mutex> guard(contexts_lock_);
    if (contexts_.empty()) contexts_.resize(static_cast<size_t>(devices_), nullptr);
    Context& context = contexts_[static_cast<size_t>(device)];
    int handle = 0;
    if (!context) {
      if (!device_handle(device, &handle, error)) return false;
      if (!check(cuDevicePrimaryCtxRetain(&context, handle), "cannot use the GPU", error)) return false;
    }
    *out = context;
    return true;
  }

  // Driver API, "Tensor Map Object Management": axes are named fastest first; strides are in bytes, without the fastest.
  bool encode(const MapPlan& plan, const Launch& launch, TensorMap* out, std::string* error) {
    static constexpr uint64_t kBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    if (!cuTensorMapEncodeTiled) {
      *error = "tensor maps need a driver of CUDA 12.0 or newer";
      return false;
    }
    const auto rank = static_cast<size_t>(plan.rank);
    bool fits = plan.rank >= 1 && plan.rank <= 5 && plan.type >= 0 && plan.type <= 12;
    uint64_t parts[11];
    for (size_t i = 0; fits && i < 1 + 2 * rank; ++i) {
      const int32_t slot = plan.slots[i];
      fits = slot < 0 || static_cast<size_t>(slot) < launch.count;
      if (fits) parts[i] = slot < 0 ? static_cast<uint64_t>(plan.values[i]) : static_cast<const uint64_t*>(launch.args)[slot];
    }
    if (!fits) {
      *error = "a tensor map's plan does not fit the kernel's arguments";
      return false;
    }
    uint64_t sizes[5], strides[5];
    unsigned box[5];
    static const unsigned steps[5] = {1, 1, 1, 1, 1};
    bool empty = false;
    for (size_t d = 0; d < rank; ++d) {
      sizes[d] = parts[rank - d];
      empty = empty || static_cast<int64_t>(sizes[d]) < 1;
      box[d] = static_cast<unsigned>(plan.box[d]);
      if (d) strides[d - 1] = parts[2 * rank - d] * kBytes[plan.type];
    }
    if (empty) {  // the kernel looks far outside of the one element; no stride, so that no address lies far away
      for (size_t d = 0; d < rank; ++d) sizes[d] = 1, strides[d] = 0;
      if (!some_memory(&parts[0], error)) return false;
    }
    void* base = reinterpret_cast<void*>(static_cast<uintptr_t>(parts[0]));
    const int interleave = 0, promotion = 2;  // none; CU_TENSOR_MAP_L2_PROMOTION_L2_128B
    return check(cuTensorMapEncodeTiled(out, plan.type, static_cast<unsigned>(rank), base, sizes, strides, box, steps, interleave,
                                        plan.swizzle, promotion, plan.fill),
                 "a tensor descriptor cannot be passed", error);
  }

  // Memory of the current context that nothing is kept in: tensors without elements may have no address.
  bool some_memory(uint64_t* pointer, std::string* error) {
    Context context = nullptr;
    if (!check(cuCtxGetCurrent(&context), "cuCtxGetCurrent", error)) return false;
    std::lock_guard<std::mutex> guard(contexts_lock_);
    uint64_t& memory = some_memory_[context];
    if (!memory && !check(api_.allocate(&memory, 256), "memory cannot be allocated", error)) return false;
    *pointer = memory;
    return true;
  }

  Result (*cuGetErrorName)(Result, const char**) = nullptr;
  Result (*cuGetErrorString)(Result, const char**) = nullptr;
  Result (*cuDeviceGet)(int*, int) = nullptr;
  Result (*cuDevicePrimaryCtxRetain)(Context*, int) = nullptr;
  Result (*cuCtxGetCurrent)(Context*) = nullptr;
  Result (*cuCtxSetCurrent)(Context) = nullptr;
  Result (*cuCtxGetDevice)(int*) = nullptr;
  Result (*cuFuncSetAttribute)(void*, int, int) = nullptr;
  Result (*cuLaunchKernelEx)(const LaunchConfig*, void*, void**, void**) = nullptr;
  Result (*cuTensorMapEncodeTiled)(void*, int, unsigned, void*, const uint64_t*, const uint64_t*, const unsigned*, const unsigned*, int, int,
                                   int, int) = nullptr;
  Result (*cuMemcpyHtoD)(uint64_t, const void*, size_t) = nullptr;
  Result (*cuMemcpyDtoH)(void*, uint64_t, size_t) = nullptr;
  std::mutex contexts_lock_;
  std::vector<Context> contexts_;
  std::map<Context, uint64_t> some_memory_;
};

}  // namespace

Driver* cuda() {
  static Driver* const driver = new Cuda;  // never destroyed: kernels are unloaded until the process ends
  return driver;
}

}  // namespace triton::gpu
