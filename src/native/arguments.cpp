#include "arguments.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "arrays.h"
#include "runtime_symbols.h"

namespace triton {
namespace {

constexpr int64_t kDivisibility = 16;  // bytes of an address, units of an integer

void note_divisibility(Leaf* leaf) {
  leaf->aligned = leaf->bits % kDivisibility == 0;
  leaf->half_aligned = !leaf->aligned && leaf->bits % (kDivisibility / 2) == 0;
}

struct TypeTable {
  std::vector<std::string> names;
  std::unordered_map<std::string, uint16_t> numbers;
  TypeTable() {
    for (const char* name :
         {"u1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64"})
      add(name);
  }
  uint16_t add(const std::string& name) {
    auto number = static_cast<uint16_t>(names.size());
    names.push_back(name);
    numbers.emplace(name, number);
    return number;
  }
};

TypeTable& types() {
  static auto* table = new TypeTable;
  return *table;
}

uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// A float as the low bytes of a slot.
uint64_t real_bits(double value, uint16_t type) {
  switch (type) {
    case kFp64: return bits_of(value);
    case kFp16: return round_from_double(value, 5, 10);
    case kBf16: return round_from_double(value, 8, 7);
    default: break;
  }
  auto single = static_cast<float>(value);
  uint32_t bits;
  memcpy(&bits, &single, sizeof bits);
  return bits;
}

// Bytes of an element in memory, by the number that its name ends with.
int64_t element_bytes(const std::string& name) {
  if (name == "bf16") return 2;
  if (name.compare(0, 3, "fp8") == 0 || name == "u1") return 1;
  const size_t digits = name.find_first_of("0123456789");
  return digits == std::string::npos ? 1 : std::max(1, std::stoi(name.substr(digits)) / 8);
}

bool is_real(uint16_t type) { return type >= kFp16 && type <= kFp64; }

template <typename T>
void append_raw(std::string* key, const T& value) {
  key->append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool append_text(std::string* key, PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (!data) return false;
  append_raw(key, size);
  key->append(data, static_cast<size_t>(size));
  return true;
}

bool append_integer(PyObject* value, std::string* key) {
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    if (number == -1 && PyErr_Occurred()) return false;
    key->push_back('i');
    append_raw(key, number);
    return true;
  }
  Ref text(PyObject_Str(value));
  key->push_back('I');
  return text && append_text(key, text.get());
}

// By equality within the type; by repr() when the value has no hash.
bool append_by_equality(PyObject* value, std::string* key, PyObject* interned) {
  append_raw(key, Py_TYPE(value));  // the dict keeps the value, and so its type, alive
  PyObject* number = PyDict_GetItemWithError(interned, value);
  if (number) return key->push_back('='), append_integer(number, key);
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    Ref text(PyObject_Repr(value));
    key->push_back('r');
    return text && append_text(key, text.get());
  }
  Ref next(PyLong_FromSsize_t(PyDict_Size(interned)));
  if (!next || PyDict_SetItem(interned, value, next.get()) < 0) return false;
  key->push_back('=');
  return append_integer(next.get(), key);
}

bool append_sequence(PyObject* value, std::string* key, PyObject* interned) {
  // A plain list counts as a tuple; named tuples are told apart.
  key->push_back('(');
  if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value) &&
      !append_by_equality(reinterpret_cast<PyObject*>(Py_TYPE(value)), key, interned))
    return false;
  if (Py_EnterRecursiveCall(" in a compile-time argument")) return false;
  Py_ssize_t count = PySequence_Size(value);
  bool good = count >= 0;
  for (Py_ssize_t i = 0; good && i < count; ++i) {
    Ref item(PySequence_GetItem(value, i));
    good = item && append_constant(item.get(), key, interned);
  }
  Py_LeaveRecursiveCall();
  key->push_back(')');
  return good;
}

}  // namespace

uint16_t type_number(const std::string& name) {
  auto found = types().numbers.find(name);
  return found != types().numbers.end() ? found->second : types().add(name);
}

const std::string& type_name(uint16_t number) { return types().names[number]; }

