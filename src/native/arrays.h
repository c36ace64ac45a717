// What Python types are as kernel arguments, decided once per type, and how to read the arrays among them fast.
#pragma once

#include <cstdint>
#include <vector>

#include "python_api.h"

namespace triton {

enum class ReaderKind : uint8_t {
  integer,  // int and what has __index__
  boolean,
  real,  // float and what has __float__
  text,
  none,
  tuple,       // tuple, list
  constexpr_,  // the registered wrapper: .value
  keyed,       // has cache_key: a jitted function
  constant,    // element types of the language: told apart by equality
  descriptor,  // tensor descriptors: box, base, sizes, strides
  numpy,       // NumPy array whose memory layout was checked
  exchange,    // has DLPack's C exchange functions
  array,       // has data_ptr() and dtype
  adapted,     // array that the Python adapter turns into one with data_ptr()
  unsupported,
};

struct Reader {
  ReaderKind kind = ReaderKind::unsupported;
  int (*exchange)(void* object, void* tensor) = nullptr;
  bool has_is_cpu = false, has_device = false, has_readonly = false, has_byte_range = false, has_strides = false;
};

// An array, read.
struct Array {
  uint64_t address = 0;
  uint64_t low = 0, high = 0;  // bytes in use
  uint16_t type = 0;           // element
  uint16_t device = 0;         // 0: host memory
  int16_t index = -1;          // which device of that kind; -1: not told
  bool readonly = false;
};

// The reader of an object's type; null with an exception set when finding out failed.
const Reader* reader_of(PyObject* object);

// Reads an array of a kind from numpy to adapted. What must live until the launch ends goes to *kept. False with an
// exception set; a TypeError then says what is wrong but not with which argument.
bool read_array(PyObject* object, const Reader& reader, Array* array, std::vector<Ref>* kept);

// DLPack's current_stream(device type, device, where to put it) of a type of array; null where it has none.
using CurrentStream = int (*)(int32_t, int32_t, void**);
CurrentStream current_stream_of(PyObject* type);

const std::string& device_name(uint16_t number);
uint16_t device_number(const std::string& name);

}  // namespace triton
