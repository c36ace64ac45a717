// The Python face of the HIP runtime: functions hip_*, type HipKernel, exception HipError.
#include "hip.h"
#include "python_api.h"

namespace triton {
namespace {

PyObject* hip_error = nullptr;
PyObject* kernel_type = nullptr;

struct KernelObject {
  PyObject_HEAD
  hip::Kernel kernel;
};

void kernel_dealloc(PyObject* self) {
  hip::unload(reinterpret_cast<KernelObject*>(self)->kernel);
  release_instance(self);
}

PyObject* get_number(PyObject* self, void* which) {
  const hip::Kernel& kernel = reinterpret_cast<KernelObject*>(self)->kernel;
  switch (reinterpret_cast<uintptr_t>(which)) {
    case 0: return PyLong_FromVoidPtr(kernel.function);
    case 1: return PyLong_FromLong(kernel.registers);
    case 2: return PyLong_FromLong(kernel.local_bytes);
    case 3: return PyLong_FromLong(kernel.static_shared);
    case 4: return PyLong_FromLong(kernel.max_threads);
    default: return PyLong_FromLong(kernel.device);
  }
}

PyGetSetDef kernel_fields[] = {{"function", get_number, nullptr, "handle of the function", reinterpret_cast<void*>(uintptr_t(0))},
                               {"registers", get_number, nullptr, "vector registers a lane", reinterpret_cast<void*>(uintptr_t(1))},
                               {"local_bytes", get_number, nullptr, "private memory a lane, bytes", reinterpret_cast<void*>(uintptr_t(2))},
                               {"static_shared", get_number, nullptr, "static shared memory, bytes", reinterpret_cast<void*>(uintptr_t(3))},
                               {"max_threads", get_number, nullptr, "most threads in a workgroup", reinterpret_cast<void*>(uintptr_t(4))},
                               {"device", get_number, nullptr, "the device it was loaded on", reinterpret_cast<void*>(uintptr_t(5))},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot kernel_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(kernel_dealloc)},
                              {Py_tp_getset, kernel_fields},
                              {Py_tp_doc, const_cast<char*>("A kernel loaded by hip_load(); unloaded with the object.")},
                              {0, nullptr}};
PyType_Spec kernel_spec = {"triton._C.libtriton.HipKernel", sizeof(KernelObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           kernel_slots};

// Runs `call`, which may wait, without the interpreter lock; a failure becomes HipError.
template <typename Call>
bool done(Call call) {
  std::string error;
  bool good = false;
  {
    WithoutGil released;
    good = call(&error);
  }
  if (!good) raise(hip_error, error);
  return good;
}

PyObject* none_if(bool good) {
  if (!good) return nullptr;
  Py_RETURN_NONE;
}

PyObject* py_device_count(PyObject*, PyObject*) {
  int count = 0;
  bool good = done([&](std::string* error) { return (count = hip::device_count(error)) >= 0; });
  return good ? PyLong_FromLong(count) : nullptr;
}

PyObject* py_device_attributes(PyObject*, PyObject* arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  std::map<std::string, int64_t> numbers;
  std::map<std::string, std::string> texts;
  if (!done([&](std::string* error) { return hip::device_attributes(device, &numbers, &texts, error); })) return nullptr;
  Ref result(PyDict_New());
  for (const auto& [key, value] : numbers) {
    Ref number(PyLong_FromLongLong(value));
    if (!number || PyDict_SetItemString(result.get(), key.c_str(), number.get()) < 0) return nullptr;
  }
  for (const auto& [key, value] : texts) {
    Ref text(to_str(value));
    if (!text || PyDict_SetItemString(result.get(), key.c_str(), text.get()) < 0) return nullptr;
  }
  return result.release();
}

PyObject* py_current_device(PyObject*, PyObject*) {
  int device = 0;
  bool good = done([&](std::string* error) { return (device = hip::current_device(error)) >= 0; });
  return good ? PyLong_FromLong(device) : nullptr;
}

PyObject* py_set_current_device(PyObject*, PyObject* arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  return none_if(done([&](std::string* error) { return hip::set_current_device(device, error); }));
}

PyObject* py_load(PyObject*, PyObject* args) {
  PyObject* image = nullptr;
  const char* name = nullptr;
  int device = 0;
  if (!PyArg_ParseTuple(args, "Ssi:hip_load", &image, &name, &device)) return nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(image, &data, &size) < 0) return nullptr;
  std::string bytes(data, static_cast<size_t>(size));
  hip::Kernel kernel;
  if (!done([&](std::string* error) { return hip::load(bytes, name, device, &kernel, error); })) return nullptr;
  PyObject* self = allocate(kernel_type);
  if (!self) {
    hip::unload(kernel);
    return nullptr;
  }
  reinterpret_cast<KernelObject*>(self)->kernel = kernel;
  return self;
}

PyObject* py_launch(PyObject*, PyObject* args) {
  unsigned long long function = 0, stream = 0;
  hip::Launch launch;
  PyObject* slots = nullptr;
  int cooperative = 0;
  if (!PyArg_ParseTuple(args, "K(III)IIKSp:hip_launch", &function, &launch.grid[0], &launch.grid[1], &launch.grid[2], &launch.threads,
                        &launch.shared, &stream, &slots, &cooperative)) {
    return nullptr;
  }
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(slots, &data, &size) < 0) return nullptr;
  launch.function = reinterpret_cast<void*>(static_cast<uintptr_t>(function));
  launch.stream = reinterpret_cast<void*>(static_cast<uintptr_t>(stream));
  launch.args = data;
  launch.count = static_cast<size_t>(size) / 8;
  launch.cooperative = cooperative != 0;
  return none_if(done([&](std::string* error) { return hip::launch(launch, error); }));
}

