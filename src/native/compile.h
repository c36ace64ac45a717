// Textual LLVM IR in; optimised IR, bitcode, assembly or an object out.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"

namespace triton {

struct CompileJob final : LlvmJob {
  void run() override;

  std::string ir, triple, cpu, features, passes, reloc;
  std::vector<std::string> bitcode;
  std::vector<std::string> emit;
  int opt_level = 2;

  std::map<std::string, std::string> outputs;
  std::vector<std::pair<const char*, double>> timings;  // stage, seconds
  std::vector<std::string> warnings;
};

struct VerifyJob final : LlvmJob {
  void run() override;

  std::string ir;
};

// Registers the code generators once. Call before anything else here.
void initialise_targets();

std::string llvm_version();
std::vector<std::string> target_families();  // sorted; those that LLVM really has registered

struct HostTarget {
  std::string triple, cpu, features;
};
HostTarget host_target();

// Around fork(): no thread may hold the cache of target machines.
void lock_target_machines();
void unlock_target_machines();

}  // namespace triton
