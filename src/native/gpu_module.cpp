// The Python face of GPUs: the objects cuda and hip of type GpuDriver, the type GpuKernel, the exception GpuError.
#include <cstring>
#include <vector>

#include "gpu.h"
#include "gpu_launch.h"
#include "python_api.h"

namespace triton {
namespace {

PyObject* gpu_error = nullptr;
PyObject* kernel_type = nullptr;
PyObject* driver_type = nullptr;

// Runs `call`, which may wait, without the interpreter lock; a failure becomes GpuError.
template <typename Call>
bool done(Call call) {
  std::string error;
  bool good = false;
  {
    WithoutGil released;
    good = call(&error);
  }
  if (!good) raise(gpu_error, error);
  return good;
}

PyObject* none_if(bool good) { return good ? share(Py_None).release() : nullptr; }

void* as_pointer(unsigned long long number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(number)); }

// ---- GpuKernel ----

struct KernelObject {
  PyObject_HEAD
  gpu::Driver* driver;
  gpu::Kernel kernel;
};

void kernel_dealloc(PyObject* self) {
  auto* object = reinterpret_cast<KernelObject*>(self);
  object->driver->unload(object->kernel);
  release_instance(self);
}

PyObject* get_function(PyObject* self, void*) { return PyLong_FromVoidPtr(reinterpret_cast<KernelObject*>(self)->kernel.function); }

template <int gpu::Kernel::*Field>
PyObject* get_number(PyObject* self, void*) {
  return PyLong_FromLong(reinterpret_cast<KernelObject*>(self)->kernel.*Field);
}

PyGetSetDef kernel_fields[] = {
    {"function", get_function, nullptr, "handle of the function", nullptr},
    {"registers", get_number<&gpu::Kernel::registers>, nullptr, "(vector) registers a thread", nullptr},
    {"local_bytes", get_number<&gpu::Kernel::local_bytes>, nullptr, "local (private) memory a thread, bytes", nullptr},
    {"static_shared", get_number<&gpu::Kernel::static_shared>, nullptr, "static shared memory, bytes", nullptr},
    {"max_threads", get_number<&gpu::Kernel::max_threads>, nullptr, "most threads in a block", nullptr},
    {"device", get_number<&gpu::Kernel::device>, nullptr, "the device it was loaded on", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot kernel_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(kernel_dealloc)},
                              {Py_tp_getset, kernel_fields},
                              {Py_tp_doc, const_cast<char*>("A kernel loaded by GpuDriver.load(); unloaded with the object.")},
                              {0, nullptr}};
PyType_Spec kernel_spec = {"triton._C.libtriton.GpuKernel", sizeof(KernelObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           kernel_slots};

// ---- GpuDriver ----

struct DriverObject {
  PyObject_HEAD
  gpu::Driver* driver;
};

gpu::Driver& driver_of(PyObject* self) { return *reinterpret_cast<DriverObject*>(self)->driver; }

PyObject* device_count(PyObject* self, PyObject*) {
  int count = 0;
  bool good = done([&](std::string* error) { return (count = driver_of(self).device_count(error)) >= 0; });
  return good ? PyLong_FromLong(count) : nullptr;
}

PyObject* device_attributes(PyObject* self, PyObject* arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  gpu::Numbers numbers;
  gpu::Texts texts;
  if (!done([&](std::string* error) { return driver_of(self).attributes(device, &numbers, &texts, error); })) return nullptr;
  Ref result(PyDict_New());
  for (const auto& [key, value] : numbers) {
    Ref number(PyLong_FromLongLong(value));
    if (!result || !number || PyDict_SetItemString(result.get(), key.c_str(), number.get()) < 0) return nullptr;
  }
  for (const auto& [key, value] : texts) {
    Ref text(to_str(value));
    if (!result || !text || PyDict_SetItemString(result.get(), key.c_str(), text.get()) < 0) return nullptr;
  }
  return result.release();
}

PyObject* current_device(PyObject* self, PyObject*) {
  int device = 0;
  bool good = done([&](std::string* error) { return (device = driver_of(self).current_device(error)) >= 0; });
  return good ? PyLong_FromLong(device) : nullptr;
}

PyObject* set_current_device(PyObject* self, PyObject* arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  return none_if(done([&](std::string* error) { return driver_of(self).set_current_device(device, error); }));
}

PyObject* version(PyObject* self, PyObject*) { return PyLong_FromLong(driver_of(self).version()); }

PyObject* load(PyObject* self, PyObject* args) {
  PyObject* image = nullptr;
  const char* name = nullptr;
  gpu::Shape shape;
  int device = 0;
  if (!PyArg_ParseTuple(args, "SsIi|I:load", &image, &name, &shape.shared, &device, &shape.cluster[0])) return nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(image, &data, &size) < 0) return nullptr;
  std::string bytes(data, static_cast<size_t>(size));
  gpu::Driver* driver = &driver_of(self);
  gpu::Kernel kernel;
  if (!done([&](std::string* error) { return driver->load(bytes, name, shape, device, &kernel, error); })) return nullptr;
  PyObject* object = allocate(kernel_type);
  if (!object) {
    driver->unload(kernel);
    return nullptr;
  }
  reinterpret_cast<KernelObject*>(object)->driver = driver;
  reinterpret_cast<KernelObject*>(object)->kernel = kernel;
  return object;
}

PyObject* launch(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"function", "grid",   "stream",      "args",    "threads", "blocks",
                                "cluster",  "shared", "cooperative", "overlap", "maps",    nullptr};
  unsigned long long function = 0, stream = 0;
  long long programs[3];
  gpu::Launch launch;
  gpu::Shape& shape = launch.shape;
  PyObject *slots = nullptr, *maps = nullptr;
  int cooperative = 0, overlap = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "K(LLL)KSI|I(III)IppS:launch", const_cast<char**>(names), &function, &programs[0], &programs[1],
                                   &programs[2], &stream, &slots, &shape.threads, &shape.blocks, &shape.cluster[0], &shape.cluster[1],
                                   &shape.cluster[2], &shape.shared, &cooperative, &overlap, &maps))
    return nullptr;
  shape.cooperative = cooperative != 0;
  shape.overlap = overlap != 0;
  std::vector<gpu::MapPlan> plans;
  if (maps && !read_map_plans(maps, &plans)) return nullptr;
  const int64_t sizes[3] = {programs[0], programs[1], programs[2]};
  if (shape.blocks == 0) return raise(PyExc_ValueError, "blocks is 0");
  if (!gpu_grid(sizes, shape.blocks, launch.grid)) return nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(slots, &data, &size) < 0) return nullptr;
  launch.function = as_pointer(function);
  launch.stream = as_pointer(stream);
  launch.args = data;
  launch.count = static_cast<size_t>(size) / 8;
  launch.maps = plans.data();
  launch.map_count = plans.size();
  return none_if(done([&](std::string* error) { return driver_of(self).launch(launch, error); }));
}