PyObject* unwrap_constexpr(PyObject* value) {
  const Reader* reader = reader_of(value);
  if (!reader) return nullptr;
  if (reader->kind != ReaderKind::constexpr_) return share(value).release();
  Ref inner(PyObject_GetAttrString(value, "value"));
  return inner ? unwrap_constexpr(inner.get()) : nullptr;
}

bool append_constant(PyObject* value, std::string* key, PyObject* interned) {
  if (PyLong_CheckExact(value)) return append_integer(value, key);
  if (value == Py_None) return key->push_back('n'), true;
  if (PyBool_Check(value)) return key->push_back(value == Py_True ? 'T' : 'F'), true;
  if (PyUnicode_CheckExact(value)) return key->push_back('s'), append_text(key, value);
  if (PyFloat_CheckExact(value)) {
    key->push_back('f');
    append_raw(key, bits_of(PyFloat_AsDouble(value)));
    return true;
  }
  if (PyTuple_Check(value) || PyList_Check(value)) return append_sequence(value, key, interned);
  const Reader* reader = reader_of(value);
  if (!reader) return false;
  if (reader->kind == ReaderKind::constexpr_) {
    Ref inner(unwrap_constexpr(value));
    return inner && append_constant(inner.get(), key, interned);
  }
  if (reader->kind == ReaderKind::keyed) {
    Ref text(PyObject_GetAttrString(value, "cache_key"));
    if (!text) return false;
    if (PyUnicode_Check(text.get())) return key->push_back('k'), append_text(key, text.get());
  }
  key->push_back('o');
  return append_by_equality(value, key, interned);
}

// ---- one argument ----

constexpr int kMaxNesting = 64;  // of tuples in arguments; the same in runtime/binding.py

// Where a value stands, for messages: a parameter, or an item of a tuple.
struct Arguments::Place {
  PyObject* name;
  const Place* outer;
  Py_ssize_t item;

  std::string text() const {
    if (outer) return outer->text() + "[" + std::to_string(item) + "]";
    std::string parameter;
    if (!to_string(name, &parameter)) PyErr_Clear();
    return parameter;
  }
  bool fail(const std::string& what) const {
    return raise(PyExc_TypeError, "argument '" + text() + "': " + what), false;
  }
  // Puts the place in front of a TypeError that is already set.
  bool explain() const {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Ref held_type(type), held_value(value ? value : share(Py_None).release()),
        held_traceback(traceback ? traceback : share(Py_None).release());
    Ref message(PyObject_Str(held_value.get()));
    std::string what;
    if (!message || !to_string(message.get(), &what)) return false;
    return fail(what);
  }
};

void Arguments::add_constant(PyObject* value) {
  Leaf leaf{LeafKind::constant};
  leaf.value = value;
  leaves_.push_back(leaf);
}

bool Arguments::classify_tuple(PyObject* value, const Parameter& parameter, const Place& place) {
  int depth = 1;
  const Place* parameter_place = &place;
  for (; parameter_place->outer; parameter_place = parameter_place->outer) ++depth;
  if (depth > kMaxNesting)
    return parameter_place->fail("tuples are nested more than " + std::to_string(kMaxNesting) + " deep");
  Leaf begin{LeafKind::tuple_begin};
  begin.value = value;
  leaves_.push_back(begin);
  Py_ssize_t count = PySequence_Size(value);
  for (Py_ssize_t i = 0; i < count; ++i) {
    kept_.emplace_back(PySequence_GetItem(value, i));  // a list may change while Python code runs
    if (!kept_.back() || !classify_value(kept_.back().get(), parameter, Place{nullptr, &place, i})) return false;
  }
  leaves_.push_back(Leaf{LeafKind::tuple_end});
  return count >= 0;
}

