#include "pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

#include "platform.h"

namespace triton {
namespace {

constexpr size_t kWorkerStackBytes = size_t{8} << 20;
constexpr unsigned kMaxThreads = 1024;
constexpr int kSpins = 400;                   // about 20 µs: a launch soon after the last one finds its workers awake
constexpr uint64_t kPollNs = 50000000;        // how often a long launch looks whether it should end
constexpr uint64_t kInlineNs = 5000;          // below this estimate, waking others costs more than it saves
constexpr float kStepNs = 1500;               // an inline launch looks at the clock no more often than that
constexpr uint64_t kInlineOverrunNs = 15000;  // an inline launch that takes longer shares what is left
constexpr uint64_t kPieceNs = 2000000;        // a chunk is run in pieces of about this length
constexpr uint64_t kCheckNs = 1000000;        // how often loops in programs call check_program()
constexpr uint64_t kSpinNs = 5000000;         // a loop over atomics that takes longer is taken to be waiting
constexpr uint64_t kPatienceNs = 10000000000u;  // programs that all wait for one another are given up after this
constexpr unsigned kBusyLooks = 2000;         // looks at an awaited value before its thread naps in between

// ---- scratch memory: one block per thread, grown on demand ----

class Arena {
 public:
  ~Arena() { platform::free_aligned(block_); }
  void* reserve(size_t bytes) {
    if (bytes > size_) {
      platform::free_aligned(block_);
      size_ = 0;
      size_t wanted = (bytes + 4095) / 4096 * 4096;
      block_ = platform::allocate_aligned(wanted, bytes >= (size_t{1} << 20) ? 4096 : 64);
      if (block_) size_ = wanted;
    }
    return block_;
  }
  bool busy = false;  // a kernel on this thread is using it (a launch from a print sink nests)

 private:
  void* block_ = nullptr;
  size_t size_ = 0;
};

Arena& arena() {
  static thread_local Arena* mine = nullptr;
  if (!mine) {
    mine = new Arena;
    platform::at_thread_exit([](void* arena) { delete static_cast<Arena*>(arena); }, mine);
  }
  return *mine;
}

// ---- a launch in progress ----

struct Job {
  LaunchRequest request;
  uint64_t chunk = 1;
  uint64_t piece = 1;  // of a chunk, at first
  // Guarded by the pool's mutex:
  unsigned limit = 1;         // participants at a time, the caller included; more while some of them wait
  unsigned inside = 1;        // participants now
  unsigned participants = 1;  // ever; gives thread_id
  alignas(64) std::atomic<uint64_t> next{0};
  alignas(64) std::atomic<uint32_t> active{0};  // workers inside
  std::atomic<bool> failed{false};
  std::atomic<uint32_t> running{0};   // participants that run programs
  std::atomic<uint32_t> waiting{0};   // those of them that wait, for as long as it takes
  std::atomic<uint64_t> progress{0};  // waits and programs that ended
  std::mutex error_mutex;
  LaunchStatus status = LaunchStatus::ok;
  std::string message;

  bool exhausted() const {
    return failed.load(std::memory_order_relaxed) || next.load(std::memory_order_relaxed) >= request.total;
  }

