// Arguments of a launch: what kind each is, its specialisation, its bytes in the kernel's argument block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python_api.h"

namespace triton {

// How a parameter was declared; the numbers are the Python interface.
enum ParameterFlags : unsigned {
  kConstexpr = 1,     // compile-time: keyed by value
  kNoSpecialize = 2,  // neither 1 nor divisibility is assumed
  kNoAlign = 4,       // divisibility is not assumed
  kConstPointer = 8,  // points to constant data
};

// Element types by number. Pointees may be any name the dtype resolver gives; scalars are those of the enumeration.
enum Scalar : uint16_t { kU1, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kFp16, kBf16, kFp32, kFp64, kScalarCount };

constexpr uint16_t kNoType = 0xffff;

// Number of a type name, made on first use.
uint16_t type_number(const std::string& name);
const std::string& type_name(uint16_t number);

struct Parameter {
  Ref name;
  Ref fallback;  // default value; null: required
  unsigned flags = 0;
  uint16_t annotation = kNoType;
  bool annotated_pointer = false;
};

// A tensor descriptor is followed by the leaves that make it up: box, padding, base, sizes, strides.
enum class LeafKind : uint8_t { pointer, integer, real, boolean, constant, descriptor, tuple_begin, tuple_end };

struct Leaf {
  LeafKind kind;
  bool aligned = false;       // divisible by 16
  bool half_aligned = false;  // an integer, divisible by 8 only
  bool readonly = false;
  bool is_const = false;
  uint16_t type = kNoType;
  uint16_t device = 0;         // pointer: number of the device kind; 0 is "cpu"
  int16_t index = -1;          // pointer: which device of that kind; -1: not told
  uint16_t parameter = 0;      // which it belongs to
  bool address = false;        // pointer: given as a number, which does not tell where it is
  uint64_t bits = 0;           // the argument's slot; descriptor: how many leaves follow
  uint64_t low = 0, high = 0;  // pointer: bytes in use are [low, high)
  PyObject* value = nullptr;   // constant, descriptor: borrowed; tuple_begin: the tuple
};

// One pass over the bound arguments of a launch.
class Arguments {
 public:
  explicit Arguments(const std::vector<Parameter>& parameters) : parameters_(parameters) {}

  // Classifies bound[i] for each parameter. False with TypeError set, naming the argument.
  bool classify(PyObject* const* bound);

  // Forgets the arguments, for another call.
  void clear() {
    leaves_.clear();
    kept_.clear();
  }

  // Any two pointers into host memory whose bytes intersect.
  bool overlap() const;

  // Bytes of the arrays in this machine's memory, as far as they tell.
  uint64_t footprint() const;
  // Appends what tells this specialisation from others.
  bool append_key(std::string* key, PyObject* interned) const;
  // The argument block: one 8-byte slot per leaf that is not a compile-time one.
  void fill_slots(std::vector<uint64_t>* slots) const;
  // One entry per parameter, as Dispatcher.classify documents; new reference.
  PyObject* classes() const;

  // Where the arrays are: the number of the first one's GPU, or a value of Where.
  enum Where : int { kNowhere = -1, kHost = -2, kSomeGpu = -3 };
  int gpu() const;
  // A pointer that is not into host memory, or null.
  const Leaf* foreign() const;
  const std::vector<Leaf>& leaves() const { return leaves_; }

 private:
  struct Place;
  bool classify_value(PyObject* value, const Parameter& parameter, const Place& place);
  bool classify_tuple(PyObject* value, const Parameter& parameter, const Place& place);
  bool classify_integer(PyObject* value, const Parameter& parameter, const Place& place);
  bool classify_annotated(PyObject* value, const Parameter& parameter, const Place& place);
  bool classify_descriptor(PyObject* value, const Place& place);
  bool classify_array(PyObject* value, const struct Reader& reader, const Parameter& parameter, const Place& place);
  bool add_raw_pointer(PyObject* value, const Parameter& parameter, const Place& place);
  void add_constant(PyObject* value);
  PyObject* class_of(size_t* index) const;

  const std::vector<Parameter>& parameters_;
  std::vector<Leaf> leaves_;
  std::vector<Ref> kept_;  // values made on the way
};

// Appends a compile-time value by type and value: 1, 1.0, True, 0.0 and -0.0 all differ. `interned` (a dict) gives
// numbers to values that only their own equality can tell apart.
bool append_constant(PyObject* value, std::string* key, PyObject* interned);

// The value inside an instance of the registered constexpr type, else the object itself. New reference; null on error.
PyObject* unwrap_constexpr(PyObject* value);

// Hooks set from Python; each returns what was set before (new reference).
PyObject* set_dtype_resolver(PyObject* callable);
PyObject* set_array_adapter(PyObject* callable);
PyObject* set_constexpr_type(PyObject* type);

}  // namespace triton