bool Arguments::classify_integer(PyObject* value, const Parameter& parameter, const Place& place) {
  Ref index;
  if (!PyLong_CheckExact(value)) {
    index.reset(PyNumber_Index(value));
    if (!index) return false;
    value = index.get();
  }
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0 && number == -1 && PyErr_Occurred()) return false;
  Leaf leaf{LeafKind::integer};
  if (overflow > 0) {
    leaf.bits = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      overflow = -1;
    }
    leaf.type = kU64;
  } else {
    leaf.bits = static_cast<uint64_t>(number);
    leaf.type = number == static_cast<int32_t>(number) ? kI32 : kI64;
  }
  if (overflow < 0) {
    Ref text(PyObject_Str(value));
    std::string digits;
    if (!text || !to_string(text.get(), &digits)) return false;
    return place.fail("the integer " + digits + " does not fit 64 bits");
  }
  if (!(parameter.flags & kNoSpecialize)) {
    if (overflow == 0 && number == 1) {
      kept_.emplace_back(PyLong_FromLong(1));
      add_constant(kept_.back().get());
      return true;
    }
    if (!(parameter.flags & kNoAlign)) note_divisibility(&leaf);
  }
  leaves_.push_back(leaf);
  return true;
}

namespace {

// Fits an integer into a scalar type; false when it does not.
bool fit_integer(PyObject* number, uint16_t type, uint64_t* bits) {
  static constexpr int kBits[] = {1, 8, 16, 32, 64, 8, 16, 32, 64};
  const bool is_signed = type >= kI8 && type <= kI64;
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow < 0) return false;
  if (overflow > 0) {
    if (type != kU64) return false;
    *bits = PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
  }
  *bits = static_cast<uint64_t>(value);
  const int width = kBits[type];
  if (is_signed) {
    if (width == 64) return true;
    const long long limit = 1LL << (width - 1);
    return value >= -limit && value < limit;
  }
  return value >= 0 && (width == 64 || value < 1LL << width);
}

}  // namespace

// A number for a parameter with a type of its own: converted, never made a compile-time value.
bool Arguments::classify_annotated(PyObject* value, const Parameter& parameter, const Place& place) {
  const uint16_t type = parameter.annotation;
  Leaf leaf{is_real(type) ? LeafKind::real : type == kU1 ? LeafKind::boolean : LeafKind::integer};
  leaf.type = type;
  if (is_real(type)) {
    Ref number(PyNumber_Float(value));
    if (!number) return place.explain();
    leaf.bits = real_bits(PyFloat_AsDouble(number.get()), type);
  } else {
    Ref number(PyNumber_Index(value));
    if (!number && type == kU1) {  // NumPy's bool has no __index__
      PyErr_Clear();
      int truth = PyObject_IsTrue(value);
      if (truth < 0) return false;
      number.reset(PyLong_FromLong(truth));
    }
    if (!number && PyNumber_Check(value)) {  // a float that is a whole number will do
      PyErr_Clear();
      Ref real(PyNumber_Float(value));
      double whole = real ? PyFloat_AsDouble(real.get()) : 0;
      if (real && whole == std::floor(whole) && std::isfinite(whole)) number.reset(PyLong_FromDouble(whole));
      if (real && !number) {
        Ref text(PyObject_Repr(value));
        std::string shown;
        if (!text || !to_string(text.get(), &shown)) return false;
        return place.fail("expected an integer for type " + std::string(type_name(type)) + ", got " + shown);
      }
    }
    if (!number) return place.explain();
    if (!fit_integer(number.get(), type, &leaf.bits)) {
      Ref text(PyObject_Str(number.get()));
      std::string digits;
      if (!text || !to_string(text.get(), &digits)) return false;
      return place.fail(digits + " does not fit type " + type_name(type));
    }
    if (type != kU1 && !(parameter.flags & (kNoSpecialize | kNoAlign))) note_divisibility(&leaf);
  }
  leaves_.push_back(leaf);
  return true;
}

bool Arguments::classify_array(PyObject* value, const Reader& reader, const Parameter& parameter, const Place& place) {
  Array array;
  if (!read_array(value, reader, &array, &kept_)) return place.explain();
  Leaf leaf{LeafKind::pointer};
  leaf.type = parameter.annotated_pointer ? parameter.annotation : array.type;
  leaf.is_const = parameter.flags & kConstPointer;
  leaf.readonly = array.readonly;
  leaf.device = array.device;
  leaf.index = array.index;
  leaf.aligned = !(parameter.flags & (kNoSpecialize | kNoAlign)) && array.address % kDivisibility == 0;
  leaf.bits = array.address;
  leaf.low = array.low;
  leaf.high = array.high;
  leaves_.push_back(leaf);
  return true;
}