PyObject* synchronize(PyObject* self, PyObject*) {
  return none_if(done([&](std::string* error) { return driver_of(self).synchronize(error); }));
}

PyObject* host_pointer_mapped(PyObject* self, PyObject* arg) {
  unsigned long long pointer = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(driver_of(self).host_pointer_mapped(pointer));
}

PyObject* allocate_memory(PyObject* self, PyObject* arg) {
  size_t bytes = PyLong_AsSize_t(arg);
  if (PyErr_Occurred()) return nullptr;
  uint64_t pointer = 0;
  if (!done([&](std::string* error) { return driver_of(self).allocate(bytes, &pointer, error); })) return nullptr;
  return PyLong_FromUnsignedLongLong(pointer);
}

PyObject* release_memory(PyObject* self, PyObject* arg) {
  unsigned long long pointer = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred()) return nullptr;
  return none_if(done([&](std::string* error) { return driver_of(self).release(pointer, error); }));
}

PyObject* copy_in(PyObject* self, PyObject* args) {
  unsigned long long pointer = 0;
  PyObject* bytes = nullptr;
  if (!PyArg_ParseTuple(args, "KS:copy_in", &pointer, &bytes)) return nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return nullptr;
  return none_if(done([&](std::string* error) { return driver_of(self).copy_in(pointer, data, static_cast<size_t>(size), error); }));
}

PyObject* copy_out(PyObject* self, PyObject* args) {
  unsigned long long pointer = 0;
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "Kn:copy_out", &pointer, &size)) return nullptr;
  Ref result(PyBytes_FromStringAndSize(nullptr, size));
  if (!result) return nullptr;
  char* data = PyBytes_AsString(result.get());
  if (!done([&](std::string* error) { return driver_of(self).copy_out(data, pointer, static_cast<size_t>(size), error); })) return nullptr;
  return result.release();
}

