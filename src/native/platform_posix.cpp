// POSIX half of platform.h: signals, pthreads, futex.
#include "platform.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#else
#include <condition_variable>
#endif

namespace triton::platform {
namespace {

struct Guard {
  sigjmp_buf jump;
  Fault* fault;
  bool catch_abort;
};

// initial-exec: the signal handler must not run the lazy allocator of dynamic thread-local storage.
#if defined(__GLIBC__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local Guard* current_guard = nullptr;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kSignalCount = sizeof(kSignals) / sizeof(kSignals[0]);
struct sigaction previous_actions[kSignalCount];

void chain(int signal, siginfo_t* info, void* context) {
  for (int i = 0; i < kSignalCount; ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction& previous = previous_actions[i];
    if (previous.sa_flags & SA_SIGINFO) {
      previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
      // Returning re-executes the faulting instruction, now with the previous action in place.
      sigaction(signal, &previous, nullptr);
      if (info->si_code <= 0 && previous.sa_handler == SIG_DFL) raise(signal);  // sent, not caused: ask again
    } else {
      previous.sa_handler(signal);
    }
    return;
  }
}

// By raise() or pthread_kill(), in this process.
bool raised_here(const siginfo_t* info) {
#if defined(SI_TKILL)
  return info->si_code == SI_TKILL && info->si_pid == getpid();
#else
  return info->si_pid == getpid();
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Guard* guard = current_guard;
  // si_code > 0: raised by the processor on this very thread, not sent by kill(). A handler installed after ours, such as
  // faulthandler's, puts ours back and raises the signal again: that comes from this process to this thread.
  const bool caused = info->si_code > 0;
  const bool passed_on = !caused && raised_here(info);
  bool ours = guard && (signal == SIGABRT ? guard->catch_abort && info->si_pid == getpid() : caused || passed_on);
  if (!ours) {
    chain(signal, info, context);
    return;
  }
  guard->fault->signal = signal;
  guard->fault->code = info->si_code;
  guard->fault->address = passed_on ? 0 : reinterpret_cast<uintptr_t>(info->si_addr);  // a raised signal has none
  siglongjmp(guard->jump, static_cast<int>(Exit::faulted));
}

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    // NODEFER: the handler leaves by a jump that does not restore the signal mask (saving it would cost a system call
    // per launch).
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &action, &previous_actions[i]);
  });
}

// A stack for the signal handler, so that running out of the normal one is caught as well.
class AlternateStack {
 public:
  AlternateStack() {
    stack_t now;
    if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE) && now.ss_size >= kBytes / 2) return;
    void* block = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return;
    stack_t mine;
    memset(&mine, 0, sizeof mine);
    mine.ss_sp = block;
    mine.ss_size = kBytes;
    if (sigaltstack(&mine, nullptr) != 0) {
      munmap(block, kBytes);
      return;
    }
    block_ = block;
  }
  ~AlternateStack() {
    if (!block_) return;
    stack_t now;
    if (sigaltstack(nullptr, &now) == 0 && now.ss_sp == block_) {
      now.ss_flags = SS_DISABLE;
      sigaltstack(&now, nullptr);
    }
    munmap(block_, kBytes);
  }

 private:
  static constexpr size_t kBytes = 128 * 1024;
  void* block_ = nullptr;
};

void prepare_this_thread() {
  install_handlers();
  static thread_local AlternateStack stack;
  (void)stack;
}

}  // namespace

Exit guarded_call(void (*body)(void*), void* arg, Fault* fault, bool catch_abort) {
  prepare_this_thread();
  Guard guard;
  guard.fault = fault;
  guard.catch_abort = catch_abort;
  Guard* const outer = current_guard;
  int code = sigsetjmp(guard.jump, 0);
  if (code == 0) {
    current_guard = &guard;
    body(arg);
  }
  current_guard = outer;
  return static_cast<Exit>(code);
}

void escape() {
  Guard* guard = current_guard;
  if (!guard) std::abort();
  siglongjmp(guard->jump, static_cast<int>(Exit::escaped));
}

void call_host(void (*body)(void*), void* arg) {
  Guard* const guard = current_guard;
  current_guard = nullptr;
  body(arg);
  current_guard = guard;
}

std::string describe(const Fault& fault) {
  char text[128];
  auto address = static_cast<unsigned long long>(fault.address);
  switch (fault.signal) {
    case SIGSEGV:
      // The processor gives no address for these two; the kernel reports 0 with a code of its own.
      if (fault.address == 0 && fault.code == 0x80)
        return "segmentation fault: non-canonical address or misaligned vector access";
      if (fault.code <= 0) return "segmentation fault: another signal handler saw it first and gives no address";
      snprintf(text, sizeof text, "segmentation fault at 0x%llx", address);
      return text;
    case SIGBUS: snprintf(text, sizeof text, "bus error at 0x%llx", address); return text;
    case SIGFPE:
      if (fault.code == FPE_INTDIV) return "integer division by zero or integer division overflow";
      snprintf(text, sizeof text, "arithmetic fault at instruction 0x%llx", address);
      return text;
    case SIGILL: snprintf(text, sizeof text, "illegal instruction at 0x%llx", address); return text;
    case SIGABRT: return "abort() was called";
  }
  snprintf(text, sizeof text, "signal %d", fault.signal);
  return text;
}