namespace {

bool read_integer(PyObject* item, std::vector<int64_t>* out) {
  Ref number;
  if (!PyLong_CheckExact(item)) {
    number.reset(PyNumber_Index(item));
    if (!number) return false;
    item = number.get();
  }
  out->push_back(PyLong_AsLongLong(item));
  return !(out->back() == -1 && PyErr_Occurred());
}

bool read_integers(PyObject* sequence, std::vector<int64_t>* out) {
  const bool list = PyList_CheckExact(sequence);
  const Py_ssize_t count = list ? PyList_Size(sequence) : PySequence_Size(sequence);
  if (count < 0) return false;
  out->reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref item(list ? share(PyList_GetItem(sequence, i)).release() : PySequence_GetItem(sequence, i));
    if (!item || !read_integer(item.get(), out)) return false;
  }
  return true;
}

// Whether machines that copy boxes can use the tensor; see make_desc in ir/ops.py. The same in runtime/arguments.py.
bool is_regular(uint64_t base, int64_t bytes, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  bool regular = base % 16 == 0 && !strides.empty() && strides.back() == 1;
  for (size_t i = 0; i + 1 < strides.size(); ++i)
    regular = regular && strides[i] >= 0 && strides[i] < (int64_t{1} << 40) / bytes && strides[i] * bytes % 16 == 0;
  for (int64_t size : sizes) regular = regular && size >= 1 && size < int64_t{1} << 31;
  return regular;
}

}  // namespace

bool Arguments::classify_descriptor(PyObject* value, const Place& place) {
  static PyObject* const names[] = {PyUnicode_InternFromString("base"), PyUnicode_InternFromString("shape"),
                                    PyUnicode_InternFromString("strides"), PyUnicode_InternFromString("block_shape"),
                                    PyUnicode_InternFromString("padding")};
  static const Parameter plain;
  Ref parts[4];
  for (int i = 0; i < 4; ++i) {
    parts[i].reset(PyObject_GetAttr(value, names[i]));
    if (!parts[i]) return false;
  }
  Ref padding(PyObject_HasAttr(value, names[4]) ? PyObject_GetAttr(value, names[4]) : share(Py_None).release());
  std::vector<int64_t> sizes, strides;
  if (!padding || !read_integers(parts[1].get(), &sizes) || !read_integers(parts[2].get(), &strides)) return false;
  if (sizes.size() != strides.size()) return place.fail("shape and strides of a tensor descriptor differ in length");
  const size_t first = leaves_.size();
  Leaf begin{LeafKind::descriptor};
  begin.value = value;
  leaves_.push_back(begin);
  add_constant(parts[3].get());
  add_constant(padding.get());
  const Reader* reader = reader_of(parts[0].get());
  if (!reader) return false;
  if (reader->kind < ReaderKind::numpy || reader->kind > ReaderKind::adapted) return place.fail("the base of a tensor descriptor must be an array");
  if (!classify_array(parts[0].get(), *reader, plain, place)) return false;
  Leaf& base = leaves_.back();
  base.aligned = false;  // the descriptor's mark says so
  const bool regular = is_regular(base.bits, element_bytes(type_name(base.type)), sizes, strides);
  for (const auto* numbers : {&sizes, &strides})
    for (int64_t number : *numbers) {
      Leaf leaf{LeafKind::integer};
      leaf.type = kI64;
      leaf.bits = static_cast<uint64_t>(number);
      leaves_.push_back(leaf);
    }
  leaves_[first].aligned = regular;
  leaves_[first].bits = leaves_.size() - first - 1;
  for (Ref* part : {&parts[0], &parts[3], &padding}) kept_.push_back(std::move(*part));
  return true;
}

