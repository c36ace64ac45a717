#include "errors.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include <llvm-c/ErrorHandling.h>

#include "platform.h"

namespace triton {

std::string take_message(char* message) {
  if (!message) return {};
  std::string text(message);
  LLVMDisposeMessage(message);
  return text;
}

std::string take_error(LLVMErrorRef error) {
  char* message = LLVMGetErrorMessage(error);
  std::string text(message ? message : "");
  LLVMDisposeErrorMessage(message);
  return text;
}

namespace {

// Shared by the waiting thread and the working one, which may outlive the wait.
struct Ticket {
  std::shared_ptr<LlvmJob> job;
  std::mutex mutex;
  std::condition_variable done_signal;
  bool done = false;
};

thread_local LlvmJob* current_job = nullptr;

// LLVM aborts the process when this returns, so on a job's thread it never does.
void on_fatal_error(const char* reason) {
  LlvmJob* job = current_job;
  if (!job) {  // another user of the same LLVM: what it would have seen without this handler
    fprintf(stderr, "LLVM ERROR: %s\n", reason);
    return;
  }
  job->error.clear();
  job->fail(reason && *reason ? reason : "fatal error in LLVM without a message");
  platform::escape();
}

void run_job(void* raw) { static_cast<LlvmJob*>(raw)->run(); }

void job_thread(void* raw) {
  std::unique_ptr<std::shared_ptr<Ticket>> holder(static_cast<std::shared_ptr<Ticket>*>(raw));
  Ticket& ticket = **holder;
  LlvmJob* job = ticket.job.get();
  current_job = job;
  platform::Fault fault;
  platform::Exit exit = platform::guarded_call(run_job, job, &fault, /*catch_abort=*/true);
  current_job = nullptr;
  if (exit != platform::Exit::returned) job->crashed = true;
  if (exit == platform::Exit::faulted) {
    job->error.clear();
    job->fail("LLVM crashed: " + platform::describe(fault));
  }
  std::lock_guard<std::mutex> lock(ticket.mutex);
  ticket.done = true;
  ticket.done_signal.notify_all();
}

// Deeply nested IR recurses deeply; the pages are only touched when used.
constexpr size_t kJobStackBytes = size_t{32} << 20;

}  // namespace

bool run_llvm_job(const std::shared_ptr<LlvmJob>& job, uint32_t timeout_ms, std::string* timeout_error) {
  static std::once_flag once;
  std::call_once(once, [] { LLVMInstallFatalErrorHandler(on_fatal_error); });
  auto ticket = std::make_shared<Ticket>();
  ticket->job = job;
  auto* holder = new std::shared_ptr<Ticket>(ticket);
  std::string error;
  if (!platform::start_thread(job_thread, holder, kJobStackBytes, &error)) {
    delete holder;
    job->fail(error);
    return false;
  }
  std::unique_lock<std::mutex> lock(ticket->mutex);
  auto finished = [&] { return ticket->done; };
  if (timeout_ms == 0) {
    ticket->done_signal.wait(lock, finished);
  } else if (!ticket->done_signal.wait_for(lock, std::chrono::milliseconds(timeout_ms), finished)) {
    *timeout_error = "compilation did not finish within " + std::to_string(timeout_ms) + " ms";
    return false;
  }
  return !job->failed;
}

Diagnostics::Diagnostics(LLVMContextRef context) { LLVMContextSetDiagnosticHandler(context, handle, this); }

void Diagnostics::handle(LLVMDiagnosticInfoRef info, void* self) {
  auto* diagnostics = static_cast<Diagnostics*>(self);
  std::string text = take_message(LLVMGetDiagInfoDescription(info));
  switch (LLVMGetDiagInfoSeverity(info)) {
    case LLVMDSError: diagnostics->errors_.push_back(std::move(text)); break;
    case LLVMDSWarning: diagnostics->warnings.push_back(std::move(text)); break;
    case LLVMDSRemark:
    case LLVMDSNote: break;  // optimisation remarks: nobody asked for them
  }
}

std::string Diagnostics::errors() const {
  std::string joined;
  for (const std::string& text : errors_) {
    if (!joined.empty()) joined += '\n';
    joined += text;
  }
  return joined;
}

}  // namespace triton
