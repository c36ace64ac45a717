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
  void* host;         // the participant that runs the kernel
  int32_t countdown;  // loops count it down, and call check_program() at 0
  int32_t streams;    // the launch's data does not fit the caches: what is not read again may go past them
};

// Runs programs with linear id in [begin, end); x varies fastest.
using KernelFunction = void (*)(const void* args, int64_t begin, int64_t end, LaunchContext* context);

enum class LaunchStatus { ok, assertion, fault, failure, interrupted, stuck };

struct LaunchRequest {
  KernelFunction function;
  const void* args;
  int32_t grid[3];
  uint64_t total;        // product of grid, at least 1
  size_t scratch_bytes;  // per thread
  unsigned threads;      // at most this many; 0: all
  bool streams;          // see LaunchContext
  bool waits;            // programs may wait for others: each counts for itself, and a waiting one costs no thread
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

// Called from generated code when context->countdown is used up, about every millisecond: leaves a launch that has ended.
// `spins`: the loop may be waiting for another program.
void check_program(LaunchContext* context, bool spins);

// One wait of a program for what another program or somebody else will write.
struct Wait {
  int64_t timeout_ns;  // negative: none
  const char* place;   // the source line, for messages
  size_t place_length;
  uint64_t looks = 0;
  uint64_t started = 0;
  uint64_t progress = 0;  // of the job, and when it changed last
  uint64_t changed = 0;
  bool waiting = false;  // counted among the job's waiting participants
};

// Called between two looks at the value; false when time is over. Leaves the launch when it has ended, or ends it when
// everybody waits.
bool wait_for_others(LaunchContext* context, Wait* wait);
void end_wait(LaunchContext* context, Wait* wait);

// Drops what is known about kernels' costs: code was freed, and its addresses may be given to other kernels.
void forget_costs();

void set_num_threads(unsigned count);
unsigned get_num_threads();

// Around fork().
void lock_pool();
void unlock_pool();
void renew_pool_in_child();

}  // namespace triton
