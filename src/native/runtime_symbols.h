// What generated CPU code may call: the tl_* runtime, half-precision helpers of the compiler's ABI, libm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace triton {

struct RuntimeSymbol {
  const char* name;
  uint64_t address;
};

const std::vector<RuntimeSymbol>& runtime_symbols();

// Receives finished lines of device_print. nullptr: the C library's stdout.
using PrintSink = void (*)(const char* text, size_t length);
void set_print_sink(PrintSink sink);

}  // namespace triton