PyObject* py_synchronize(PyObject*, PyObject*) { return none_if(done(hip::synchronize)); }

PyObject* py_allocate(PyObject*, PyObject* arg) {
  size_t bytes = PyLong_AsSize_t(arg);
  if (PyErr_Occurred()) return nullptr;
  uint64_t pointer = 0;
  if (!done([&](std::string* error) { return hip::allocate(bytes, &pointer, error); })) return nullptr;
  return PyLong_FromUnsignedLongLong(pointer);
}

PyObject* py_release(PyObject*, PyObject* arg) {
  unsigned long long pointer = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred()) return nullptr;
  return none_if(done([&](std::string* error) { return hip::release(pointer, error); }));
}

PyObject* py_copy_in(PyObject*, PyObject* args) {
  unsigned long long pointer = 0;
  PyObject* bytes = nullptr;
  if (!PyArg_ParseTuple(args, "KS:hip_copy_in", &pointer, &bytes)) return nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return nullptr;
  return none_if(done([&](std::string* error) { return hip::copy_in(pointer, data, static_cast<size_t>(size), error); }));
}

PyObject* py_copy_out(PyObject*, PyObject* args) {
  unsigned long long pointer = 0;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "Kn:hip_copy_out", &pointer, &size)) return nullptr;
  Ref result(PyBytes_FromStringAndSize(nullptr, size));
  if (!result) return nullptr;
  char* data = PyBytes_AsString(result.get());
  if (!done([&](std::string* error) { return hip::copy_out(data, pointer, static_cast<size_t>(size), error); })) return nullptr;
  return result.release();
}

PyMethodDef methods[] = {
    {"hip_device_count", py_device_count, METH_NOARGS, "hip_device_count() -> int\n\nRaises HipError with the reason where there is none."},
    {"hip_device_attributes", py_device_attributes, METH_O,
     "hip_device_attributes(device: int) -> dict\n\nName, processor (arch) and numbers of a device."},
    {"hip_current_device", py_current_device, METH_NOARGS, "hip_current_device() -> int\n\nThis thread's device."},
    {"hip_set_current_device", py_set_current_device, METH_O, "hip_set_current_device(device: int) -> None"},
    {"hip_load", py_load, METH_VARARGS, "hip_load(image: bytes, name: str, device: int) -> HipKernel\n\nLoads a code object. Raises HipError."},
    {"hip_launch", py_launch, METH_VARARGS,
     "hip_launch(function: int, grid: tuple[int, int, int], threads: int, shared: int, stream: int, args: bytes,\n"
     "           cooperative: bool) -> None\n\nOne 8-byte slot for each parameter. Returns once queued."},
    {"hip_synchronize", py_synchronize, METH_NOARGS, "hip_synchronize() -> None\n\nWaits for the device; raises what went wrong on it."},
    {"hip_allocate", py_allocate, METH_O, "hip_allocate(bytes: int) -> int\n\nDevice memory."},
    {"hip_release", py_release, METH_O, "hip_release(pointer: int) -> None"},
    {"hip_copy_in", py_copy_in, METH_VARARGS, "hip_copy_in(pointer: int, data: bytes) -> None\n\nTo device memory."},
    {"hip_copy_out", py_copy_out, METH_VARARGS, "hip_copy_out(pointer: int, size: int) -> bytes\n\nFrom device memory."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_hip(PyObject* module) {
  hip_error = PyErr_NewExceptionWithDoc("triton._C.libtriton.HipError", "The HIP runtime's error.", PyExc_RuntimeError, nullptr);
  kernel_type = PyType_FromSpec(&kernel_spec);
  return hip_error && kernel_type && PyModule_AddObjectRef(module, "HipError", hip_error) == 0 &&
         PyModule_AddObjectRef(module, "HipKernel", kernel_type) == 0 && PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace triton