PyMethodDef driver_methods[] = {
    {"device_count", device_count, METH_NOARGS, "device_count() -> int\n\nRaises GpuError with the reason where there is none."},
    {"device_attributes", device_attributes, METH_O,
     "device_attributes(device: int) -> dict\n\nName and numbers of a device; for AMD also its processor, arch."},
    {"current_device", current_device, METH_NOARGS, "current_device() -> int\n\nThis thread's device."},
    {"set_current_device", set_current_device, METH_O, "set_current_device(device: int) -> None"},
    {"version", version, METH_NOARGS, "version() -> int\n\nThe library's version, such as 13000; 0 where there is none."},
    {"load", load, METH_VARARGS,
     "load(image: bytes, name: str, shared: int, device: int, cluster: int = 1) -> GpuKernel\n\nLoads a code object (CUDA: or PTX text) that\n"
     "will be launched with so many bytes of shared memory, in clusters of so many blocks. Raises GpuError."},
    {"launch", as_method(launch), METH_VARARGS | METH_KEYWORDS,
     "launch(function: int, grid: tuple[int, int, int], stream: int, args: bytes, threads: int, blocks: int = 1,\n"
     "       cluster: tuple[int, int, int] = (1, 1, 1), shared: int = 0, cooperative: bool = False, overlap: bool = False,\n"
     "       maps: bytes = b'') -> None\n\n"
     "grid counts programs, of so many blocks each. args: one 8-byte slot for each parameter; behind them the kernel gets a tensor\n"
     "map for each plan in maps (20 int32 and 11 int64: rank, type, swizzle, fill, box; slots of base, sizes and strides, or -1;\n"
     "values where there is no slot). Returns once queued."},
    {"synchronize", synchronize, METH_NOARGS, "synchronize() -> None\n\nWaits for the device; raises what went wrong on it."},
    {"host_pointer_mapped", host_pointer_mapped, METH_O,
     "host_pointer_mapped(pointer: int) -> bool\n\nWhether kernels can use an address in host memory: it is pinned."},
    {"allocate", allocate_memory, METH_O, "allocate(bytes: int) -> int\n\nDevice memory."},
    {"release", release_memory, METH_O, "release(pointer: int) -> None"},
    {"copy_in", copy_in, METH_VARARGS, "copy_in(pointer: int, data: bytes) -> None\n\nTo device memory."},
    {"copy_out", copy_out, METH_VARARGS, "copy_out(pointer: int, size: int) -> bytes\n\nFrom device memory."},
    {nullptr, nullptr, 0, nullptr}};

PyObject* driver_repr(PyObject* self) { return PyUnicode_FromFormat("<GpuDriver %s>", driver_of(self).name); }

PyType_Slot driver_slots[] = {{Py_tp_methods, driver_methods},
                              {Py_tp_repr, reinterpret_cast<void*>(driver_repr)},
                              {Py_tp_doc, const_cast<char*>("One maker's GPUs. Its library is opened when a method first needs it.")},
                              {0, nullptr}};
PyType_Spec driver_spec = {"triton._C.libtriton.GpuDriver", sizeof(DriverObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           driver_slots};

bool add_driver(PyObject* module, gpu::Driver* driver) {
  Ref object(allocate(driver_type));
  if (!object) return false;
  reinterpret_cast<DriverObject*>(object.get())->driver = driver;
  return PyModule_AddObjectRef(module, driver->name, object.get()) == 0;
}

}  // namespace

const gpu::Kernel* gpu_kernel_of(PyObject* object, gpu::Driver** driver) {
  if (Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(kernel_type)) {
    *driver = reinterpret_cast<KernelObject*>(object)->driver;
    return &reinterpret_cast<KernelObject*>(object)->kernel;
  }
  PyErr_Format(PyExc_TypeError, "expected a GpuKernel, got %R", object);
  return nullptr;
}

gpu::Driver* gpu_driver_of(PyObject* object) {
  if (Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(driver_type)) return &driver_of(object);
  PyErr_Format(PyExc_TypeError, "expected a GpuDriver, got %R", object);
  return nullptr;
}

bool read_map_plans(PyObject* bytes, std::vector<gpu::MapPlan>* out) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return false;
  const auto count = static_cast<size_t>(size) / sizeof(gpu::MapPlan);
  if (count * sizeof(gpu::MapPlan) != static_cast<size_t>(size)) return raise(PyExc_ValueError, "maps has a part of a plan"), false;
  out->resize(count);
  if (count != 0) memcpy(out->data(), data, static_cast<size_t>(size));
  return true;
}

PyObject* raise_gpu_error(const std::string& message) { return raise(gpu_error, message); }

bool add_gpus(PyObject* module) {
  gpu_error = PyErr_NewExceptionWithDoc("triton._C.libtriton.GpuError", "An error of the CUDA driver or the HIP runtime.", PyExc_RuntimeError, nullptr);
  kernel_type = PyType_FromSpec(&kernel_spec);
  driver_type = PyType_FromSpec(&driver_spec);
  return gpu_error && kernel_type && driver_type && PyModule_AddObjectRef(module, "GpuError", gpu_error) == 0 &&
         PyModule_AddObjectRef(module, "GpuDriver", driver_type) == 0 && PyModule_AddObjectRef(module, "GpuKernel", kernel_type) == 0 &&
         add_driver(module, gpu::cuda()) && add_driver(module, gpu::hip()) && add_gpu_launcher(module);
}

}  // namespace triton