  void fail(LaunchStatus why, std::string text) {
    std::lock_guard<std::mutex> lock(error_mutex);
    if (status != LaunchStatus::ok) return;  // the first one is reported
    status = why;
    message = std::move(text);
    failed.store(true, std::memory_order_release);
  }
};

struct Participant {
  Job* job;
  LaunchContext context;
  uint64_t programs = 0;   // run so far
  uint64_t last_poll = 0;  // time
  // For check_program():
  uint64_t last_check = 0;
  int32_t countdown = 1;   // where it started
  uint64_t spinning = 0;   // ns in loops that may be waiting, in this program
  bool relieved = false;   // another participant was let in for this program
};

// Asks the caller's side whether to go on, at most every kPollNs.
void poll(Participant& self, uint64_t now) {
  if (now - self.last_poll < kPollNs) return;
  self.last_poll = now;
  if (self.context.thread_id != 0) {
    platform::wake(&self.job->active, 1);  // the caller may be waiting for its workers, and is to ask
    return;
  }
  if (!self.job->request.poll) return;
  auto ask = [](void* raw) {
    Job& job = *static_cast<Job*>(raw);
    if (!job.request.poll(job.request.callback_arg)) job.fail(LaunchStatus::interrupted, "interrupted");
  };
  platform::call_host(ask, self.job);
}

// Runs [begin, end) in pieces, the first of one program when it is not known what one costs.
void run_chunk(Participant& self, uint64_t begin, uint64_t end, uint64_t* piece) {
  Job& job = *self.job;
  uint64_t before = platform::now_ns();
  while (begin < end && !job.failed.load(std::memory_order_relaxed)) {
    uint64_t stop = std::min(begin + *piece, end);
    job.request.function(job.request.args, static_cast<int64_t>(begin), static_cast<int64_t>(stop), &self.context);
    self.programs += stop - begin;
    uint64_t now = platform::now_ns();
    poll(self, now);
    if (now - before < kPieceNs / 2 && *piece < job.chunk)
      *piece *= 2;
    else if (now - before > kPieceNs * 2)
      *piece = std::max<uint64_t>(1, *piece / 2);
    before = now;
    begin = stop;
  }
}

// Stores that went past the caches become visible before whatever tells others that they happened.
void end_streams() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_sfence();
#endif
}

// Scratch and context for one thread's part in a job.
class Seat {
 public:
  Seat(Job& job, unsigned thread_id) : outermost_(!arena().busy) {
    const LaunchRequest& request = job.request;
    participant.job = &job;
    std::copy(request.grid, request.grid + 3, participant.context.grid);
    participant.context.thread_id = static_cast<int32_t>(thread_id);
    participant.context.host = &participant;
    participant.context.countdown = participant.countdown;
    participant.context.streams = request.streams;
    participant.last_check = participant.last_poll = platform::now_ns();
    participant.context.scratch = nullptr;
    if (outermost_) arena().busy = true;
    if (request.scratch_bytes == 0) return;
    if (outermost_)
      participant.context.scratch = arena().reserve(request.scratch_bytes);
    else
      participant.context.scratch = own_ = platform::allocate_aligned(request.scratch_bytes, 64);
    if (!participant.context.scratch) {
      job.fail(LaunchStatus::failure, "out of memory: a kernel needs " + std::to_string(request.scratch_bytes) +
                                          " bytes of scratch per thread");
      usable_ = false;
    }
  }
  ~Seat() {
    if (outermost_) arena().busy = false;
    if (own_) platform::free_aligned(own_);
  }
  void run(void (*body)(void*)) {
    if (!usable_) return;
    platform::Fault fault;
    if (platform::guarded_call(body, &participant, &fault, /*catch_abort=*/false) == platform::Exit::faulted)
      participant.job->fail(LaunchStatus::fault, platform::describe(fault));
    if (participant.job->request.streams) end_streams();
  }
  Participant participant;

 private:
  bool outermost_;
  bool usable_ = true;
  void* own_ = nullptr;
};

// ---- what a program of a kernel took last time, so that tiny launches stay on the caller's thread ----

struct CostTable {
  static constexpr size_t kEntries = 512;
  struct Entry {
    std::atomic<KernelFunction> function{nullptr};
    std::atomic<float> ns_per_program{0};
  } entries[kEntries];

  Entry& entry(KernelFunction function) {
    auto bits = reinterpret_cast<uintptr_t>(function);
    return entries[(bits >> 4 ^ bits >> 13) % kEntries];
  }
  // Negative: not known.
  float estimate(KernelFunction function) {
    Entry& found = entry(function);
    return found.function.load(std::memory_order_relaxed) == function
               ? found.ns_per_program.load(std::memory_order_relaxed)
               : -1.0f;
  }
  void record(KernelFunction function, uint64_t ns, uint64_t programs) {
    if (programs == 0) return;
    Entry& found = entry(function);
    found.ns_per_program.store(static_cast<float>(ns) / static_cast<float>(programs), std::memory_order_relaxed);
    found.function.store(function, std::memory_order_relaxed);
  }
};

CostTable costs;

// ---- the pool ----

unsigned initial_threads() {
  if (const char* text = std::getenv("TRITON_NUM_THREADS")) {
    long value = std::strtol(text, nullptr, 10);
    if (value >= 1) return static_cast<unsigned>(std::min<long>(value, kMaxThreads));
  }
  return std::min(platform::usable_cpus(), kMaxThreads);
}

void run_chunks(void* participant);

struct Pool {
  std::mutex mutex;        // jobs, started, each job's participants
  std::vector<Job*> jobs;  // with work left, oldest first
  unsigned started = 0;    // workers
  unsigned busy = 0;       // of them inside a job
  unsigned spins = kSpins;
  std::atomic<unsigned> threads{initial_threads()};
  alignas(64) std::atomic<uint32_t> epoch{0};  // changes when a job arrives
  std::atomic<uint32_t> sleepers{0};

