// The Python face of the CUDA driver: functions cuda_*, type CudaKernel, exception CudaError.
#include <cstring>
#include <vector>

#include "cuda.h"
#include "cuda_launch.h"
#include "python_api.h"

namespace triton {
namespace {

PyObject* cuda_error = nullptr;
PyObject* kernel_type = nullptr;

struct KernelObject {
  PyObject_HEAD
  cuda::Kernel kernel;
};

void kernel_dealloc(PyObject* self) {
  cuda::unload(reinterpret_cast<KernelObject*>(self)->kernel);
  release_instance(self);
}

PyObject* get_number(PyObject* self, void* which) {
  const cuda::Kernel& kernel = reinterpret_cast<KernelObject*>(self)->kernel;
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
                               {"registers", get_number, nullptr, "registers a thread", reinterpret_cast<void*>(uintptr_t(1))},
                               {"local_bytes", get_number, nullptr, "local memory a thread, bytes", reinterpret_cast<void*>(uintptr_t(2))},
                               {"static_shared", get_number, nullptr, "static shared memory, bytes", reinterpret_cast<void*>(uintptr_t(3))},
                               {"max_threads", get_number, nullptr, "most threads in a block", reinterpret_cast<void*>(uintptr_t(4))},
                               {"device", get_number, nullptr, "the device it was loaded on", reinterpret_cast<void*>(uintptr_t(5))},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyType_Slot kernel_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(kernel_dealloc)},
                              {Py_tp_getset, kernel_fields},
                              {Py_tp_doc, const_cast<char*>("A kernel loaded by cuda_load(); unloaded with the object.")},
                              {0, nullptr}};
PyType_Spec kernel_spec = {"triton._C.libtriton.CudaKernel", sizeof(KernelObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           kernel_slots};

PyObject* py_device_count(PyObject*, PyObject*) {
  std::string error;
  int count = 0;
  {
    WithoutGil released;
    count = cuda::device_count(&error);
  }
  return count < 0 ? raise(cuda_error, error) : PyLong_FromLong(count);
}

PyObject* py_device_attributes(PyObject*, PyObject* arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  std::map<std::string, int64_t> numbers;
  std::string name, error;
  if (!cuda::device_attributes(device, &numbers, &name, &error)) return raise(cuda_error, error);
  Ref result(PyDict_New());
  for (const auto& [key, value] : numbers) {
    Ref number(PyLong_FromLongLong(value));
    if (!number || PyDict_SetItemString(result.get(), key.c_str(), number.get()) < 0) return nullptr;
  }
  Ref text(to_str(name));
  if (!text || PyDict_SetItemString(result.get(), "name", text.get()) < 0) return nullptr;
  return result.release();
}

PyObject* py_current_device(PyObject*, PyObject*) {
  std::string error;
  int device = cuda::current_device(&error);
  return device < 0 ? raise(cuda_error, error) : PyLong_FromLong(device);
}

PyObject* py_set_current_device(PyObject*, PyObject* arg) {
  int device = static_cast<int>(PyLong_AsLong(arg));
  if (PyErr_Occurred()) return nullptr;
  std::string error;
  if (!cuda::set_current_device(device, &error)) return raise(cuda_error, error);
  Py_RETURN_NONE;
}

PyObject* py_load(PyObject*, PyObject* args) {
  PyObject* image = nullptr;
  const char* name = nullptr;
  unsigned shared = 0;
  int device = 0;
  if (!PyArg_ParseTuple(args, "SsIi:cuda_load", &image, &name, &shared, &device)) return nullptr;
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(image, &data, &size) < 0) return nullptr;
  std::string bytes(data, static_cast<size_t>(size)), error;
  cuda::Kernel kernel;
  bool good = false;
  {
    WithoutGil released;
    good = cuda::load(bytes, name, shared, device, &kernel, &error);
  }
  if (!good) return raise(cuda_error, error);
  PyObject* self = allocate(kernel_type);
  if (!self) {
    cuda::unload(kernel);
    return nullptr;
  }
  reinterpret_cast<KernelObject*>(self)->kernel = kernel;
  return self;
}

PyObject* py_launch(PyObject*, PyObject* args) {
  unsigned long long function = 0, stream = 0;
  cuda::Launch launch;
  PyObject *slots = nullptr, *maps = nullptr;
  int cooperative = 0, overlap = 0;
  if (!PyArg_ParseTuple(args, "K(III)I(III)IKSpp|S:cuda_launch", &function, &launch.grid[0], &launch.grid[1], &launch.grid[2], &launch.threads,
                        &launch.cluster[0], &launch.cluster[1], &launch.cluster[2], &launch.shared, &stream, &slots, &cooperative, &overlap,
                        &maps)) {
    return nullptr;
  }
  std::vector<cuda::MapPlan> plans;
  if (maps && !read_map_plans(maps, &plans)) return nullptr;
  launch.maps = plans.data();
  launch.map_count = plans.size();
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(slots, &data, &size) < 0) return nullptr;
  launch.function = reinterpret_cast<void*>(static_cast<uintptr_t>(function));
  launch.stream = reinterpret_cast<void*>(static_cast<uintptr_t>(stream));
  launch.args = data;
  launch.count = static_cast<size_t>(size) / 8;
  launch.cooperative = cooperative != 0;
  launch.overlap = overlap != 0;
  std::string error;
  bool good = false;
  {
    WithoutGil released;
    good = cuda::launch(launch, &error);
  }
  if (!good) return raise(cuda_error, error);
  Py_RETURN_NONE;
}

