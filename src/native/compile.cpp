#include "compile.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>

#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include "platform.h"

// The back ends this library asks for; CMake defines one macro per family that the LLVM found was built with.
#define TRITON_INITIALISE(family)       \
  LLVMInitialize##family##TargetInfo(); \
  LLVMInitialize##family##Target();     \
  LLVMInitialize##family##TargetMC();   \
  LLVMInitialize##family##AsmPrinter()

namespace triton {

void initialise_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
#ifdef TRITON_TARGET_X86
    TRITON_INITIALISE(X86);
    LLVMInitializeX86AsmParser();
#endif
#ifdef TRITON_TARGET_NVPTX
    TRITON_INITIALISE(NVPTX);
#endif
#ifdef TRITON_TARGET_AMDGPU
    TRITON_INITIALISE(AMDGPU);
    LLVMInitializeAMDGPUAsmParser();
#endif
#ifdef TRITON_TARGET_AARCH64
    TRITON_INITIALISE(AArch64);
    LLVMInitializeAArch64AsmParser();
#endif
  });
}

std::string llvm_version() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::vector<std::string> target_families() {
  // Ask the registry: a shared LLVM may have been built differently from the headers.
  static constexpr std::pair<const char*, const char*> kFamilies[] = {
      {"AArch64", "aarch64"}, {"AMDGPU", "amdgcn"}, {"NVPTX", "nvptx64"}, {"X86", "x86-64"}};
  std::vector<std::string> found;
  for (auto [family, target] : kFamilies) {
    LLVMTargetRef registered = LLVMGetTargetFromName(target);
    if (registered && LLVMTargetHasTargetMachine(registered)) found.push_back(family);
  }
  return found;
}

HostTarget host_target() {
  return {take_message(LLVMGetDefaultTargetTriple()), take_message(LLVMGetHostCPUName()),
          take_message(LLVMGetHostCPUFeatures())};
}

namespace {

struct ContextDeleter {
  void operator()(LLVMContextRef context) const { LLVMContextDispose(context); }
};
struct ModuleDeleter {
  void operator()(LLVMModuleRef module) const { LLVMDisposeModule(module); }
};
using Context = std::unique_ptr<LLVMOpaqueContext, ContextDeleter>;
using Module = std::unique_ptr<LLVMOpaqueModule, ModuleDeleter>;

// ---- target machines: costly to make and not shareable, so idle ones are kept by what they were made from ----

using MachineKey =
    std::tuple<std::string, std::string, std::string, int, std::string>;  // triple, cpu, features, level, reloc

std::mutex machines_mutex;
std::map<MachineKey, std::vector<LLVMTargetMachineRef>> idle_machines;
constexpr size_t kIdlePerKey = 8;

LLVMTargetMachineRef create_machine(const MachineKey& key, std::string* error) {
  const auto& [triple, cpu, features, level, reloc] = key;
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(triple.c_str(), &target, &message)) {
    *error = take_message(message);
    return nullptr;
  }
  LLVMRelocMode mode = LLVMRelocDefault;
  if (reloc == "pic") mode = LLVMRelocPIC;
  if (reloc == "static") mode = LLVMRelocStatic;
  LLVMTargetMachineRef machine =
      LLVMCreateTargetMachine(target, triple.c_str(), cpu.c_str(), features.c_str(),
                              static_cast<LLVMCodeGenOptLevel>(level), mode, LLVMCodeModelDefault);
  if (!machine) *error = "LLVM cannot make a code generator for '" + triple + "', cpu '" + cpu + "'";
  return machine;
}

// Borrowed for one compile. After a crash the object is never given back: destructors do not run then.
class Machine {
 public:
  explicit Machine(MachineKey key) : key_(std::move(key)) {}
  ~Machine() {
    if (!machine_) return;
    {
      std::lock_guard<std::mutex> lock(machines_mutex);
      auto& idle = idle_machines[key_];
      if (idle.size() < kIdlePerKey) {
        idle.push_back(machine_);
        return;
      }
    }
    LLVMDisposeTargetMachine(machine_);
  }
  bool acquire(std::string* error) {
    {
      std::lock_guard<std::mutex> lock(machines_mutex);
      auto found = idle_machines.find(key_);
      if (found != idle_machines.end() && !found->second.empty()) {
        machine_ = found->second.back();
        found->second.pop_back();
        return true;
      }
    }
    machine_ = create_machine(key_, error);
    return machine_ != nullptr;
  }
  LLVMTargetMachineRef get() const { return machine_; }