  Job* claim(unsigned* thread_id) {
    std::lock_guard<std::mutex> lock(mutex);
    Job* job = open_job();
    if (!job) return nullptr;
    *thread_id = job->participants++;
    ++job->inside;
    ++busy;
    job->active.fetch_add(1, std::memory_order_relaxed);
    return job;
  }

  // A job that takes more participants. Holds the mutex.
  Job* open_job() {
    for (Job* job : jobs)
      if (job->inside < job->limit && !job->exhausted()) return job;
    return nullptr;
  }

  void leave(Job& job) {
    std::lock_guard<std::mutex> lock(mutex);
    --job.inside;
    --busy;
  }

  // Ends a worker that is more than there should be: some were started in place of waiting ones.
  bool retire() {
    std::lock_guard<std::mutex> lock(mutex);
    if (started <= threads.load(std::memory_order_relaxed) || open_job()) return false;
    --started;
    return true;
  }

  // A participant of the job waits: another may come in, until unrelieve().
  void relieve(Job& job) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++job.limit;
      if (job.exhausted()) return;
      std::string reason;
      if (busy >= started && started < kMaxThreads &&
          platform::start_thread(worker, this, kWorkerStackBytes, &reason))
        ++started;
    }
    epoch.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst)) platform::wake(&epoch, 1);
  }

  void unrelieve(Job& job) {
    std::lock_guard<std::mutex> lock(mutex);
    --job.limit;
  }

  // The job has too many participants now that some wait no longer: workers between two programs should leave.
  bool crowded(Job& job) {
    std::lock_guard<std::mutex> lock(mutex);
    return job.inside > job.limit;
  }

  void work() {
    for (;;) {
      uint32_t seen = epoch.load(std::memory_order_seq_cst);
      unsigned thread_id = 0;
      if (Job* job = claim(&thread_id)) {
        {
          Seat seat(*job, thread_id);
          seat.run(run_chunks);
        }
        leave(*job);
        if (job->active.fetch_sub(1, std::memory_order_acq_rel) == 1) platform::wake(&job->active, 1);
        continue;
      }
      bool changed = false;
      for (unsigned i = 0; i < spins && !changed; ++i) {
        platform::cpu_relax();
        changed = epoch.load(std::memory_order_relaxed) != seen;
      }
      if (changed) continue;
      if (retire()) return;
      sleepers.fetch_add(1, std::memory_order_seq_cst);
      platform::wait_on(&epoch, seen);
      sleepers.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  static void worker(void* self) { static_cast<Pool*>(self)->work(); }

  // Offers the job to workers; `wanted` of them at most.
  void publish(Job& job, unsigned wanted) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      while (started < wanted) {
        std::string reason;
        if (!platform::start_thread(worker, this, kWorkerStackBytes, &reason)) break;  // fewer threads do the same work
        ++started;
      }
      jobs.push_back(&job);
    }
    epoch.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst)) platform::wake(&epoch, wanted);
  }

  // No worker enters the job afterwards, and those inside have left.
  void withdraw(Job& job) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      jobs.erase(std::find(jobs.begin(), jobs.end(), &job));
    }
    for (int i = 0; i < 4 * kSpins && job.active.load(std::memory_order_acquire); ++i) platform::cpu_relax();
    while (uint32_t left = job.active.load(std::memory_order_acquire)) {
      platform::wait_on(&job.active, left);
      // Woken by the last worker, by one that says it takes longer, or by a signal.
      if (job.active.load(std::memory_order_acquire) && job.request.poll && !job.failed &&
          !job.request.poll(job.request.callback_arg))
        job.fail(LaunchStatus::interrupted, "interrupted");
    }
  }
};

// Never destroyed: detached workers use it until the process ends. A forked child gets a new one.
Pool& pool() {
  static Pool* instance = new Pool;
  return *instance;
}

// Drops what a participant did on behalf of the program that it has just run.
void end_program(Participant& self) {
  self.spinning = 0;
  if (self.relieved) pool().unrelieve(*self.job);
  self.relieved = false;
  self.job->progress.fetch_add(1, std::memory_order_relaxed);
}

