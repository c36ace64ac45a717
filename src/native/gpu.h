// GPUs through the library of their maker, opened by name on first use: what CUDA and HIP have in common. No header of theirs is
// needed; cuda.cpp and hip.cpp name the entry points and hold what differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace triton::gpu {

using Result = int;  // CUresult, hipError_t: 0 is success

struct Kernel {
  void* module = nullptr;
  void* function = nullptr;
  void* context = nullptr;  // in which it is loaded, where there are contexts
  int device = -1;
  int registers = 0;
  int local_bytes = 0;
  int static_shared = 0;
  int max_threads = 0;
};

// A kernel parameter that holds a tensor map (CUtensorMap), made at each launch from the other arguments. The tensor's
// base, `rank` sizes and `rank` strides (in elements, last axis fastest) are in the slots named; -1: the value beside.
// The numbers are those of CUtensorMapDataType, CUtensorMapSwizzle and CUtensorMapFloatOOBfill; box: last axis first.
struct MapPlan {
  int32_t rank, type, swizzle, fill;
  int32_t box[5];
  int32_t slots[11];
  int64_t values[11];
};

// How a kernel is launched, the same each time.
struct Shape {
  unsigned threads = 1;  // of a block
  unsigned blocks = 1;   // of a program, along the first dimension of the grid
  unsigned cluster[3] = {1, 1, 1};
  unsigned shared = 0;
  bool cooperative = false;
  bool overlap = false;  // programmatic dependent launch
};

struct Launch {
  Shape shape;
  unsigned grid[3] = {1, 1, 1};  // of blocks
  void* function = nullptr;
  void* stream = nullptr;
  void* context = nullptr;     // the kernel's; null: its device's
  int device = -1;             // the kernel's; -1: the thread's
  const void* args = nullptr;  // one 8-byte slot for each parameter
  size_t count = 0;
  const MapPlan* maps = nullptr;  // parameters behind those in args
  size_t map_count = 0;
};

using Numbers = std::map<std::string, int64_t>;
using Texts = std::map<std::string, std::string>;

// Every function that takes `error` returns false (or a negative number) with the reason there.
class Driver {
 public:
  // "cuda" or "hip"; what the library is called in messages.
  Driver(const char* name, const char* library) : name(name), library(library) {}
  virtual ~Driver() = default;

  const char* const name;
  const char* const library;

  // Number of devices; -1 when there is no library or no device.
  int device_count(std::string* error);
  // Facts about a device, under the names Triton uses; texts: its "name" and what else the library tells.
  bool attributes(int device, Numbers* numbers, Texts* texts, std::string* error);
  // The device of this thread.
  int current_device(std::string* error);
  bool set_current_device(int device, std::string* error);
  // Such as 13000; 0 where there is no library.
  int version();

  // Loads on a device; shared: what launches will ask for.
  bool load(const std::string& image, const std::string& name, const Shape& shape, int device, Kernel* out, std::string* error);
  void unload(const Kernel& kernel);
  // Asks for what a launch of this shape needs.
  virtual bool prepare(const Kernel& kernel, const Shape& shape, std::string* error);
  // Queues the kernel. Allocates and waits for nothing, so that streams under capture can be launched to.
  bool launch(const Launch& launch, std::string* error);
  bool synchronize(std::string* error);

  // Whether kernels may use an address in host memory: it is pinned or managed.
  bool host_pointer_mapped(uint64_t pointer);

  // Device memory, for tools that have no framework at hand.
  bool allocate(size_t bytes, uint64_t* pointer, std::string* error);
  bool release(uint64_t pointer, std::string* error);
  virtual bool copy_in(uint64_t to, const void* from, size_t bytes, std::string* error) = 0;
  virtual bool copy_out(void* to, uint64_t from, size_t bytes, std::string* error) = 0;

 protected:
  // Entry points that both libraries have.
  struct Api {
    Result (*init)(unsigned) = nullptr;
    Result (*version)(int*) = nullptr;
    Result (*device_count)(int*) = nullptr;
    Result (*device_name)(char*, int, int) = nullptr;
    Result (*device_attribute)(int*, int, int) = nullptr;
    Result (*synchronize)() = nullptr;
    Result (*load)(void**, const void*, unsigned, int*, void**) = nullptr;
    Result (*unload)(void*) = nullptr;
    Result (*function)(void**, void*, const char*) = nullptr;
    Result (*function_attribute)(int*, int, void*) = nullptr;
    Result (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) = nullptr;
    Result (*pointer_attribute)(void*, int, uint64_t) = nullptr;
    Result (*allocate)(uint64_t*, size_t) = nullptr;
    Result (*release)(uint64_t) = nullptr;
  };
  struct Entry {
    const char* symbol;
    void** place;
    bool required = true;
  };
  template <typename Function>
  static Entry entry(const char* symbol, Function** place, bool required = true) {
    return {symbol, reinterpret_cast<void**>(place), required};
  }
  struct Attribute {
    const char* name;
    int number;
  };

  // The library's file names, tried in order, ended by nullptr.
  virtual const char* const* file_names() = 0;
  virtual std::vector<Entry> entries() = 0;
  virtual std::vector<Attribute> attribute_numbers() = 0;
  // The library's number of a device.
  virtual bool device_handle(int device, int* handle, std::string* error);
  virtual bool more_attributes(int device, Texts* texts, std::string* error);
  // The library's name for a result, and its words; null where it has none.
  virtual const char* error_name(Result result) = 0;
  virtual const char* error_text(Result result) = 0;
  virtual bool current(int* device, std::string* error) = 0;
  // Loads in the current context; a failure's log goes behind the message.
  virtual bool load_module(const std::string& image, Kernel* out, std::string* error) = 0;
  virtual bool queue(const Launch& launch, void** params, std::string* error) = 0;

  // Makes a device (a context of it) current while it lives, then puts back what was before.
  class Scope {
   public:
    ~Scope() {
      if (driver_) driver_->put_back(before_);
    }
    void restore(Driver* driver, void* before) { driver_ = driver, before_ = before; }
    void keep() { driver_ = nullptr; }

   private:
    Driver* driver_ = nullptr;
    void* before_ = nullptr;
  };
  // The given context, else one of the given device, else (-1) whatever is current, which may have to be made.
  virtual bool enter(void* context, int device, Scope* scope, std::string* error) = 0;
  virtual void put_back(void* before) = 0;

  bool ready(std::string* error);
  bool check(Result result, const char* what, std::string* error) {
    return result == 0 || (*error = message(result, what), false);
  }
  bool exists(int device, std::string* error);

  Api api_;
  int devices_ = 0;

 private:
  std::string message(Result result, const char* what);
  void open();

  std::once_flag opened_;
  std::string unusable_;  // why the library cannot be used; empty when it can
};

Driver* cuda();
Driver* hip();

}  // namespace triton::gpu