 private:
  MachineKey key_;
  LLVMTargetMachineRef machine_ = nullptr;
};

// ---- stages ----

Module parse(LLVMContextRef context, const std::string& ir, LlvmJob& job) {
  LLVMMemoryBufferRef buffer =
      LLVMCreateMemoryBufferWithMemoryRange(ir.data(), ir.size(), "kernel.ll", /*RequiresNullTerminator=*/1);
  LLVMModuleRef module = nullptr;
  char* message = nullptr;
#if LLVM_VERSION_MAJOR >= 23
  LLVMBool failed = LLVMParseIRInContext2(context, buffer, &module, &message);
  LLVMDisposeMemoryBuffer(buffer);
#else
  LLVMBool failed = LLVMParseIRInContext(context, buffer, &module, &message);  // consumes the buffer
#endif
  if (failed) {
    job.fail(take_message(message));
    return nullptr;
  }
  return Module(module);
}

bool verify(LLVMModuleRef module, LlvmJob& job) {
  char* message = nullptr;
  if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    job.fail(take_message(message));
    return false;
  }
  LLVMDisposeMessage(message);
  return true;
}

template <typename Visit>
void for_each_global(LLVMModuleRef module, Visit visit) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) visit(f);
  for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) visit(g);
}

std::string name_of(LLVMValueRef value) {
  size_t length = 0;
  const char* name = LLVMGetValueName2(value, &length);
  return std::string(name, length);
}

bool is_local(LLVMValueRef value) {
  LLVMLinkage linkage = LLVMGetLinkage(value);
  return linkage == LLVMInternalLinkage || linkage == LLVMPrivateLinkage;
}

// Links one bitcode library into `module`. Only what the module needs is read and linked: the library is parsed lazily
// and its definitions are made linkonce_odr first, which the linker skips unless referenced.
bool link_library(LLVMModuleRef module, const std::string& bytes, size_t index, LlvmJob& job,
                  const Diagnostics& diagnostics) {
  auto failed = [&](const char* what) {
    std::string detail = diagnostics.errors();
    job.fail(std::string(what) + " bitcode library " + std::to_string(index) + (detail.empty() ? "" : ": " + detail));
    return false;
  };
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(bytes.data(), bytes.size(), "library.bc", 0);
  LLVMModuleRef library = nullptr;
  if (LLVMGetBitcodeModuleInContext2(LLVMGetModuleContext(module), buffer, &library)) {
    LLVMDisposeMemoryBuffer(buffer);
    return failed("cannot read");
  }
  LLVMSetTarget(library, LLVMGetTarget(module));
  LLVMSetDataLayout(library, LLVMGetDataLayoutStr(module));
  for_each_global(library, [](LLVMValueRef value) {
    LLVMLinkage linkage = LLVMGetLinkage(value);
    bool definition = linkage == LLVMExternalLinkage || linkage == LLVMWeakAnyLinkage || linkage == LLVMWeakODRLinkage;
    if (definition && !LLVMIsDeclaration(value)) LLVMSetLinkage(value, LLVMLinkOnceODRLinkage);
  });
  if (LLVMLinkModules2(module, library)) return failed("cannot link");  // consumes the library
  return true;
}

bool link_libraries(LLVMModuleRef module, const CompileJob& request, CompileJob& job, const Diagnostics& diagnostics) {
  if (request.bitcode.empty()) return true;
  std::set<std::string> own;
  for_each_global(module, [&](LLVMValueRef value) {
    if (!LLVMIsDeclaration(value)) own.insert(name_of(value));
  });
  for (size_t i = 0; i < request.bitcode.size(); ++i)
    if (!link_library(module, request.bitcode[i], i, job, diagnostics)) return false;
  // What came from a library serves this module alone: internal, so that it can be inlined away.
  for_each_global(module, [&](LLVMValueRef value) {
    if (LLVMIsDeclaration(value) || is_local(value) || own.count(name_of(value))) return;
    if (LLVMGetLinkage(value) == LLVMAppendingLinkage) return;
    LLVMSetLinkage(value, LLVMInternalLinkage);
    LLVMSetVisibility(value, LLVMDefaultVisibility);
  });
  return true;
}

