// The HIP runtime. Types and numbers are those of the HIP API reference (hipDeviceAttribute_t, hipMemcpyKind).
#include <cctype>
#include <cstring>

#include "gpu.h"
#include "platform.h"

namespace triton::gpu {
namespace {

class Hip : public Driver {
 public:
  Hip() : Driver("hip", "HIP runtime") {}

  bool copy_in(uint64_t to, const void* from, size_t bytes, std::string* error) override {  // hipMemcpyHostToDevice 1
    return ready(error) && check(hipMemcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(to)), from, bytes, 1), "hipMemcpy", error);
  }

  bool copy_out(void* to, uint64_t from, size_t bytes, std::string* error) override {  // hipMemcpyDeviceToHost 2
    return ready(error) && check(hipMemcpy(to, reinterpret_cast<void*>(static_cast<uintptr_t>(from)), bytes, 2), "hipMemcpy", error);
  }

  bool prepare(const Kernel&, const Shape& shape, std::string* error) override {
    if (shape.blocks == 1 && shape.cluster[0] * shape.cluster[1] * shape.cluster[2] == 1 && !shape.overlap) return true;
    *error = "AMD GPUs have no clusters of workgroups and no dependent launches";
    return false;
  }

 protected:
  const char* const* file_names() override { return platform::hip_runtime_names(); }

  std::vector<Entry> entries() override {
    return {entry("hipInit", &api_.init),
            entry("hipRuntimeGetVersion", &api_.version, false),
            entry("hipGetErrorName", &hipGetErrorName),
            entry("hipGetErrorString", &hipGetErrorString),
            entry("hipGetDeviceCount", &api_.device_count),
            entry("hipGetDevice", &hipGetDevice),
            entry("hipSetDevice", &hipSetDevice),
            entry("hipDeviceGetName", &api_.device_name),
            entry("hipDeviceGetAttribute", &api_.device_attribute),
            entry("hipGetDevicePropertiesR0600", &properties_, false),  // under the name of the release
            entry("hipGetDeviceProperties", &properties_),
            entry("hipDeviceSynchronize", &api_.synchronize),
            entry("hipModuleLoadDataEx", &api_.load),
            entry("hipModuleUnload", &api_.unload),
            entry("hipModuleGetFunction", &api_.function),
            entry("hipFuncGetAttribute", &api_.function_attribute),
            entry("hipModuleLaunchKernel", &api_.launch),
            entry("hipModuleLaunchCooperativeKernel", &cooperative_, false),
            entry("hipPointerGetAttribute", &api_.pointer_attribute),
            entry("hipMalloc", &api_.allocate),
            entry("hipFree", &api_.release),
            entry("hipMemcpy", &hipMemcpy)};
  }

  std::vector<Attribute> attribute_numbers() override {
    return {{"sm_clock_rate", 5},   {"l2_cache_size", 19}, {"major", 23},                {"max_threads_per_sm", 57}, {"mem_bus_width", 59},
            {"mem_clock_rate", 60}, {"minor", 61},         {"multiprocessor_count", 63}, {"max_num_regs", 71},       {"max_shared_mem", 74},
            {"warpSize", 87}};
  }

  // "arch": the processor's name in hipDeviceProp_t (field gcnArchName). It is found by its text, since its place differs
  // among releases of HIP.
  bool more_attributes(int device, Texts* texts, std::string* error) override {
    std::vector<char> properties(16384, '\0');  // more than any release's structure
    if (!check(properties_(properties.data(), device), "hipGetDeviceProperties", error)) return false;
    std::string& arch = (*texts)["arch"];
    for (size_t at = 256; at + 8 < properties.size() && arch.empty(); ++at) {
      const char* text = properties.data() + at;
      if (std::strncmp(text, "gfx", 3) == 0 && std::isxdigit(static_cast<unsigned char>(text[3]))) arch.assign(text, strnlen(text, 256));
    }
    return true;
  }

  const char* error_name(Result result) override { return hipGetErrorName ? hipGetErrorName(result) : nullptr; }
  const char* error_text(Result result) override { return hipGetErrorString ? hipGetErrorString(result) : nullptr; }
  bool current(int* device, std::string* error) override { return check(hipGetDevice(device), "hipGetDevice", error); }

  bool enter(void*, int device, Scope* scope, std::string* error) override {
    int before = 0;
    if (device < 0) return true;
    if (!check(hipGetDevice(&before), "hipGetDevice", error)) return false;
    if (before == device) return true;
    if (!check(hipSetDevice(device), "cannot use the GPU", error)) return false;
    scope->restore(this, reinterpret_cast<void*>(static_cast<intptr_t>(before)));
    return true;
  }

  void put_back(void* before) override { hipSetDevice(static_cast<int>(reinterpret_cast<intptr_t>(before))); }

  bool load_module(const std::string& image, Kernel* out, std::string* error) override {
    return check(api_.load(&out->module, image.data(), 0, nullptr, nullptr), "the HIP runtime refuses the code object", error);
  }

  bool queue(const Launch& launch, void** params, std::string* error) override {
    const unsigned* grid = launch.grid;
    const Shape& shape = launch.shape;
    if (launch.map_count != 0) {
      *error = "AMD GPUs have no tensor maps";
      return false;
    }
    if (!shape.cooperative) {
      Result result = api_.launch(launch.function, grid[0], grid[1], grid[2], shape.threads, 1, 1, shape.shared, launch.stream, params, nullptr);
      return check(result, "the kernel cannot be launched", error);
    }
    if (!cooperative_) {
      *error = "this HIP runtime has no cooperative launches of loaded kernels";
      return false;
    }
    Result result = cooperative_(launch.function, grid[0], grid[1], grid[2], shape.threads, 1, 1, shape.shared, launch.stream, params);
    return check(result, "the kernel cannot be launched", error);
  }

 private:
  const char* (*hipGetErrorName)(Result) = nullptr;
  const char* (*hipGetErrorString)(Result) = nullptr;
  Result (*hipGetDevice)(int*) = nullptr;
  Result (*hipSetDevice)(int) = nullptr;
  Result (*properties_)(void*, int) = nullptr;
  Result (*cooperative_)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**) = nullptr;
  Result (*hipMemcpy)(void*, const void*, size_t, int) = nullptr;
};

}  // namespace

Driver* hip() {
  static Driver* const driver = new Hip;  // never destroyed: kernels are unloaded until the process ends
  return driver;
}

}  // namespace triton::gpu