void run_chunks(void* raw) {
  auto* self = static_cast<Participant*>(raw);
  Job& job = *self->job;
  const uint64_t total = job.request.total;
  uint64_t piece = job.piece;
  job.running.fetch_add(1, std::memory_order_relaxed);
  while (!job.failed.load(std::memory_order_relaxed)) {
    if (job.request.waits && self->context.thread_id != 0 && pool().crowded(job)) break;
    uint64_t begin = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= total) break;
    run_chunk(*self, begin, std::min(begin + job.chunk, total), &piece);
    if (job.request.waits) end_program(*self);
  }
  job.running.fetch_sub(1, std::memory_order_relaxed);
}

// Runs programs [done, total) of a job that is alone on its thread so far, with others' help where it pays.
void run_shared(Job& job, Seat& seat, unsigned threads, float estimate) {
  uint64_t left = job.request.total - job.next.load(std::memory_order_relaxed);
  job.chunk = std::max<uint64_t>(1, left / (uint64_t{threads} * 8));
  if (estimate > 0) {
    job.chunk = std::min(job.chunk, std::max<uint64_t>(1, static_cast<uint64_t>(kPollNs / estimate)));
    job.piece = std::max<uint64_t>(1, static_cast<uint64_t>(kPieceNs / estimate));
  }
  if (job.request.waits) job.chunk = 1;
  job.limit = threads;
  uint64_t helpers = std::min<uint64_t>(threads - 1, (left - 1) / job.chunk);
  uint64_t before = seat.participant.programs;
  uint64_t start = platform::now_ns();
  const bool shared = helpers || job.request.waits;
  if (shared) pool().publish(job, static_cast<unsigned>(helpers));
  seat.run(run_chunks);
  costs.record(job.request.function, platform::now_ns() - start, seat.participant.programs - before);
  if (shared) pool().withdraw(job);
}

// Runs [begin, end) on this thread, in steps, until it is done or has taken longer than expected.
void run_steps(void* raw) {
  auto* self = static_cast<Participant*>(raw);
  const LaunchRequest& request = self->job->request;
  const uint64_t step = self->job->piece;
  const uint64_t start = self->last_check;  // a moment ago: to ask the clock again takes as long as small programs do
  uint64_t elapsed = 0;
  while (self->programs < request.total && elapsed < kInlineOverrunNs) {
    uint64_t end = std::min(self->programs + step, request.total);
    request.function(request.args, static_cast<int64_t>(self->programs), static_cast<int64_t>(end), &self->context);
    self->programs = end;
    elapsed = platform::now_ns() - start;
  }
  costs.record(request.function, elapsed, self->programs);
}

}  // namespace

LaunchStatus launch(const LaunchRequest& request, std::string* error) {
  Job job;
  job.request = request;
  unsigned threads = pool().threads.load(std::memory_order_relaxed);
  if (request.threads) threads = std::min(threads, request.threads);
  {
    Seat seat(job, 0);
    float estimate = costs.estimate(request.function);
    bool tiny = !request.waits && estimate >= 0 && estimate * static_cast<float>(request.total) < static_cast<float>(kInlineNs);
    if (tiny) {
      job.piece = std::max<uint64_t>(1, request.total / 8);
      job.piece = std::max<uint64_t>(job.piece, static_cast<uint64_t>(kStepNs / std::max(estimate, 1.0f)));
      seat.run(run_steps);
    }
    uint64_t done = seat.participant.programs;
    if (done < request.total && !job.failed) {
      if (request.before_long_work) request.before_long_work(request.callback_arg);
      job.next.store(done, std::memory_order_relaxed);
      run_shared(job, seat, threads, estimate);
    }
  }
  if (job.status != LaunchStatus::ok) *error = std::move(job.message);
  return job.status;
}

bool grid_total(const int64_t grid[3], uint64_t* total, std::string* error) {
  constexpr int64_t kDimension = (int64_t{1} << 31) - 1;
  for (int i = 0; i < 3; ++i) {
    if (grid[i] < 0 || grid[i] > kDimension) {
      *error = "grid dimension " + std::to_string(i) + " is " + std::to_string(grid[i]) +
               "; it must lie between 0 and 2147483647";
      return false;
    }
  }
  uint64_t product = static_cast<uint64_t>(grid[0]) * static_cast<uint64_t>(grid[1]);  // below 2^62
  auto depth = static_cast<uint64_t>(grid[2]);
  constexpr uint64_t kTotal = uint64_t{1} << 62;
  if (depth && product > kTotal / depth) {
    *error = "the grid has more than 2^62 programs";
    return false;
  }
  *total = product * depth;
  return true;
}