bool set_target(LLVMModuleRef module, LLVMTargetMachineRef machine, const std::string& triple, LlvmJob& job) {
  LLVMTargetDataRef data = LLVMCreateTargetDataLayout(machine);
  std::string layout = take_message(LLVMCopyStringRepOfTargetData(data));
  LLVMDisposeTargetData(data);
  std::string given = LLVMGetDataLayoutStr(module);
  if (!given.empty() && given != layout) {
    job.fail("the module's data layout '" + given + "' is not that of '" + triple + "': '" + layout + "'");
    return false;
  }
  LLVMSetDataLayout(module, layout.c_str());
  LLVMSetTarget(module, triple.c_str());
  return true;
}

bool optimise(LLVMModuleRef module, LLVMTargetMachineRef machine, const std::string& passes, LlvmJob& job) {
  if (passes.empty()) return true;
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(module, passes.c_str(), machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (error) {
    job.fail(take_error(error));
    return false;
  }
  return true;
}

bool generate(LLVMModuleRef module, LLVMTargetMachineRef machine, LLVMCodeGenFileType type, std::string* out,
              LlvmJob& job) {
  char* message = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer)) {
    job.fail(take_message(message));
    return false;
  }
  out->assign(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return true;
}

bool emit_all(LLVMModuleRef module, LLVMTargetMachineRef machine, CompileJob& job) {
  auto wants = [&](const char* name) { return std::find(job.emit.begin(), job.emit.end(), name) != job.emit.end(); };
  if (wants("ll")) job.outputs["ll"] = take_message(LLVMPrintModuleToString(module));
  if (wants("bc")) {
    LLVMMemoryBufferRef buffer = LLVMWriteBitcodeToMemoryBuffer(module);
    job.outputs["bc"].assign(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
  }
  bool want_object = wants("obj");
  if (wants("asm")) {
    // Code generation rewrites the module, so a second one needs a copy.
    Module copy(want_object ? LLVMCloneModule(module) : nullptr);
    if (!generate(copy ? copy.get() : module, machine, LLVMAssemblyFile, &job.outputs["asm"], job)) return false;
  }
  return !want_object || generate(module, machine, LLVMObjectFile, &job.outputs["obj"], job);
}

class StageClock {
 public:
  explicit StageClock(CompileJob& job) : job_(job), last_(platform::now_ns()) {}
  void finish(const char* stage) {
    uint64_t now = platform::now_ns();
    job_.timings.emplace_back(stage, static_cast<double>(now - last_) * 1e-9);
    last_ = now;
  }

 private:
  CompileJob& job_;
  uint64_t last_;
};

}  // namespace

void lock_target_machines() { machines_mutex.lock(); }
void unlock_target_machines() { machines_mutex.unlock(); }

void CompileJob::run() {
  StageClock clock(*this);
  Context context(LLVMContextCreate());
  Diagnostics diagnostics(context.get());
  // A stage may report through its return value, through diagnostics, or both.
  auto stage_ok = [&](bool ok) {
    if (diagnostics.has_errors()) {
      std::string text = diagnostics.errors();
      error = error.empty() || error == text ? text : error + "\n" + text;
      failed = true;
    }
    warnings = diagnostics.warnings;
    return ok && !failed;
  };
  Machine machine({triple, cpu, features, opt_level, reloc});
  Module module = parse(context.get(), ir, *this);
  if (!stage_ok(module != nullptr) || !machine.acquire(&error)) {
    failed = true;
    return;
  }
  if (!stage_ok(set_target(module.get(), machine.get(), triple, *this) && verify(module.get(), *this))) return;
  clock.finish("parse");
  if (!stage_ok(link_libraries(module.get(), *this, *this, diagnostics))) return;
  clock.finish("link");
  if (!stage_ok(optimise(module.get(), machine.get(), passes, *this))) return;
  clock.finish("optimise");
  if (!stage_ok(emit_all(module.get(), machine.get(), *this))) return;
  clock.finish("codegen");
}

void VerifyJob::run() {
  Context context(LLVMContextCreate());
  Diagnostics diagnostics(context.get());
  Module module = parse(context.get(), ir, *this);
  if (module) verify(module.get(), *this);
  if (diagnostics.has_errors()) fail(diagnostics.errors());
}

}  // namespace triton