// An integer for a parameter declared as a pointer is an address.
bool Arguments::add_raw_pointer(PyObject* value, const Parameter& parameter, const Place& place) {
  Leaf leaf{LeafKind::pointer};
  leaf.type = parameter.annotation;
  leaf.is_const = parameter.flags & kConstPointer;
  if (!fit_integer(value, kU64, &leaf.bits)) return place.fail("not an address");
  leaf.aligned = !(parameter.flags & (kNoSpecialize | kNoAlign)) && leaf.bits % kDivisibility == 0;
  leaf.high = ~uint64_t{0};  // extent unknown: may overlap anything
  leaf.address = true;
  leaves_.push_back(leaf);
  return true;
}

bool Arguments::classify_value(PyObject* value, const Parameter& parameter, const Place& place) {
  const Reader* found = reader_of(value);
  if (!found) return false;
  const Reader& reader = *found;
  const bool number =
      reader.kind == ReaderKind::integer || reader.kind == ReaderKind::boolean || reader.kind == ReaderKind::real;
  if (number && parameter.annotation != kNoType) {
    if (!parameter.annotated_pointer) return classify_annotated(value, parameter, place);
    if (PyLong_CheckExact(value)) return add_raw_pointer(value, parameter, place);
  }
  switch (reader.kind) {
    case ReaderKind::integer: return classify_integer(value, parameter, place);
    case ReaderKind::boolean: {
      Leaf leaf{LeafKind::boolean};
      leaf.type = kU1;
      int truth = PyObject_IsTrue(value);
      if (truth < 0) return false;
      leaf.bits = static_cast<uint64_t>(truth);
      leaves_.push_back(leaf);
      return true;
    }
    case ReaderKind::real: {
      Leaf leaf{LeafKind::real};
      leaf.type = kFp32;
      double real = PyFloat_AsDouble(value);
      if (real == -1.0 && PyErr_Occurred()) return place.explain();
      leaf.bits = real_bits(real, kFp32);
      leaves_.push_back(leaf);
      return true;
    }
    case ReaderKind::tuple: return classify_tuple(value, parameter, place);
    case ReaderKind::constexpr_:
      kept_.emplace_back(unwrap_constexpr(value));
      if (!kept_.back()) return false;
      add_constant(kept_.back().get());
      return true;
    case ReaderKind::none:
    case ReaderKind::text:
    case ReaderKind::keyed:
    case ReaderKind::constant: add_constant(value); return true;
    case ReaderKind::descriptor: return classify_descriptor(value, place);
    case ReaderKind::numpy:
    case ReaderKind::exchange:
    case ReaderKind::array:
    case ReaderKind::adapted: return classify_array(value, reader, parameter, place);
    case ReaderKind::unsupported: break;
  }
  Ref type_text(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__name__"));
  std::string type;
  if (!type_text || !to_string(type_text.get(), &type)) return false;
  return place.fail("a value of type " + type + " cannot be passed to a kernel");
}

// ---- all arguments ----

bool Arguments::classify(PyObject* const* bound) {
  leaves_.reserve(parameters_.size() + 8);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    const size_t first = leaves_.size();
    if (parameter.flags & kConstexpr) {
      PyObject* value = bound[i];
      if (!PyLong_CheckExact(value) && value != Py_None && !PyBool_Check(value)) {
        kept_.emplace_back(unwrap_constexpr(value));
        if (!kept_.back()) return false;
        value = kept_.back().get();
      }
      add_constant(value);
    } else if (!classify_value(bound[i], parameter, Place{parameter.name.get(), nullptr, 0})) {
      return false;
    }
    for (size_t leaf = first; leaf < leaves_.size(); ++leaf) leaves_[leaf].parameter = static_cast<uint16_t>(i);
  }
  return true;
}

bool Arguments::overlap() const {
  for (size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf& a = leaves_[i];
    if (a.kind != LeafKind::pointer || a.device != 0 || a.low == a.high) continue;
    for (size_t j = i + 1; j < leaves_.size(); ++j) {
      const Leaf& b = leaves_[j];
      if (b.kind == LeafKind::pointer && b.device == 0 && a.low < b.high && b.low < a.high) return true;
    }
  }
  return false;
}

uint64_t Arguments::footprint() const {
  uint64_t total = 0;
  for (const Leaf& leaf : leaves_)
    if (leaf.kind == LeafKind::pointer && leaf.device == 0 && !leaf.address) total += leaf.high - leaf.low;
  return total;
}

