// The CUDA driver, opened by name on first use. No header of NVIDIA's is needed: the few types and numbers are those of the CUDA
// Driver API reference (enumerations CUdevice_attribute, CUfunction_attribute, CUjit_option, CUlaunchAttributeID).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace triton::cuda {

struct Kernel {
  void* module = nullptr;
  void* function = nullptr;
  void* context = nullptr;  // in which it is loaded
  int device = 0;
  int registers = 0;
  int local_bytes = 0;
  int static_shared = 0;
  int max_threads = 0;
};

// A kernel parameter that holds a tensor map (CUtensorMap), made at each launch from a descriptor among the arguments:
// slot `slot` has its base, the next `rank` its sizes, the next `rank` its strides in elements, last axis fastest.
// The numbers are those of CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapFloatOOBfill; box: last axis first.
struct MapPlan {
  int32_t slot, rank, type, swizzle, fill;
  int32_t box[5];
};

struct Launch {
  void* function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned threads = 1;
  unsigned cluster[3] = {1, 1, 1};
  unsigned shared = 0;
  void* stream = nullptr;
  bool cooperative = false;
  bool overlap = false;  // programmatic dependent launch
  void* context = nullptr;  // the kernel's; null: the thread's
  int device = 0;           // of that context
  const void* args = nullptr;  // one 8-byte slot for each parameter
  size_t count = 0;
  const MapPlan* maps = nullptr;  // parameters behind those in args
  size_t map_count = 0;
};

// Every function returns false (or a negative number) with the reason in *error.

// Number of devices; -1 when there is no driver or no device, with the reason.
int device_count(std::string* error);
bool device_attributes(int device, std::map<std::string, int64_t>* out, std::string* name, std::string* error);
int current_device(std::string* error);
bool set_current_device(int device, std::string* error);
bool load(const std::string& image, const std::string& name, unsigned shared, int device, Kernel* out, std::string* error);
void unload(const Kernel& kernel);
// Lets the kernel run in clusters of more than 8 blocks, which not every device of an architecture can.
bool allow_large_clusters(const Kernel& kernel, std::string* error);
// Queues the kernel. Allocates and waits for nothing, so that streams under capture can be launched to.
bool launch(const Launch& launch, std::string* error);
bool synchronize(std::string* error);
// The device that a pointer belongs to; -1 for host memory.
bool pointer_device(uint64_t pointer, int* device, std::string* error);
// Whether kernels may use an address in host memory: it is pinned or managed.
bool host_pointer_mapped(uint64_t pointer);
int driver_version();

}  // namespace triton::cuda