PyObject* py_synchronize(PyObject*, PyObject*) {
  std::string error;
  bool good = false;
  {
    WithoutGil released;
    good = cuda::synchronize(&error);
  }
  if (!good) return raise(cuda_error, error);
  Py_RETURN_NONE;
}

PyObject* py_pointer_device(PyObject*, PyObject* arg) {
  unsigned long long pointer = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred()) return nullptr;
  std::string error;
  int device = -1;
  if (!cuda::pointer_device(pointer, &device, &error)) return raise(cuda_error, error);
  return PyLong_FromLong(device);
}

PyObject* py_host_pointer_mapped(PyObject*, PyObject* arg) {
  unsigned long long pointer = PyLong_AsUnsignedLongLong(arg);
  if (PyErr_Occurred()) return nullptr;
  return PyBool_FromLong(cuda::host_pointer_mapped(pointer));
}

PyObject* py_driver_version(PyObject*, PyObject*) { return PyLong_FromLong(cuda::driver_version()); }

PyMethodDef methods[] = {
    {"cuda_device_count", py_device_count, METH_NOARGS, "cuda_device_count() -> int\n\nRaises CudaError with the reason where there is none."},
    {"cuda_device_attributes", py_device_attributes, METH_O, "cuda_device_attributes(device: int) -> dict\n\nName and numbers of a device."},
    {"cuda_current_device", py_current_device, METH_NOARGS, "cuda_current_device() -> int\n\nThe device of this thread's context."},
    {"cuda_set_current_device", py_set_current_device, METH_O, "cuda_set_current_device(device: int) -> None"},
    {"cuda_load", py_load, METH_VARARGS,
     "cuda_load(image: bytes, name: str, shared: int, device: int) -> CudaKernel\n\nLoads a cubin or PTX text. Raises CudaError."},
    {"cuda_launch", py_launch, METH_VARARGS,
     "cuda_launch(function: int, grid: tuple[int, int, int], threads: int, cluster: tuple[int, int, int], shared: int, stream: int,\n"
     "            args: bytes, cooperative: bool, overlap: bool, maps: bytes = b'') -> None\n\n"
     "One 8-byte slot for each parameter; behind them a tensor map for each plan in maps (10 int32: slot, rank, type, swizzle,\n"
     "fill, box). Returns once queued."},
    {"cuda_synchronize", py_synchronize, METH_NOARGS, "cuda_synchronize() -> None\n\nWaits for the device; raises what went wrong on it."},
    {"cuda_pointer_device", py_pointer_device, METH_O, "cuda_pointer_device(pointer: int) -> int\n\nThe device it lies on; -1: host memory."},
    {"cuda_host_pointer_mapped", py_host_pointer_mapped, METH_O,
     "cuda_host_pointer_mapped(pointer: int) -> bool\n\nWhether kernels can use an address in host memory: it is pinned."},
    {"cuda_driver_version", py_driver_version, METH_NOARGS, "cuda_driver_version() -> int\n\nSuch as 13000; 0 where there is no driver."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

const cuda::Kernel* cuda_kernel_of(PyObject* object) {
  if (Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(kernel_type)) return &reinterpret_cast<KernelObject*>(object)->kernel;
  PyErr_Format(PyExc_TypeError, "expected a CudaKernel, got %R", object);
  return nullptr;
}

bool read_map_plans(PyObject* bytes, std::vector<cuda::MapPlan>* out) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) return false;
  const auto count = static_cast<size_t>(size) / sizeof(cuda::MapPlan);
  if (count * sizeof(cuda::MapPlan) != static_cast<size_t>(size)) return raise(PyExc_ValueError, "maps has a part of a plan"), false;
  out->resize(count);
  if (count != 0) memcpy(out->data(), data, static_cast<size_t>(size));
  return true;
}

PyObject* raise_cuda_error(const std::string& message) { return raise(cuda_error, message); }

bool add_cuda(PyObject* module) {
  cuda_error = PyErr_NewExceptionWithDoc("triton._C.libtriton.CudaError", "The CUDA driver's error.", PyExc_RuntimeError, nullptr);
  kernel_type = PyType_FromSpec(&kernel_spec);
  return cuda_error && kernel_type && PyModule_AddObjectRef(module, "CudaError", cuda_error) == 0 &&
         PyModule_AddObjectRef(module, "CudaKernel", kernel_type) == 0 && PyModule_AddFunctions(module, methods) == 0 &&
         add_cuda_launcher(module);
}

}  // namespace triton
