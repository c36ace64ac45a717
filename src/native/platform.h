// The operating-system seam: everything that is POSIX lives in platform_posix.cpp, and a port replaces that file alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace triton::platform {

// ---- guarded calls: leave generated code (or LLVM) early, by request or because it faulted ----

enum class Exit : int { returned = 0, escaped = 1, faulted = 2 };

struct Fault {
  int signal = 0;
  int code = 0;
  uintptr_t address = 0;
};

// Calls body(arg). `escaped`: the body called escape(). `faulted`: a hardware fault was raised on this thread inside
// the body (with catch_abort also abort()), described in *fault. Frames between are dropped without running their
// destructors.
Exit guarded_call(void (*body)(void*), void* arg, Fault* fault, bool catch_abort);

// Leaves the innermost guarded_call of this thread; must be inside one.
[[noreturn]] void escape();

// Calls body(arg) as if from outside every guarded call of this thread: faults in host code that a kernel calls stay
// fatal.
void call_host(void (*body)(void*), void* arg);

// "segmentation fault at 0x10"
std::string describe(const Fault& fault);

// ---- threads ----

// Starts a detached thread. False, with the reason in *error, when the system refuses.
bool start_thread(void (*entry)(void*), void* arg, size_t stack_bytes, std::string* error);

// Calls body(arg) when the calling thread ends. (The destructors of C++ thread_local objects run too late on some
// systems.)
void at_thread_exit(void (*body)(void*), void* arg);

// CPUs this process may run on (affinity mask and control-group quota), at least 1.
unsigned usable_cpus();

// Blocks while *word == expected (spurious returns allowed); wake lets up to `count` waiters go.
void wait_on(std::atomic<uint32_t>* word, uint32_t expected);
void wake(std::atomic<uint32_t>* word, unsigned count);

inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__) || defined(_M_X64)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Nanoseconds of a monotonic clock.
uint64_t now_ns();

// Called around fork(): `prepare` before, `parent` and `child` after it in the respective process.
void at_fork(void (*prepare)(), void (*parent)(), void (*child)());

// ---- shared libraries ----

// Opens a library by name; nullptr with the reason in *error. It stays open.
void* open_library(const char* name, std::string* error);
void* find_symbol(void* library, const char* name);  // nullptr when there is none
// The CUDA driver's file: TRITON_LIBCUDA_PATH, else its usual name.
const char* cuda_driver_name();
// Names of the HIP runtime's file, tried in order, ended by nullptr: TRITON_LIBHIP_PATH alone, else the usual ones.
const char* const* hip_runtime_names();

// ---- output ----

// Writes the bytes, and a newline unless they end in one, to the C library's stdout as one piece.
void write_line(const char* text, size_t length);

// ---- memory ----

void* allocate_aligned(size_t bytes, size_t alignment);  // nullptr when there is none
void free_aligned(void* block);

}  // namespace triton::platform
