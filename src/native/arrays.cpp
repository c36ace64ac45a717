#include "arrays.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "arguments.h"

namespace triton {
namespace {

// Everything here is guarded by the GIL.
PyObject* dtype_resolver = nullptr;
PyObject* array_adapter = nullptr;
PyObject* constexpr_type = nullptr;

std::unordered_map<PyTypeObject*, Reader> readers;  // holds a reference to each type
std::vector<std::string> devices = {"cpu"};

PyObject* exchange_hook(PyObject** slot, PyObject* value) {
  PyObject* previous = *slot ? *slot : share(Py_None).release();
  *slot = value == Py_None ? nullptr : share(value).release();
  for (auto& entry : readers) Py_DECREF(reinterpret_cast<PyObject*>(entry.first));
  readers.clear();  // what a type counts as may depend on the hooks
  return previous;
}

// Method and attribute names, interned once: look-ups by them compare pointers.
struct Names {
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* device = PyUnicode_InternFromString("device");
  PyObject* type = PyUnicode_InternFromString("type");
  PyObject* index = PyUnicode_InternFromString("index");
  PyObject* readonly = PyUnicode_InternFromString("readonly");
  PyObject* byte_range = PyUnicode_InternFromString("byte_range");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* stride = PyUnicode_InternFromString("stride");
};

const Names& names() {
  static const Names instance;
  return instance;
}

// ---- element types ----

struct ElementType {
  uint16_t type;
  uint32_t bytes;
};

uint32_t bytes_of_type(const std::string& name) {
  if (name == "u1" || name.compare(0, 3, "fp8") == 0) return 1;
  size_t digits = name.find_first_of("0123456789");
  return digits == std::string::npos ? 1 : static_cast<uint32_t>(std::max(1, std::stoi(name.substr(digits)) / 8));
}

std::unordered_map<PyObject*, ElementType> element_types;  // by dtype object; holds a reference to each
constexpr size_t kElementTypesKept = 1024;

bool element_type(PyObject* dtype, ElementType* out) {
  auto found = element_types.find(dtype);
  if (found != element_types.end()) {
    *out = found->second;
    return true;
  }
  if (!dtype_resolver) {
    PyErr_SetString(PyExc_TypeError, "no dtype resolver is set");
    return false;
  }
  Ref answer(PyObject_CallFunctionObjArgs(dtype_resolver, dtype, nullptr));
  std::string name;
  if (!answer || !to_string(answer.get(), &name)) return false;
  *out = {type_number(name), bytes_of_type(name)};
  if (element_types.size() >= kElementTypesKept) {
    for (auto& entry : element_types) Py_DECREF(entry.first);
    element_types.clear();
  }
  element_types.emplace(share(dtype).release(), *out);
  return true;
}

void set_range(Array* array, int ndim, const int64_t* shape, const int64_t* strides, int64_t stride_unit,
               int64_t itemsize) {
  int64_t low = 0, high = itemsize;
  int64_t packed = itemsize;
  for (int dim = ndim - 1; dim >= 0; --dim) {
    if (shape[dim] == 0) {
      array->low = array->high = array->address;
      return;
    }
    int64_t reach = (shape[dim] - 1) * (strides ? strides[dim] * stride_unit : packed);
    (reach < 0 ? low : high) += reach;
    packed *= shape[dim];
  }
  array->low = array->address + static_cast<uint64_t>(low);
  array->high = array->address + static_cast<uint64_t>(high);
}

// ---- NumPy: the array object's head is part of its stable binary interface since 1.0 ----

struct NumpyArray {
  PyObject_HEAD char* data;
  int ndim;
  int64_t* shape;
  int64_t* strides;
  PyObject* base;
  PyObject* dtype;
  int flags;
};
constexpr int kNumpyWriteable = 0x400;

// Compares what the layout above says about an array with what its attributes say.
bool layout_holds(PyObject* object) {
  auto* array = reinterpret_cast<NumpyArray*>(object);
  Ref fields(PyObject_GetAttrString(object, "__array_interface__"));
  Ref dtype(PyObject_GetAttrString(object, "dtype"));
  Ref shape(PyObject_GetAttrString(object, "shape"));
  Ref strides(PyObject_GetAttrString(object, "strides"));
  if (!fields || !dtype || !shape || !strides || !PyDict_Check(fields.get())) return false;
  PyObject* data = PyDict_GetItemString(fields.get(), "data");
  if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2) return false;
  bool writeable = PyObject_IsTrue(PyTuple_GetItem(data, 1)) == 0;
  if (PyLong_AsVoidPtr(PyTuple_GetItem(data, 0)) != array->data || dtype.get() != array->dtype) return false;
  if (writeable != ((array->flags & kNumpyWriteable) != 0) || PyTuple_Size(shape.get()) != array->ndim) return false;
  for (int dim = 0; dim < array->ndim; ++dim) {
    if (PyLong_AsLongLong(PyTuple_GetItem(shape.get(), dim)) != array->shape[dim]) return false;
    if (PyLong_AsLongLong(PyTuple_GetItem(strides.get(), dim)) != array->strides[dim]) return false;
  }
  return true;
}

bool read_numpy(PyObject* object, Array* out) {
  auto* array = reinterpret_cast<NumpyArray*>(object);
  ElementType element;
  if (!element_type(array->dtype, &element)) return false;
  out->type = element.type;
  out->address = reinterpret_cast<uintptr_t>(array->data);
  out->readonly = !(array->flags & kNumpyWriteable);
  set_range(out, array->ndim, array->shape, array->strides, 1, element.bytes);
  return true;
}

bool name_is(PyObject* type, const char* attribute, const char* expected) {
  Ref name(PyObject_GetAttrString(type, attribute));
  if (!name) PyErr_Clear();
  return name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(name.get(), expected) == 0;
}

// ---- DLPack's C exchange interface (since 1.2): no Python object is made per tensor ----

struct DLTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

struct DLExchange {
  struct {
    uint32_t major, minor;
    void* previous;
  } header;
  void* allocator;
  void* managed_from_object;
  void* object_from_managed;
  int (*tensor_from_object)(void* object, void* tensor);
  CurrentStream current_stream;
};

// Of a class that has them itself; null, with no exception set, for others.
const DLExchange* exchange_of(PyObject* type) {
  static PyObject* const key = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
  bool plain = name_is(type, "__name__", "Parameter") && name_is(type, "__module__", "torch.nn.parameter");
  Ref members(plain ? nullptr : PyObject_GetAttrString(type, "__dict__"));
  Ref capsule(plain ? PyObject_GetAttr(type, key) : members ? PyObject_GetItem(members.get(), key) : nullptr);
  PyErr_Clear();
  if (!capsule || !PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api")) return nullptr;
  auto* api = static_cast<const DLExchange*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  return api->header.major == 1 ? api : nullptr;
}

const char* dlpack_element(uint8_t code, uint8_t bits) {
  switch (code) {
    case 0: return bits == 8 ? "i8" : bits == 16 ? "i16" : bits == 32 ? "i32" : bits == 64 ? "i64" : nullptr;
    case 1: return bits == 8 ? "u8" : bits == 16 ? "u16" : bits == 32 ? "u32" : bits == 64 ? "u64" : nullptr;
    case 2: return bits == 16 ? "fp16" : bits == 32 ? "fp32" : bits == 64 ? "fp64" : nullptr;
    case 4: return bits == 16 ? "bf16" : nullptr;
    case 6: return bits == 8 ? "u1" : nullptr;
    case 10: return "fp8e4nv";
    case 11: return "fp8e4b8";
    case 12: return "fp8e5";
    case 13: return "fp8e5b16";
  }
  return nullptr;
}

const char* dlpack_device(int32_t type) {
  switch (type) {
    case 1:
    case 3:
    case 11: return "cpu";  // host memory, pinned or not
    case 2:
    case 13: return "cuda";
    case 10: return "hip";
  }
  return "another kind of device";
}

bool read_exchange(PyObject* object, const Reader& reader, Array* out) {
  DLTensor tensor;
  if (reader.exchange(object, &tensor) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "its memory cannot be read through DLPack");
    return false;
  }
  // Numbers of element types met before, by code and bits: no string is made then.
  static uint16_t numbers[16][65];
  static bool cleared = (std::fill(&numbers[0][0], &numbers[0][0] + 16 * 65, kNoType), true);
  (void)cleared;
  if (tensor.dtype.code >= 16 || tensor.dtype.bits > 64 || tensor.dtype.lanes != 1) {
    PyErr_SetString(PyExc_TypeError, "its element type cannot be used in a kernel");
    return false;
  }
  uint16_t& number = numbers[tensor.dtype.code][tensor.dtype.bits];
  if (number == kNoType) {
    const char* name = dlpack_element(tensor.dtype.code, tensor.dtype.bits);
    if (!name) {
      PyErr_SetString(PyExc_TypeError, "its element type cannot be used in a kernel");
      return false;
    }
    number = type_number(name);
  }
  out->type = number;
  out->address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  if (tensor.device.type == 2) {
    static const uint16_t cuda = device_number("cuda");
    out->device = cuda;
  } else if (tensor.device.type != 1) {
    out->device = device_number(dlpack_device(tensor.device.type));
  }
  if (out->device != 0) out->index = static_cast<int16_t>(tensor.device.id);
  int64_t bytes = std::max(1, tensor.dtype.bits / 8);
  set_range(out, tensor.ndim, tensor.shape, tensor.strides, bytes, bytes);
  return true;
}

// ---- objects with data_ptr() and dtype ----

bool read_integer(Ref object, int64_t* out) {
  if (!object) return false;
  *out = PyLong_AsLongLong(object.get());
  return !(*out == -1 && PyErr_Occurred());
}

bool read_integers(PyObject* sequence, std::vector<int64_t>* out) {
  Py_ssize_t count = PySequence_Size(sequence);
  if (count < 0) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    int64_t value = 0;
    if (!read_integer(Ref(PySequence_GetItem(sequence, i)), &value)) return false;
    out->push_back(value);
  }
  return true;
}

