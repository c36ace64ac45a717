// Object files into this process, by ORC.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace triton {

class JitSession;

// One linked object file in a JITDylib of its own; the memory goes with this object.
class JitCode {
 public:
  ~JitCode();
  JitCode(const JitCode&) = delete;
  JitCode& operator=(const JitCode&) = delete;

  // Links the object. nullptr with the reason in *error on failure. `symbols` are found before the runtime's and the
  // process's.
  static std::unique_ptr<JitCode> load(std::string_view object, const std::map<std::string, uint64_t>& symbols,
                                       std::string* error);

  // Address of a symbol the object defines; 0 with the reason in *error when there is none.
  uint64_t address(const std::string& name, std::string* error);

 private:
  friend class JitSession;
  JitCode(std::shared_ptr<JitSession> session, void* dylib) : session_(std::move(session)), dylib_(dylib) {}
  std::shared_ptr<JitSession> session_;
  void* dylib_;
  std::map<std::string, uint64_t> resolved_;
};

// Around fork(): no thread may be in the middle of linking.
void lock_jit();
void unlock_jit();

}  // namespace triton