void fail_assertion(LaunchContext* context, const char* message, size_t length) {
  static_cast<Participant*>(context->host)->job->fail(LaunchStatus::assertion, std::string(message, length));
  platform::escape();
}

void check_program(LaunchContext* context, bool spins) {
  auto& self = *static_cast<Participant*>(context->host);
  if (self.job->failed.load(std::memory_order_relaxed)) platform::escape();
  const uint64_t now = platform::now_ns(), passed = now - self.last_check;
  self.last_check = now;
  if (passed < kCheckNs / 2)
    self.countdown = std::min(self.countdown * 2, 1 << 20);
  else if (passed > kCheckNs * 2)
    self.countdown = std::max(self.countdown / 2, 1);
  context->countdown = self.countdown;
  poll(self, now);
  if (self.job->failed.load(std::memory_order_relaxed)) platform::escape();
  if (!spins || !self.job->request.waits) return;
  if (passed < kCheckNs * 8) self.spinning += passed;
  if (self.spinning < kSpinNs) return;
  if (!self.relieved) {
    self.relieved = true;
    pool().relieve(*self.job);
  }
  std::this_thread::yield();
}

bool wait_for_others(LaunchContext* context, Wait* wait) {
  auto& self = *static_cast<Participant*>(context->host);
  Job& job = *self.job;
  const uint64_t now = platform::now_ns();
  if (wait->looks++ == 0) wait->started = wait->changed = now;
  const bool timed = wait->timeout_ns >= 0;
  if (timed && now - wait->started >= static_cast<uint64_t>(wait->timeout_ns)) return false;
  if (wait->looks < unsigned{kSpins}) {
    platform::cpu_relax();
    return true;
  }
  if (!wait->waiting) {
    wait->waiting = true;
    if (!timed) job.waiting.fetch_add(1, std::memory_order_relaxed);
    if (job.request.waits) pool().relieve(job);
  }
  poll(self, now);
  if (job.failed.load(std::memory_order_relaxed)) platform::escape();
  const uint64_t progress = job.progress.load(std::memory_order_relaxed);
  const bool all_wait = job.waiting.load(std::memory_order_relaxed) >= job.running.load(std::memory_order_relaxed);
  if (progress != wait->progress || timed || !all_wait) {
    wait->progress = progress;
    wait->changed = now;
  } else if (now - wait->changed > kPatienceNs) {
    bool rest = job.next.load(std::memory_order_relaxed) < job.request.total;
    job.fail(LaunchStatus::stuck, std::string(wait->place, wait->place_length) +
                                      "atomic_poll: every program waits, " +
                                      (rest ? "no more can be started" : "none is left to write") +
                                      ", and nothing changed for 10 seconds");
    platform::escape();
  }
  if (wait->looks < kBusyLooks)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return true;
}

void end_wait(LaunchContext* context, Wait* wait) {
  if (!wait->waiting) return;
  Job& job = *static_cast<Participant*>(context->host)->job;
  if (wait->timeout_ns < 0) job.waiting.fetch_sub(1, std::memory_order_relaxed);
  job.progress.fetch_add(1, std::memory_order_relaxed);
  if (job.request.waits) pool().unrelieve(job);
}

void forget_costs() {
  for (CostTable::Entry& entry : costs.entries) entry.function.store(nullptr, std::memory_order_relaxed);
}

void set_num_threads(unsigned count) {
  pool().threads.store(std::clamp(count, 1u, kMaxThreads), std::memory_order_relaxed);
}
unsigned get_num_threads() { return pool().threads.load(std::memory_order_relaxed); }

void lock_pool() { pool().mutex.lock(); }
void unlock_pool() { pool().mutex.unlock(); }

void renew_pool_in_child() {
  // The threads did not come along. Same object in a fresh state: references to it stay good.
  unsigned threads = get_num_threads();
  Pool* fresh = new (&pool()) Pool;
  fresh->threads.store(threads, std::memory_order_relaxed);
}

}  // namespace triton