// The number of a device object such as torch.device, where it has one.
bool read_index(PyObject* device, Array* out) {
  if (!PyObject_HasAttr(device, names().index)) return true;
  Ref index(PyObject_GetAttr(device, names().index));
  if (!index) return false;
  if (PyLong_Check(index.get())) out->index = static_cast<int16_t>(PyLong_AsLong(index.get()));
  return !PyErr_Occurred();
}

bool read_device(PyObject* object, const Reader& reader, Array* out) {
  if (reader.has_is_cpu) {
    Ref is_cpu(PyObject_GetAttr(object, names().is_cpu));
    if (!is_cpu) return false;
    if (is_cpu.get() == Py_True) return true;
  }
  if (!reader.has_device) return true;
  Ref device(PyObject_GetAttr(object, names().device));
  if (!device) return false;
  if (!PyUnicode_Check(device.get())) {
    if (!PyObject_HasAttr(device.get(), names().type)) return true;  // no name of a kind: host memory
    if (!read_index(device.get(), out)) return false;
    device.reset(PyObject_GetAttr(device.get(), names().type));
    if (!device || !PyUnicode_Check(device.get())) return device != nullptr;
  }
  std::string name;
  if (!to_string(device.get(), &name)) return false;
  size_t colon = name.find(':');  // such as "cuda:1"
  if (colon != std::string::npos && colon + 1 < name.size() &&
      name.find_first_not_of("0123456789", colon + 1) == std::string::npos && name.size() - colon <= 4) {
    out->index = static_cast<int16_t>(std::stoi(name.substr(colon + 1)));
    name.resize(colon);
  }
  out->device = device_number(name);
  return true;
}

