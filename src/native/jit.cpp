#include "jit.h"

#include <atomic>
#include <mutex>
#include <vector>

#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

#include "compile.h"
#include "errors.h"
#include "pool.h"
#include "runtime_symbols.h"

namespace triton {

// An LLJIT and its JITDylibs. The C API cannot remove a JITDylib, so emptied ones are used again.
class JitSession {
 public:
  static std::shared_ptr<JitSession> create(std::string* error) {
    auto session = std::make_shared<JitSession>();
    if (LLVMErrorRef failure = LLVMOrcCreateLLJIT(&session->jit_, nullptr)) {
      *error = take_error(failure);
      return nullptr;
    }
    session->execution_ = LLVMOrcLLJITGetExecutionSession(session->jit_);
    LLVMOrcExecutionSessionSetErrorReporter(session->execution_, report, session.get());
    return session;
  }

  LLVMOrcJITDylibRef acquire(std::string* error) {
    if (!idle_.empty()) {
      LLVMOrcJITDylibRef dylib = idle_.back();
      idle_.pop_back();
      return dylib;
    }
    std::string name = "kernel" + std::to_string(count_++);
    LLVMOrcJITDylibRef dylib = LLVMOrcExecutionSessionCreateBareJITDylib(execution_, name.c_str());
    LLVMOrcDefinitionGeneratorRef process = nullptr;
    char prefix = LLVMOrcLLJITGetGlobalPrefix(jit_);
    if (LLVMErrorRef failure =
            LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, prefix, nullptr, nullptr)) {
      *error = take_error(failure);
      return nullptr;
    }
    LLVMOrcJITDylibAddGenerator(dylib, process);
    return dylib;
  }

  void release(LLVMOrcJITDylibRef dylib) {
    if (LLVMErrorRef failure = LLVMOrcJITDylibClear(dylib)) {
      LLVMConsumeError(failure);  // its memory stays; it is not offered again
      return;
    }
    idle_.push_back(dylib);
  }

  bool define(LLVMOrcJITDylibRef dylib, const std::map<std::string, uint64_t>& extra, std::string* error) {
    std::vector<LLVMOrcCSymbolMapPair> pairs;
    auto add = [&](const char* name, uint64_t address) {
      LLVMJITSymbolFlags flags = {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0};
      pairs.push_back({LLVMOrcLLJITMangleAndIntern(jit_, name), {address, flags}});
    };
    for (const auto& [name, address] : extra) add(name.c_str(), address);
    for (const RuntimeSymbol& symbol : runtime_symbols())
      if (!extra.count(symbol.name)) add(symbol.name, symbol.address);
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pairs.data(), pairs.size());
    if (LLVMErrorRef failure = LLVMOrcJITDylibDefine(dylib, unit)) {
      LLVMOrcDisposeMaterializationUnit(unit);
      *error = take_error(failure);
      return false;
    }
    return true;
  }

  bool add(LLVMOrcJITDylibRef dylib, std::string_view object, std::string* error) {
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), "kernel.o");
    if (LLVMErrorRef failure = LLVMOrcLLJITAddObjectFile(jit_, dylib, buffer)) {
      *error = take_error(failure);
      return false;
    }
    return true;
  }

  uint64_t lookup(LLVMOrcJITDylibRef dylib, const char* name, std::string* error) {
    struct Answer {
      uint64_t address = 0;
      std::string error;
    } answer;
    reported_.clear();
    LLVMOrcCJITDylibSearchOrderElement order = {dylib, LLVMOrcJITDylibLookupFlagsMatchExportedSymbolsOnly};
    LLVMOrcCLookupSetElement wanted = {LLVMOrcLLJITMangleAndIntern(jit_, name), LLVMOrcSymbolLookupFlagsRequiredSymbol};
    auto handle = [](LLVMErrorRef failure, LLVMOrcCSymbolMapPairs result, size_t count, void* raw) {
      auto* out = static_cast<Answer*>(raw);
      if (failure)
        out->error = take_error(failure);
      else if (count == 1)
        out->address = result[0].Sym.Address;
    };
    // No task dispatcher is installed, so the answer is there when this returns.
    LLVMOrcExecutionSessionLookup(execution_, LLVMOrcLookupKindStatic, &order, 1, &wanted, 1, handle, &answer);
    if (answer.address) return answer.address;
    *error = answer.error.empty() ? std::string("symbol '") + name + "' has no address" : answer.error;
    if (!reported_.empty()) *error += "; " + reported_;
    return 0;
  }

  std::mutex mutex;                 // every use of the members below
  std::atomic<bool> broken{false};  // LLVM gave up inside ORC: its locks may be held forever

 private:
  static void report(void* self, LLVMErrorRef failure) {
    auto& text = static_cast<JitSession*>(self)->reported_;
    if (!text.empty()) text += "; ";
    text += take_error(failure);
  }

  // Never disposed: code of this session may run until the process ends.
  LLVMOrcLLJITRef jit_ = nullptr;
  LLVMOrcExecutionSessionRef execution_ = nullptr;
  std::vector<LLVMOrcJITDylibRef> idle_;
  unsigned count_ = 0;
  std::string reported_;
};

