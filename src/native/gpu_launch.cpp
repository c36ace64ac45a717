#include "gpu_launch.h"

#include <structmember.h>

#include <memory>
#include <string>

#include "arrays.h"

namespace triton {
namespace {

PyObject* launcher_type = nullptr;

// ---- torch: owns the current device and stream once it uses GPUs ----

struct Torch {
  PyObject* device = nullptr;       // torch._C._cuda_getDevice()
  PyObject* stream = nullptr;       // torch._C._cuda_getCurrentRawStream(device)
  CurrentStream fast_stream = nullptr;  // the same through DLPack; null: not there
  gpu::Driver* driver = nullptr;    // of its GPUs: ROCm builds go by the names of CUDA
  bool settled = false;             // it is known for good whether torch takes part
};
Torch torch;  // guarded by the GIL

PyObject* attribute(PyObject* object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object, name);
  if (!value) PyErr_Clear();
  return value;
}

// Asked at each launch until torch uses GPUs, without importing anything.
void look_for_torch() {
  static PyObject* const name = PyUnicode_InternFromString("torch");
  PyObject* module = PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
  if (!module) {
    PyErr_Clear();
    return;
  }
  Ref core(attribute(module, "_C")), cuda(attribute(module, "cuda"));
  if (!core || !cuda) return;  // still being imported
  Ref device(attribute(core.get(), "_cuda_getDevice")), stream(attribute(core.get(), "_cuda_getCurrentRawStream"));
  if (!device || !stream) {
    torch.settled = true;  // built without GPUs
    return;
  }
  Ref asked(PyObject_CallMethod(cuda.get(), "is_initialized", nullptr));
  if (!asked) return PyErr_Clear();
  if (asked.get() != Py_True) return;
  Ref version(attribute(module, "version"));
  Ref rocm(version ? attribute(version.get(), "hip") : nullptr);
  torch.driver = rocm && rocm.get() != Py_None ? gpu::hip() : gpu::cuda();
  torch.device = device.release();
  torch.stream = stream.release();
  Ref tensor(attribute(module, "Tensor"));
  if (tensor && torch.driver == gpu::cuda()) torch.fast_stream = current_stream_of(tensor.get());
  torch.settled = true;
}

// Whether torch owns the current device and stream of this driver's GPUs.
bool torch_owns(const gpu::Driver* driver) {
  if (!torch.settled) look_for_torch();
  return driver && torch.driver == driver;
}

bool read_number(Ref object, long long* out) {
  if (!object) return false;
  *out = PyLong_AsLongLong(object.get());
  return !(*out == -1 && PyErr_Occurred());
}

// The stream that launches on a device go to when none is named.
bool current_stream(const gpu::Driver* driver, int device, void** out) {
  *out = nullptr;
  if (!torch_owns(driver)) return true;
  if (torch.fast_stream) {
    if (torch.fast_stream(2, device, out) == 0) return true;  // kDLCUDA
    PyErr_Clear();
  }
  Ref number(PyLong_FromLong(device));
  long long stream = 0;
  if (!number || !read_number(Ref(PyObject_CallFunctionObjArgs(torch.stream, number.get(), nullptr)), &stream)) return false;
  *out = reinterpret_cast<void*>(static_cast<uintptr_t>(stream));
  return true;
}

// ---- GpuLauncher ----

struct LauncherState {
  gpu::Shape shape;
  unsigned long long scratch = 0;    // bytes of global memory a program asks for
  unsigned long long alignment = 1;  // of the first program's
  std::vector<gpu::MapPlan> maps;
};

struct LauncherObject {
  PyObject_HEAD
  PyObject* module;    // the GpuKernel
  PyObject* owner;
  PyObject* allocate;  // allocate(bytes, alignment, stream) -> object with data_ptr(); null: the kernel asks for no memory
  const gpu::Kernel* kernel;  // the module's
  gpu::Driver* driver;
  LauncherState* state;
};

LauncherObject* launcher_of(PyObject* self) { return reinterpret_cast<LauncherObject*>(self); }

PyObject* launcher_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"module",  "owner",   "threads",   "blocks",   "cluster", "shared", "cooperative",
                                "overlap", "scratch", "alignment", "allocate", "maps",    nullptr};
  PyObject *module, *owner, *allocate_with = Py_None, *maps = nullptr;
  auto state = std::make_unique<LauncherState>();
  gpu::Shape& shape = state->shape;
  int cooperative = 0, overlap = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOI|I(III)IppKKOS:GpuLauncher", const_cast<char**>(names), &module, &owner, &shape.threads,
                                   &shape.blocks, &shape.cluster[0], &shape.cluster[1], &shape.cluster[2], &shape.shared, &cooperative,
                                   &overlap, &state->scratch, &state->alignment, &allocate_with, &maps))
    return nullptr;
  shape.cooperative = cooperative != 0;
  shape.overlap = overlap != 0;
  gpu::Driver* driver = nullptr;
  const gpu::Kernel* kernel = gpu_kernel_of(module, &driver);
  if (!kernel) return nullptr;
  if (shape.threads == 0) return raise(PyExc_ValueError, "threads is 0");
  if (shape.blocks == 0) return raise(PyExc_ValueError, "blocks is 0");
  if (state->scratch != 0 && !PyCallable_Check(allocate_with)) return raise(PyExc_TypeError, "a kernel with scratch needs allocate");
  if (maps && !read_map_plans(maps, &state->maps)) return nullptr;
  std::string error;
  if (!driver->prepare(*kernel, shape, &error)) return raise_gpu_error(error);
  PyObject* self = allocate(reinterpret_cast<PyObject*>(type));
  if (!self) return nullptr;
  LauncherObject* launcher = launcher_of(self);
  launcher->module = share(module).release();
  launcher->owner = share(owner).release();
  launcher->allocate = state->scratch != 0 ? share(allocate_with).release() : nullptr;
  launcher->kernel = kernel;
  launcher->driver = driver;
  launcher->state = state.release();
  return self;
}