bool read_range(PyObject* object, const Reader& reader, int64_t itemsize, Array* out) {
  if (reader.has_byte_range) {
    Ref range(PyObject_CallMethodObjArgs(object, names().byte_range, nullptr));
    std::vector<int64_t> ends;
    if (!range || !read_integers(range.get(), &ends)) return false;
    if (ends.size() == 2) {
      out->low = static_cast<uint64_t>(ends[0]);
      out->high = static_cast<uint64_t>(ends[1]);
      return true;
    }
  }
  if (reader.has_strides) {
    Ref shape(PyObject_GetAttr(object, names().shape));
    Ref strides(PyObject_CallMethodObjArgs(object, names().stride, nullptr));
    std::vector<int64_t> sizes, steps;
    if (!shape || !strides || !read_integers(shape.get(), &sizes) || !read_integers(strides.get(), &steps))
      return false;
    if (sizes.size() == steps.size()) {
      set_range(out, static_cast<int>(sizes.size()), sizes.data(), steps.data(), itemsize, itemsize);
      return true;
    }
  }
  out->low = 0;  // extent unknown: may overlap anything
  out->high = ~uint64_t{0};
  return true;
}

bool read_object(PyObject* object, const Reader& reader, Array* out) {
  Ref dtype(PyObject_GetAttr(object, names().dtype));
  ElementType element;
  if (!dtype || !element_type(dtype.get(), &element)) return false;
  out->type = element.type;
  Ref pointer(PyObject_CallMethodObjArgs(object, names().data_ptr, nullptr));
  if (!pointer) {
    if (PyErr_ExceptionMatches(PyExc_RuntimeError)) {  // torch: sparse tensors
      PyErr_SetString(PyExc_TypeError, "it has no memory that a kernel could use");
    }
    return false;
  }
  out->address = PyLong_AsUnsignedLongLong(pointer.get());
  if (PyErr_Occurred()) return false;
  if (!read_device(object, reader, out)) return false;
  if (reader.has_readonly) {
    Ref readonly(PyObject_GetAttr(object, names().readonly));
    if (!readonly) return false;
    out->readonly = PyObject_IsTrue(readonly.get()) == 1;
  }
  return out->device != 0 || read_range(object, reader, element.bytes, out);
}

