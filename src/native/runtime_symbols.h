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

// Rounds a double to a binary format of `exponent_bits` + `mantissa_bits`, to nearest even; the sign is the top bit.
uint32_t round_from_double(double value, int exponent_bits, int mantissa_bits);

// Receives finished lines of device_print. nullptr: the C library's stdout.
using PrintSink = void (*)(const char* text, size_t length);
void set_print_sink(PrintSink sink);

}  // namespace triton
