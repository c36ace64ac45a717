#include "runtime_symbols.h"

#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "platform.h"
#include "pool.h"

namespace triton {
namespace {

std::atomic<PrintSink> print_sink{nullptr};

template <typename Integer>
Integer acquire(const void* address) {
  return static_cast<const std::atomic<Integer>*>(address)->load(std::memory_order_acquire);
}

// ---- tl_*: called by generated code, declared in IR by these exact names ----

extern "C" {

[[noreturn]] static void tl_assert_fail(LaunchContext* context, const char* message, int64_t length) {
  fail_assertion(context, message, static_cast<size_t>(length));
}

static void tl_print(LaunchContext*, const char* text, int64_t length) {
  std::string_view line(text, static_cast<size_t>(length));
  auto print = [](void* raw) {
    auto* line = static_cast<std::string_view*>(raw);
    PrintSink sink = print_sink.load(std::memory_order_acquire);
    (sink ? sink : platform::write_line)(line->data(), line->size());
  };
  platform::call_host(print, &line);
}

static void tl_check(LaunchContext* context, int32_t spins) { check_program(context, spins != 0); }

// Waits until the integer of `bits` at `address` is `expected`; 0 when `timeout` ns (negative: none) went by before.
// `place` goes before error messages.
static int32_t tl_poll(LaunchContext* context, const void* address, int64_t expected, int32_t bits, int64_t timeout,
                       const char* place, int64_t length) {
  Wait wait{timeout, place, static_cast<size_t>(length)};
  auto seen = [=] {
    switch (bits) {
      case 16: return acquire<int16_t>(address) == static_cast<int16_t>(expected);
      case 32: return acquire<int32_t>(address) == static_cast<int32_t>(expected);
    }
    return acquire<int64_t>(address) == expected;
  };
  bool found = seen();
  while (!found && wait_for_others(context, &wait)) found = seen();
  end_wait(context, &wait);
  return found;
}

// tl_fmt_*: write at most 32 bytes to `buffer`, without a terminator, and return how many.
constexpr size_t kFormatBytes = 32;

static int64_t finish(char* buffer, const char* text, int length) {
  memcpy(buffer, text, static_cast<size_t>(length));
  return length;
}

// `hex`: 0 prints decimal; n > 0 prints 0x and the low n hexadecimal digits.
static int64_t tl_fmt_u64(char* buffer, uint64_t value, int32_t hex) {
  char text[kFormatBytes];
  if (hex <= 0) return finish(buffer, text, snprintf(text, sizeof text, "%" PRIu64, value));
  int digits = hex < 16 ? hex : 16;
  if (digits < 16) value &= (uint64_t{1} << (4 * digits)) - 1;
  return finish(buffer, text, snprintf(text, sizeof text, "0x%0*" PRIx64, digits, value));
}

static int64_t tl_fmt_i64(char* buffer, int64_t value, int32_t hex) {
  if (hex > 0) return tl_fmt_u64(buffer, static_cast<uint64_t>(value), hex);
  char text[kFormatBytes];
  return finish(buffer, text, snprintf(text, sizeof text, "%" PRId64, value));
}

// As printf's %g; a NaN is written without its sign.
static int64_t tl_fmt_f64(char* buffer, double value) {
  char text[kFormatBytes];
  return finish(buffer, text, snprintf(text, sizeof text, "%g", std::isnan(value) ? std::fabs(value) : value));
}

static int64_t tl_fmt_ptr(char* buffer, const void* value) {
  char text[kFormatBytes];
  return finish(buffer, text, snprintf(text, sizeof text, "0x%016" PRIxPTR, reinterpret_cast<uintptr_t>(value)));
}

}  // extern "C"

// ---- compiler helpers for half and bfloat16, under the names code generation calls ----
// A half travels in the low 16 bits of a vector register, exactly where a float with those low bits lies, so float
// stands in for the missing C++ type on every ABI in question.

float carry_half(uint32_t bits) {
  float carrier;
  memcpy(&carrier, &bits, sizeof carrier);
  return carrier;
}

uint32_t half_bits(float carrier) {
  uint32_t bits;
  memcpy(&bits, &carrier, sizeof bits);
  return bits & 0xffffu;
}

double widen_half(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1f);
  const double fraction = static_cast<double>(bits & 0x3ff);
  double magnitude;
  if (exponent == 0x1f)
    magnitude = fraction != 0 ? std::nan("") : HUGE_VAL;
  else
    magnitude = exponent ? std::ldexp(1024.0 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// A float is exact as a double, so rounding from double rounds once.
float trunc_double_to_half(double value) { return carry_half(round_from_double(value, 5, 10)); }
float trunc_float_to_half(float value) { return carry_half(round_from_double(value, 5, 10)); }
float trunc_double_to_bfloat(double value) { return carry_half(round_from_double(value, 8, 7)); }
float trunc_float_to_bfloat(float value) { return carry_half(round_from_double(value, 8, 7)); }
float extend_half_to_float(float carrier) { return static_cast<float>(widen_half(half_bits(carrier))); }
double extend_half_to_double(float carrier) { return widen_half(half_bits(carrier)); }

template <typename Function>
RuntimeSymbol symbol(const char* name, Function* function) {
  return {name, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(function))};
}

// libm by address: the library that holds them is a private dependency of this module, out of reach of a global
// look-up.
#define TRITON_LIBM1(name) \
  symbol(#name, static_cast<double (*)(double)>(::name)), symbol(#name "f", static_cast<float (*)(float)>(::name##f))
#define TRITON_LIBM2(name)                                        \
  symbol(#name, static_cast<double (*)(double, double)>(::name)), \
      symbol(#name "f", static_cast<float (*)(float, float)>(::name##f))

}  // namespace

uint32_t round_from_double(double value, int exponent_bits, int mantissa_bits) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (exponent_bits + mantissa_bits);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) {
    uint32_t payload =
        fraction ? (1u << (mantissa_bits - 1)) | static_cast<uint32_t>(fraction >> (52 - mantissa_bits)) : 0;
    return sign | infinity | payload;
  }
  int target = exponent - 1023 + bias;
  uint64_t significand = fraction | (exponent ? uint64_t{1} << 52 : 0);
  int shift = 52 - mantissa_bits;
  if (target <= 0) {  // subnormal in the target: shift further and drop the exponent
    shift += 1 - target;
    if (shift > 54) return sign;
    target = 0;
  } else {
    significand &= (uint64_t{1} << 52) - 1;
  }
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
  uint64_t half = uint64_t{1} << (shift - 1);
  kept += (static_cast<uint64_t>(target) << mantissa_bits);
  if (rest > half || (rest == half && (kept & 1))) ++kept;  // a carry moves into the exponent, as it should
  if (kept >= infinity) return sign | infinity;
  return sign | static_cast<uint32_t>(kept);
}

void set_print_sink(PrintSink sink) { print_sink.store(sink, std::memory_order_release); }

const std::vector<RuntimeSymbol>& runtime_symbols() {
  static const std::vector<RuntimeSymbol> symbols = {
      symbol("tl_assert_fail", tl_assert_fail),
      symbol("tl_print", tl_print),
      symbol("tl_check", tl_check),
      symbol("tl_poll", tl_poll),
      symbol("tl_fmt_i64", tl_fmt_i64),
      symbol("tl_fmt_u64", tl_fmt_u64),
      symbol("tl_fmt_f64", tl_fmt_f64),
      symbol("tl_fmt_ptr", tl_fmt_ptr),
      symbol("__truncdfhf2", trunc_double_to_half),
      symbol("__truncsfhf2", trunc_float_to_half),
      symbol("__truncdfbf2", trunc_double_to_bfloat),
      symbol("__truncsfbf2", trunc_float_to_bfloat),
      symbol("__extendhfsf2", extend_half_to_float),
      symbol("__extendhfdf2", extend_half_to_double),
      symbol("memcpy", static_cast<void* (*)(void*, const void*, size_t)>(::memcpy)),
      symbol("memmove", static_cast<void* (*)(void*, const void*, size_t)>(::memmove)),
      symbol("memset", static_cast<void* (*)(void*, int, size_t)>(::memset)),
      TRITON_LIBM1(acos),
      TRITON_LIBM1(acosh),
      TRITON_LIBM1(asin),
      TRITON_LIBM1(asinh),
      TRITON_LIBM1(atan),
      TRITON_LIBM1(atanh),
      TRITON_LIBM1(cbrt),
      TRITON_LIBM1(ceil),
      TRITON_LIBM1(cos),
      TRITON_LIBM1(cosh),
      TRITON_LIBM1(erf),
      TRITON_LIBM1(erfc),
      TRITON_LIBM1(exp),
      TRITON_LIBM1(exp2),
      TRITON_LIBM1(expm1),
      TRITON_LIBM1(fabs),
      TRITON_LIBM1(floor),
      TRITON_LIBM1(lgamma),
      TRITON_LIBM1(log),
      TRITON_LIBM1(log10),
      TRITON_LIBM1(log1p),
      TRITON_LIBM1(log2),
      TRITON_LIBM1(nearbyint),
      TRITON_LIBM1(rint),
      TRITON_LIBM1(round),
      // C23 has these two and not every library does; nearbyint is the same in the rounding mode that kernels run in.
      symbol("roundeven", static_cast<double (*)(double)>(::nearbyint)),
      symbol("roundevenf", static_cast<float (*)(float)>(::nearbyintf)),
      TRITON_LIBM1(sin),
      TRITON_LIBM1(sinh),
      TRITON_LIBM1(sqrt),
      TRITON_LIBM1(tan),
      TRITON_LIBM1(tanh),
      TRITON_LIBM1(tgamma),
      TRITON_LIBM1(trunc),
      TRITON_LIBM2(atan2),
      TRITON_LIBM2(copysign),
      TRITON_LIBM2(fdim),
      TRITON_LIBM2(fmax),
      TRITON_LIBM2(fmin),
      TRITON_LIBM2(fmod),
      TRITON_LIBM2(hypot),
      TRITON_LIBM2(nextafter),
      TRITON_LIBM2(pow),
      TRITON_LIBM2(remainder),
      symbol("fma", static_cast<double (*)(double, double, double)>(::fma)),
      symbol("fmaf", static_cast<float (*)(float, float, float)>(::fmaf)),
      symbol("ldexp", static_cast<double (*)(double, int)>(::ldexp)),
      symbol("ldexpf", static_cast<float (*)(float, int)>(::ldexpf)),
  };
  return symbols;
}

}  // namespace triton