// ---- classification of types ----

bool has(PyObject* object, const char* name) {
  Ref attribute(PyObject_GetAttrString(object, name));
  if (!attribute) PyErr_Clear();
  return attribute != nullptr;
}

// Whether a class of this name from the numpy package is among the bases; told without importing NumPy.
bool is_numpy(PyObject* type, const char* name) {
  Ref mro(PyObject_GetAttrString(type, "__mro__"));
  if (!mro) return PyErr_Clear(), false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(mro.get()); ++i) {
    PyObject* base = PyTuple_GetItem(mro.get(), i);
    if (name_is(base, "__name__", name) && name_is(base, "__module__", "numpy")) return true;
  }
  return false;
}

Reader array_reader(PyObject* object, PyObject* type) {
  Reader reader;
  reader.kind = ReaderKind::array;
  reader.has_is_cpu = has(object, "is_cpu");
  reader.has_device = has(object, "device");
  reader.has_readonly = has(object, "readonly");
  reader.has_byte_range = has(object, "byte_range");
  reader.has_strides = has(object, "stride") && has(object, "shape");
  // Only the class that defines the functions (and torch's Parameter): a subclass may stand for memory that it does not
  // have.
  const DLExchange* api = exchange_of(type);
  if (api && api->tensor_from_object) {
    reader.kind = ReaderKind::exchange;
    reader.exchange = api->tensor_from_object;
  }
  return reader;
}

ReaderKind number_kind(PyObject* object, PyObject* type) {
  if (PyBool_Check(object)) return ReaderKind::boolean;
  if (PyLong_Check(object)) return ReaderKind::integer;
  if (PyFloat_Check(object)) return ReaderKind::real;
  if (is_numpy(type, "bool_") || is_numpy(type, "bool")) return ReaderKind::boolean;
  if (is_numpy(type, "integer")) return ReaderKind::integer;
  if (is_numpy(type, "floating")) return ReaderKind::real;
  return ReaderKind::unsupported;
}

