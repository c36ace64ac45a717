// The grid thread pool: runs a kernel's programs in chunks over persistent threads, the caller's included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace triton {

// Passed to generated code; the layout is the kernel ABI.
struct LaunchContext {
  int32_t grid[3];
  int32_t thread_id;
  void* scratch;
  void* host;  // the participant that runs the kernel
};

// Runs programs with linear id in [begin, end); x varies fastest.
using KernelFunction = void (*)(const void* args, int64_t begin, int64_t end, LaunchContext* context);

enum class LaunchStatus { ok, assertion, fault, failure, interrupted };

struct LaunchRequest {
  KernelFunction function;
  const void* args;
  int32_t grid[3];
  uint64_t total;        // product of grid, at least 1
  size_t scratch_bytes;  // per thread
  unsigned threads;      // at most this many; 0: all
  // Called once, on the caller's thread, before work that is not known to be short (module.cpp gives up the GIL there:
  // giving it up for a microsecond may cost milliseconds when another thread wants it).
  void (*before_long_work)(void*);
  // Called now and then on the caller's thread during long work; false ends the launch (module.cpp looks for Ctrl-C).
  bool (*poll)(void*);
  void* callback_arg;  // for both
};

// Runs the whole grid. On failure the first failure's message is in *error and the rest of the grid may not have run.
LaunchStatus launch(const LaunchRequest& request, std::string* error);

// Product of the grid; false when a dimension is out of range or the product does not fit.
bool grid_total(const int64_t grid[3], uint64_t* total, std::string* error);

// Called from generated code: ends the launch of `context` with this message.
[[noreturn]] void fail_assertion(LaunchContext* context, const char* message, size_t length);

// Drops what is known about kernels' costs: code was freed, and its addresses may be given to other kernels.
void forget_costs();

void set_num_threads(unsigned count);
unsigned get_num_threads();

// Around fork().
void lock_pool();
void unlock_pool();
void renew_pool_in_child();

}  // namespace triton
