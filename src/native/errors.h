// LLVM's ways of failing, gathered: Error values, diagnostics, fatal errors, crashes. All end as one message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>

namespace triton {

// Takes a string LLVM allocated (may be null) and frees it.
std::string take_message(char* message);

// Takes an LLVMErrorRef that is not success and frees it.
std::string take_error(LLVMErrorRef error);

// A piece of LLVM work. It runs on a thread of its own (run_llvm_job), because a fatal error can only be survived by
// dropping the stack it happened on: what that stack owned is lost, the process is not.
class LlvmJob {
 public:
  virtual ~LlvmJob() = default;
  // Does the work; on failure calls fail() and returns.
  virtual void run() = 0;

  void fail(std::string message) {
    if (error.empty()) error = std::move(message);
    failed = true;
  }

  bool failed = false;
  bool crashed = false;  // fatal error or hardware fault: LLVM objects in use by the job are in an unknown state
  std::string error;
};

// Runs the job and waits for it; false with job->error set on failure. With timeout_ms > 0 waiting ends after that
// time, the message goes to *timeout_error, and the job is left to finish unseen.
bool run_llvm_job(const std::shared_ptr<LlvmJob>& job, uint32_t timeout_ms, std::string* timeout_error);

// Sends a context's diagnostics (inline assembly, back ends) to this object in place of stderr and exit().
class Diagnostics {
 public:
  explicit Diagnostics(LLVMContextRef context);
  bool has_errors() const { return !errors_.empty(); }
  std::string errors() const;  // joined by newlines
  std::vector<std::string> warnings;

 private:
  static void handle(LLVMDiagnosticInfoRef info, void* self);
  std::vector<std::string> errors_;
};

}  // namespace triton
