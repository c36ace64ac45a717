// The HIP runtime, opened by name on first use. No header of AMD's is needed: the few types and numbers are those of the HIP API
// reference (hipDeviceAttribute_t, hipFunction_attribute, hipMemcpyKind).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace triton::hip {

struct Kernel {
  void* module = nullptr;
  void* function = nullptr;
  int device = 0;
  int registers = 0;
  int local_bytes = 0;
  int static_shared = 0;
  int max_threads = 0;
};

struct Launch {
  void* function = nullptr;
  unsigned grid[3] = {1, 1, 1};
  unsigned threads = 1;
  unsigned shared = 0;
  void* stream = nullptr;
  bool cooperative = false;
  const void* args = nullptr;  // one 8-byte slot for each parameter
  size_t count = 0;
};

// Every function returns false (or a negative number) with the reason in *error.

// Number of devices; -1 when there is no runtime or no device, with the reason.
int device_count(std::string* error);
// Numbers, and the texts "name" and "arch" (such as gfx1100).
bool device_attributes(int device, std::map<std::string, int64_t>* out, std::map<std::string, std::string>* texts, std::string* error);
int current_device(std::string* error);
bool set_current_device(int device, std::string* error);
bool load(const std::string& image, const std::string& name, int device, Kernel* out, std::string* error);
void unload(const Kernel& kernel);
// Queues the kernel on the current device. Allocates and waits for nothing, so that streams under capture can be launched to.
bool launch(const Launch& launch, std::string* error);
bool synchronize(std::string* error);

// Device memory, for tools that have no framework at hand.
bool allocate(size_t bytes, uint64_t* pointer, std::string* error);
bool release(uint64_t pointer, std::string* error);
bool copy_in(uint64_t to, const void* from, size_t bytes, std::string* error);
bool copy_out(void* to, uint64_t from, size_t bytes, std::string* error);

}  // namespace triton::hip