bool Arguments::append_key(std::string* key, PyObject* interned) const {
  for (const Leaf& leaf : leaves_) {
    key->push_back(static_cast<char>('A' + static_cast<int>(leaf.kind)));
    switch (leaf.kind) {
      case LeafKind::pointer:
        append_raw(key, leaf.type);
        append_raw(key, leaf.device);
        append_raw(key, leaf.index);
        key->push_back(static_cast<char>(leaf.aligned | leaf.readonly << 1 | leaf.is_const << 2));
        break;
      case LeafKind::integer:
      case LeafKind::real:
      case LeafKind::boolean:
        key->push_back(static_cast<char>(leaf.type << 2 | leaf.half_aligned << 1 | leaf.aligned));
        break;
      case LeafKind::constant:
        if (!append_constant(leaf.value, key, interned)) return false;
        break;
      case LeafKind::tuple_begin: {
        bool plain = PyTuple_CheckExact(leaf.value) || PyList_CheckExact(leaf.value);
        if (!plain && !append_by_equality(reinterpret_cast<PyObject*>(Py_TYPE(leaf.value)), key, interned))
          return false;
        break;
      }
      case LeafKind::descriptor: key->push_back(leaf.aligned ? 'D' : ' '); break;
      case LeafKind::tuple_end: break;
    }
  }
  return true;
}

void Arguments::fill_slots(std::vector<uint64_t>* slots) const {
  for (const Leaf& leaf : leaves_)
    if (leaf.kind <= LeafKind::boolean) slots->push_back(leaf.bits);
}

const Leaf* Arguments::foreign() const {
  for (const Leaf& leaf : leaves_)
    if (leaf.kind == LeafKind::pointer && leaf.device != 0) return &leaf;
  return nullptr;
}

int Arguments::gpu() const {
  static const uint16_t cuda = device_number("cuda");
  int where = kNowhere;
  for (const Leaf& leaf : leaves_) {
    if (leaf.kind != LeafKind::pointer || leaf.address) continue;
    if (leaf.device == cuda) {
      if (leaf.index >= 0) return leaf.index;
      where = kSomeGpu;
    } else if (where == kNowhere) {
      where = kHost;
    }
  }
  return where;
}

PyObject* Arguments::class_of(size_t* index) const {
  const Leaf& leaf = leaves_[(*index)++];
  switch (leaf.kind) {
    case LeafKind::constant: return Py_BuildValue("(sO)", "constexpr", leaf.value);
    case LeafKind::descriptor:
      *index += leaf.bits;
      return Py_BuildValue("(sOO)", "descriptor", leaf.value, leaf.aligned ? Py_True : Py_False);
    case LeafKind::tuple_begin: {
      Ref items(PyList_New(0));
      while (items && leaves_[*index].kind != LeafKind::tuple_end) {
        Ref item(class_of(index));
        if (!item || PyList_Append(items.get(), item.get()) < 0) return nullptr;
      }
      ++*index;
      return items ? PyList_AsTuple(items.get()) : nullptr;
    }
    case LeafKind::pointer: {
      std::string name = (leaf.is_const ? "*k" : "*") + type_name(leaf.type);
      PyObject* aligned = leaf.aligned ? Py_True : Py_False;
      if (leaf.device != 0) return Py_BuildValue("(sOs)", name.c_str(), aligned, device_name(leaf.device).c_str());
      if (leaf.readonly) return Py_BuildValue("(sOs)", name.c_str(), aligned, "readonly");
      return Py_BuildValue("(sO)", name.c_str(), aligned);
    }
    default: break;
  }
  return Py_BuildValue("(sO)", type_name(leaf.type).c_str(), leaf.aligned ? Py_True : Py_False);
}

PyObject* Arguments::classes() const {
  Ref result(PyTuple_New(static_cast<Py_ssize_t>(parameters_.size())));
  size_t index = 0;
  for (size_t i = 0; result && i < parameters_.size(); ++i) {
    PyObject* item = class_of(&index);
    if (!item || PyTuple_SetItem(result.get(), static_cast<Py_ssize_t>(i), item) < 0) return nullptr;
  }
  return result.release();
}

}  // namespace triton