namespace {

struct ThreadStart {
  void (*entry)(void*);
  void* arg;
};

void* thread_main(void* raw) {
  ThreadStart start = *static_cast<ThreadStart*>(raw);
  delete static_cast<ThreadStart*>(raw);
  start.entry(start.arg);
  return nullptr;
}

}  // namespace

bool start_thread(void (*entry)(void*), void* arg, size_t stack_bytes, std::string* error) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  // Signals meant for the program (SIGINT, SIGCHLD, ...) stay with its own threads; faults cannot be blocked anyway.
  sigset_t all, before;
  sigfillset(&all);
  for (int signal : kSignals) sigdelset(&all, signal);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* start = new ThreadStart{entry, arg};
  pthread_t thread;
  int status = pthread_create(&thread, &attributes, thread_main, start);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (status != 0) {
    delete start;
    *error = std::string("cannot start a thread: ") + strerror(status);
    return false;
  }
  return true;
}

void at_thread_exit(void (*body)(void*), void* arg) {
  struct Exits {
    std::vector<std::pair<void (*)(void*), void*>> calls;
    ~Exits() {
      for (auto [body, arg] : calls) body(arg);
    }
  };
  static thread_local Exits exits;
  exits.calls.emplace_back(body, arg);
}

namespace {

// CPUs the control group's quota pays for, 0 when there is no quota.
unsigned quota_cpus() {
#if defined(__linux__)
  FILE* file = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (!file) return 0;
  long long quota = 0, period = 0;
  int fields = fscanf(file, "%lld %lld", &quota, &period);  // "max 100000" reads no field
  fclose(file);
  if (fields == 2 && quota > 0 && period > 0) return static_cast<unsigned>((quota + period - 1) / period);
#endif
  return 0;
}

}  // namespace

unsigned usable_cpus() {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#if defined(__linux__)
  // The mask may be larger than the fixed cpu_set_t: grow until the kernel accepts it.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int status = sched_getaffinity(0, bytes, set);
    if (status == 0) count = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (status == 0) break;
  }
#endif
  unsigned cpus = count > 0 ? static_cast<unsigned>(count) : 1;
  unsigned quota = quota_cpus();
  return quota && quota < cpus ? quota : cpus;
}

#if defined(__linux__)
void wait_on(std::atomic<uint32_t>* word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void wake(std::atomic<uint32_t>* word, unsigned count) {
  int many = count > INT_MAX ? INT_MAX : static_cast<int>(count);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE_PRIVATE, many, nullptr, nullptr, 0);
}
#else
namespace {
std::mutex parking_mutex;
std::condition_variable parking;
}  // namespace

void wait_on(std::atomic<uint32_t>* word, uint32_t expected) {
  std::unique_lock<std::mutex> lock(parking_mutex);
  if (word->load(std::memory_order_seq_cst) == expected) parking.wait(lock);
}

void wake(std::atomic<uint32_t>*, unsigned) {
  std::lock_guard<std::mutex> lock(parking_mutex);
  parking.notify_all();
}
#endif

uint64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

void at_fork(void (*prepare)(), void (*parent)(), void (*child)()) { pthread_atfork(prepare, parent, child); }

void* open_library(const char* name, std::string* error) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    *error = reason ? reason : "unknown reason";
  }
  return library;
}

void* find_symbol(void* library, const char* name) { return dlsym(library, name); }

const char* cuda_driver_name() {
  const char* given = getenv("TRITON_LIBCUDA_PATH");
  return given && *given ? given : "libcuda.so.1";
}

const char* const* hip_runtime_names() {
  static const char* const usual[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so", nullptr};
  static const char* given[] = {nullptr, nullptr};
  const char* path = getenv("TRITON_LIBHIP_PATH");
  if (!path || !*path) return usual;
  given[0] = path;
  return given;
}

void write_line(const char* text, size_t length) {
  flockfile(stdout);
  fwrite(text, 1, length, stdout);
  if (length == 0 || text[length - 1] != '\n') fputc('\n', stdout);
  fflush(stdout);
  funlockfile(stdout);
}

void* allocate_aligned(size_t bytes, size_t alignment) {
  void* block = nullptr;
  return posix_memalign(&block, alignment, bytes) == 0 ? block : nullptr;
}

void free_aligned(void* block) { free(block); }

}  // namespace triton::platform