namespace {

std::mutex current_mutex;
std::shared_ptr<JitSession> current_session;

std::shared_ptr<JitSession> session_for_use(std::string* error) {
  std::lock_guard<std::mutex> lock(current_mutex);
  if (!current_session || current_session->broken) current_session = JitSession::create(error);
  return current_session;
}

struct LoadJob final : LlvmJob {
  void run() override {
    session = session_for_use(&error);
    if (!session) {
      failed = true;
      return;
    }
    std::lock_guard<std::mutex> lock(session->mutex);
    dylib = session->acquire(&error);
    failed = !dylib || !session->define(dylib, symbols, &error) || !session->add(dylib, object, &error);
    if (failed && dylib) session->release(dylib);
  }
  std::string object;
  std::map<std::string, uint64_t> symbols;
  std::shared_ptr<JitSession> session;
  LLVMOrcJITDylibRef dylib = nullptr;
};

struct LookupJob final : LlvmJob {
  void run() override {
    std::lock_guard<std::mutex> lock(session->mutex);
    address = session->lookup(dylib, name.c_str(), &error);
    failed = address == 0;
  }
  std::shared_ptr<JitSession> session;
  LLVMOrcJITDylibRef dylib = nullptr;
  std::string name;
  uint64_t address = 0;
};

}  // namespace

std::unique_ptr<JitCode> JitCode::load(std::string_view object, const std::map<std::string, uint64_t>& symbols,
                                       std::string* error) {
  initialise_targets();
  auto job = std::make_shared<LoadJob>();
  job->object = object;
  job->symbols = symbols;
  if (!run_llvm_job(job, 0, nullptr)) {
    if (job->crashed && job->session) job->session->broken = true;
    *error = job->error;
    return nullptr;
  }
  return std::unique_ptr<JitCode>(new JitCode(job->session, job->dylib));
}

uint64_t JitCode::address(const std::string& name, std::string* error) {
  if (session_->broken) {
    *error = "the JIT session of this code has failed";
    return 0;
  }
  auto found = resolved_.find(name);
  if (found != resolved_.end()) return found->second;
  auto job = std::make_shared<LookupJob>();
  job->session = session_;
  job->dylib = static_cast<LLVMOrcJITDylibRef>(dylib_);
  job->name = name;
  if (!run_llvm_job(job, 0, nullptr)) {
    if (job->crashed) session_->broken = true;
    *error = job->error;
    return 0;
  }
  resolved_[name] = job->address;
  return job->address;
}

JitCode::~JitCode() {
  forget_costs();
  if (session_->broken) return;
  std::lock_guard<std::mutex> lock(session_->mutex);
  session_->release(static_cast<LLVMOrcJITDylibRef>(dylib_));
}

namespace {
std::shared_ptr<JitSession> locked_session;  // between lock_jit() and unlock_jit(), which one thread calls in turn
}

void lock_jit() {
  current_mutex.lock();
  locked_session = current_session;
  if (locked_session && !locked_session->broken) locked_session->mutex.lock();
}

void unlock_jit() {
  if (locked_session && !locked_session->broken) locked_session->mutex.unlock();
  locked_session.reset();
  current_mutex.unlock();
}

}  // namespace triton