bool classify_type(PyObject* object, Reader* reader) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (object == Py_None) return reader->kind = ReaderKind::none, true;
  if (PyUnicode_Check(object)) return reader->kind = ReaderKind::text, true;
  if (PyTuple_Check(object) || PyList_Check(object)) return reader->kind = ReaderKind::tuple, true;
  if (constexpr_type) {
    int is_constexpr = PyObject_IsInstance(object, constexpr_type);
    if (is_constexpr < 0) return false;
    if (is_constexpr) return reader->kind = ReaderKind::constexpr_, true;
  }
  reader->kind = number_kind(object, type);
  if (reader->kind != ReaderKind::unsupported) return true;
  if (is_numpy(type, "ndarray")) {
    bool holds = layout_holds(object);
    PyErr_Clear();
    reader->kind = holds ? ReaderKind::numpy : ReaderKind::adapted;
  } else if (has(object, "data_ptr") && has(object, "dtype")) {
    *reader = array_reader(object, type);
  } else if (has(object, "cache_key")) {
    reader->kind = ReaderKind::keyed;
  } else if (has(object, "block_shape") && has(object, "base")) {
    reader->kind = ReaderKind::descriptor;
  } else if (name_is(type, "__name__", "dtype") || name_is(type, "__name__", "constexpr")) {
    reader->kind = ReaderKind::constant;
  } else if (has(object, "__cuda_array_interface__") || has(object, "__array_interface__") ||
             has(object, "__dlpack__")) {
    reader->kind = ReaderKind::adapted;
  } else if (PyIndex_Check(object)) {
    reader->kind = ReaderKind::integer;
  }
  return true;
}

}  // namespace

const Reader* reader_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  auto found = readers.find(type);
  if (found != readers.end()) return &found->second;
  Reader reader;
  if (!classify_type(object, &reader)) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  return &readers.emplace(type, reader).first->second;
}

bool read_array(PyObject* object, const Reader& reader, Array* array, std::vector<Ref>* kept) {
  switch (reader.kind) {
    case ReaderKind::numpy: return read_numpy(object, array);
    case ReaderKind::exchange:
      if (read_exchange(object, reader, array)) return true;
      // What DLPack cannot describe (a meta tensor, say) has a device or an element type that tells why.
      if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_BufferError)) return false;
      PyErr_Clear();
      return read_object(object, reader, array);
    case ReaderKind::array: return read_object(object, reader, array);
    default: break;
  }
  if (!array_adapter) {
    PyErr_SetString(PyExc_TypeError, "no array adapter is set");
    return false;
  }
  Ref view(PyObject_CallFunctionObjArgs(array_adapter, object, nullptr));
  if (!view) return false;
  Reader view_reader = array_reader(view.get(), reinterpret_cast<PyObject*>(Py_TYPE(view.get())));
  bool ok = read_object(view.get(), view_reader, array);
  kept->push_back(std::move(view));
  return ok;
}

CurrentStream current_stream_of(PyObject* type) {
  const DLExchange* api = exchange_of(type);
  return api ? api->current_stream : nullptr;
}

const std::string& device_name(uint16_t number) { return devices[number]; }

uint16_t device_number(const std::string& name) {
  auto found = std::find(devices.begin(), devices.end(), name);
  if (found == devices.end()) found = devices.insert(found, name);
  return static_cast<uint16_t>(found - devices.begin());
}

PyObject* set_dtype_resolver(PyObject* callable) {
  for (auto& entry : element_types) Py_DECREF(entry.first);
  element_types.clear();
  return exchange_hook(&dtype_resolver, callable);
}
PyObject* set_array_adapter(PyObject* callable) { return exchange_hook(&array_adapter, callable); }
PyObject* set_constexpr_type(PyObject* type) { return exchange_hook(&constexpr_type, type); }

}  // namespace triton