int launcher_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(launcher_of(self)->module);
  Py_VISIT(launcher_of(self)->owner);
  Py_VISIT(launcher_of(self)->allocate);
  return 0;
}

int launcher_clear(PyObject* self) {
  Py_CLEAR(launcher_of(self)->module);
  Py_CLEAR(launcher_of(self)->owner);
  Py_CLEAR(launcher_of(self)->allocate);
  return 0;
}

void launcher_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete launcher_of(self)->state;
  launcher_clear(self);
  release_instance(self);
}

PyMemberDef launcher_members[] = {
    {"owner", T_OBJECT, offsetof(LauncherObject, owner), READONLY, "what Dispatcher.run returns for this kernel"},
    {"module", T_OBJECT, offsetof(LauncherObject, module), READONLY, "the loaded kernel"},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot launcher_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(launcher_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(launcher_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(launcher_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(launcher_clear)},
    {Py_tp_members, launcher_members},
    {Py_tp_doc,
     const_cast<char*>("GpuLauncher(module: GpuKernel, owner: object, threads: int, blocks=1, cluster=(1, 1, 1), shared=0, cooperative=False,\n"
                       "            overlap=False, scratch=0, alignment=1, allocate=None, maps=b'')\n\n"
                       "A loaded kernel as the dispatcher launches it. A program is so many blocks of threads, along the first dimension\n"
                       "of the grid. A kernel with scratch gets, as its last argument, memory of scratch bytes for each program from\n"
                       "allocate(bytes, alignment, stream). maps: see GpuDriver.launch.")},
    {0, nullptr}};

PyType_Spec launcher_spec = {"triton._C.libtriton.GpuLauncher", sizeof(LauncherObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                             launcher_slots};

// Memory for the kernel's programs; it is held until the launch is queued, as stream-ordered allocators need.
Ref allocate_scratch(const LauncherObject* launcher, const int64_t* grid, void* stream, uint64_t* address) {
  auto programs = static_cast<unsigned long long>(grid[0]) * static_cast<unsigned long long>(grid[1]) * static_cast<unsigned long long>(grid[2]);
  Ref buffer(PyObject_CallFunction(launcher->allocate, "KKK", programs * launcher->state->scratch, launcher->state->alignment,
                                   static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(stream))));
  if (!buffer) return nullptr;
  Ref pointer(PyObject_CallMethod(buffer.get(), "data_ptr", nullptr));
  *address = pointer ? PyLong_AsUnsignedLongLong(pointer.get()) : 0;
  return PyErr_Occurred() ? nullptr : std::move(buffer);
}

}  // namespace

bool is_gpu_launcher(PyObject* object) { return Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(launcher_type); }

PyObject* gpu_launcher_owner(PyObject* launcher) { return share(launcher_of(launcher)->owner).release(); }

gpu::Driver* gpu_launcher_driver(PyObject* launcher) { return launcher_of(launcher)->driver; }

int gpu_launcher_device(PyObject* launcher) { return launcher_of(launcher)->kernel->device; }

bool current_gpu(gpu::Driver* driver, int* device) {
  std::string no_driver;  // whoever launches learns of it
  if (!driver) {
    if (!torch.settled) look_for_torch();
    driver = torch.driver ? torch.driver : gpu::cuda()->device_count(&no_driver) > 0 ? gpu::cuda() : gpu::hip();
  }
  if (torch_owns(driver)) {
    long long number = 0;
    if (!read_number(Ref(PyObject_CallFunctionObjArgs(torch.device, nullptr)), &number)) return false;
    *device = static_cast<int>(number);
    return true;
  }
  *device = driver->current_device(&no_driver);
  if (*device < 0) *device = 0;
  return true;
}

bool gpu_grid(const int64_t* programs, unsigned blocks, unsigned* grid) {
  const int64_t limit = kGpuGrid[0] / blocks;
  if (programs[0] > limit) {
    PyErr_Format(PyExc_ValueError, "grid dimension 0 is %lld; it must lie between 0 and %lld for programs of %u blocks each",
                 static_cast<long long>(programs[0]), static_cast<long long>(limit), blocks);
    return false;
  }
  for (int i = 0; i < 3; ++i) grid[i] = static_cast<unsigned>(programs[i]);
  grid[0] *= blocks;
  return true;
}

bool gpu_launch(PyObject* self, const int64_t* grid, PyObject* stream, int gpu, std::vector<uint64_t>* slots) {
  const LauncherObject* launcher = launcher_of(self);
  const gpu::Kernel& kernel = *launcher->kernel;
  if (gpu >= 0 && gpu != kernel.device) {
    PyErr_Format(PyExc_ValueError, "the kernel is loaded on device 'cuda:%d', its arguments are on 'cuda:%d'", kernel.device, gpu);
    return false;
  }
  gpu::Launch launch;
  if (!gpu_grid(grid, launcher->state->shape.blocks, launch.grid)) return false;
  if (stream) {
    launch.stream = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred()) return false;
  } else if (!current_stream(launcher->driver, kernel.device, &launch.stream)) {
    return false;
  }
  Ref buffer;
  if (launcher->allocate) {
    slots->push_back(0);
    buffer = allocate_scratch(launcher, grid, launch.stream, &slots->back());
    if (!buffer) return false;
  }
  launch.shape = launcher->state->shape;
  launch.function = kernel.function;
  launch.context = kernel.context;
  launch.device = kernel.device;
  launch.args = slots->data();
  launch.count = slots->size();
  launch.maps = launcher->state->maps.data();
  launch.map_count = launcher->state->maps.size();
  std::string error;
  bool good = false;
  {
    WithoutGil released;  // a full queue makes the driver wait
    good = launcher->driver->launch(launch, &error);
  }
  if (!good) raise_gpu_error(error);
  return good;
}

bool add_gpu_launcher(PyObject* module) {
  launcher_type = PyType_FromSpec(&launcher_spec);
  return launcher_type && PyModule_AddObjectRef(module, "GpuLauncher", launcher_type) == 0;
}

}  // namespace triton
