#include "cuda_launch.h"

#include <structmember.h>

#include <memory>
#include <optional>
#include <string>

#include "cuda.h"

namespace triton {
namespace {

PyObject* launcher_type = nullptr;

// ---- torch: owns the current device and stream once it uses CUDA ----

struct Torch {
  PyObject* device = nullptr;  // torch._C._cuda_getDevice()
  PyObject* stream = nullptr;  // torch._C._cuda_getCurrentRawStream(device)
  bool settled = false;        // it is known for good whether torch takes part
};
Torch torch;  // guarded by the GIL

PyObject* attribute(PyObject* object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object, name);
  if (!value) PyErr_Clear();
  return value;
}

// Asked at each launch until torch uses CUDA, without importing anything.
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
    torch.settled = true;  // built without CUDA
    return;
  }
  Ref asked(PyObject_CallMethod(cuda.get(), "is_initialized", nullptr));
  if (!asked) return PyErr_Clear();
  if (asked.get() != Py_True) return;
  torch.device = device.release();
  torch.stream = stream.release();
  torch.settled = true;
}

bool read_number(Ref object, long long* out) {
  if (!object) return false;
  *out = PyLong_AsLongLong(object.get());
  return !(*out == -1 && PyErr_Occurred());
}

// The stream that launches on a device go to when none is named.
bool current_stream(int device, void** out) {
  if (!torch.settled) look_for_torch();
  *out = nullptr;
  if (!torch.stream) return true;
  Ref number(PyLong_FromLong(device));
  long long stream = 0;
  if (!number || !read_number(Ref(PyObject_CallFunctionObjArgs(torch.stream, number.get(), nullptr)), &stream)) return false;
  *out = reinterpret_cast<void*>(static_cast<uintptr_t>(stream));
  return true;
}

// ---- CudaLauncher ----

struct LauncherObject {
  PyObject_HEAD
  PyObject* module;    // the CudaKernel
  PyObject* owner;
  PyObject* allocate;  // allocate(bytes, alignment, stream) -> object with data_ptr(); null: the kernel asks for no memory
  unsigned threads;
  unsigned blocks;  // of a program: grids count programs
  unsigned cluster[3];
  unsigned shared;
  int cooperative;
  int overlap;
  unsigned long long scratch;    // bytes of global memory a program asks for
  unsigned long long alignment;  // of the first program's
  std::vector<cuda::MapPlan>* maps;
};

LauncherObject* launcher_of(PyObject* self) { return reinterpret_cast<LauncherObject*>(self); }

PyObject* launcher_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"module", "owner", "threads", "cluster", "shared", "cooperative", "overlap", "scratch", "alignment",
                                "allocate", "maps", "blocks", nullptr};
  PyObject *module, *owner, *allocate_with = Py_None, *maps = nullptr;
  LauncherObject read = {};
  read.cluster[0] = read.cluster[1] = read.cluster[2] = 1;
  read.alignment = 1;
  read.blocks = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOI|(III)IppKKOSI:CudaLauncher", const_cast<char**>(names), &module, &owner, &read.threads,
                                   &read.cluster[0], &read.cluster[1], &read.cluster[2], &read.shared, &read.cooperative, &read.overlap,
                                   &read.scratch, &read.alignment, &allocate_with, &maps, &read.blocks))
    return nullptr;
  const cuda::Kernel* kernel = cuda_kernel_of(module);
  if (!kernel) return nullptr;
  if (read.threads == 0 || read.blocks == 0) return raise(PyExc_ValueError, read.blocks == 0 ? "blocks is 0" : "threads is 0");
  if (read.scratch != 0 && !PyCallable_Check(allocate_with)) return raise(PyExc_TypeError, "a kernel with scratch needs allocate");
  auto plans = std::make_unique<std::vector<cuda::MapPlan>>();
  if (maps && !read_map_plans(maps, plans.get())) return nullptr;
  std::string error;
  if (read.cluster[0] * read.cluster[1] * read.cluster[2] > 8 && !cuda::allow_large_clusters(*kernel, &error)) return raise_cuda_error(error);
  PyObject* self = allocate(reinterpret_cast<PyObject*>(type));
  if (!self) return nullptr;
  LauncherObject* launcher = launcher_of(self);
  launcher->threads = read.threads;
  launcher->blocks = read.blocks;
  for (int i = 0; i < 3; ++i) launcher->cluster[i] = read.cluster[i];
  launcher->shared = read.shared;
  launcher->cooperative = read.cooperative;
  launcher->overlap = read.overlap;
  launcher->scratch = read.scratch;
  launcher->alignment = read.alignment;
  launcher->module = share(module).release();
  launcher->owner = share(owner).release();
  launcher->allocate = read.scratch != 0 ? share(allocate_with).release() : nullptr;
  launcher->maps = plans.release();
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
  delete launcher_of(self)->maps;
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
     const_cast<char*>("CudaLauncher(module: CudaKernel, owner: object, threads: int, cluster=(1, 1, 1), shared=0, cooperative=False,\n"
                       "             overlap=False, scratch=0, alignment=1, allocate=None, maps=b'', blocks=1)\n\n"
                       "A loaded kernel as the dispatcher launches it. A kernel with scratch gets, as its last argument, memory of\n"
                       "scratch bytes for each program from allocate(bytes, alignment, stream). maps: see cuda_launch. A program is so many\n"
                       "blocks, along the first dimension of the grid.")},
    {0, nullptr}};

PyType_Spec launcher_spec = {"triton._C.libtriton.CudaLauncher", sizeof(LauncherObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                             launcher_slots};

// Memory for the kernel's programs; it is held until the launch is queued, as stream-ordered allocators need.
Ref allocate_scratch(const LauncherObject* launcher, const int64_t* grid, void* stream, uint64_t* address) {
  auto programs = static_cast<unsigned long long>(grid[0]) * static_cast<unsigned long long>(grid[1]) * static_cast<unsigned long long>(grid[2]);
  Ref buffer(PyObject_CallFunction(launcher->allocate, "KKK", programs * launcher->scratch, launcher->alignment,
                                   static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(stream))));
  if (!buffer) return nullptr;
  Ref pointer(PyObject_CallMethod(buffer.get(), "data_ptr", nullptr));
  *address = pointer ? PyLong_AsUnsignedLongLong(pointer.get()) : 0;
  return PyErr_Occurred() ? nullptr : std::move(buffer);
}

}  // namespace

bool is_cuda_launcher(PyObject* object) { return Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(launcher_type); }

PyObject* cuda_launcher_owner(PyObject* launcher) { return share(launcher_of(launcher)->owner).release(); }

bool cuda_current_gpu(int* device) {
  if (!torch.settled) look_for_torch();
  if (torch.device) {
    long long number = 0;
    if (!read_number(Ref(PyObject_CallFunctionObjArgs(torch.device, nullptr)), &number)) return false;
    *device = static_cast<int>(number);
    return true;
  }
  std::string no_driver;  // whoever launches learns of it
  *device = cuda::current_device(&no_driver);
  if (*device < 0) *device = 0;
  return true;
}

bool cuda_launch(PyObject* self, const int64_t* grid, PyObject* stream, int gpu, std::vector<uint64_t>* slots) {
  const LauncherObject* launcher = launcher_of(self);
  const cuda::Kernel& kernel = *cuda_kernel_of(launcher->module);
  if (gpu >= 0 && gpu != kernel.device) {
    PyErr_Format(PyExc_ValueError, "the kernel is loaded on device 'cuda:%d', its arguments are on 'cuda:%d'", kernel.device, gpu);
    return false;
  }
  cuda::Launch launch;
  if (stream) {
    launch.stream = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred()) return false;
  } else if (!current_stream(kernel.device, &launch.stream)) {
    return false;
  }
  Ref buffer;
  if (launcher->allocate) {
    slots->push_back(0);
    buffer = allocate_scratch(launcher, grid, launch.stream, &slots->back());
    if (!buffer) return false;
  }
  launch.function = kernel.function;
  launch.context = kernel.context;
  launch.device = kernel.device;
  if (grid[0] > kCudaGrid[0] / launcher->blocks) {
    PyErr_Format(PyExc_ValueError, "grid dimension 0 is %lld; it must lie between 0 and %lld for programs of %u blocks each",
                 static_cast<long long>(grid[0]), static_cast<long long>(kCudaGrid[0] / launcher->blocks), launcher->blocks);
    return false;
  }
  for (int i = 0; i < 3; ++i) launch.grid[i] = static_cast<unsigned>(grid[i]);
  launch.grid[0] *= launcher->blocks;
  for (int i = 0; i < 3; ++i) launch.cluster[i] = launcher->cluster[i];
  launch.threads = launcher->threads;
  launch.shared = launcher->shared;
  launch.cooperative = launcher->cooperative != 0;
  launch.overlap = launcher->overlap != 0;
  launch.args = slots->data();
  launch.count = slots->size();
  launch.maps = launcher->maps->data();
  launch.map_count = launcher->maps->size();
  std::string error;
  bool good = false;
  {
    WithoutGil released;  // a full queue makes the driver wait
    good = cuda::launch(launch, &error);
  }
  if (!good) raise_cuda_error(error);
  return good;
}

bool add_cuda_launcher(PyObject* module) {
  launcher_type = PyType_FromSpec(&launcher_spec);
  return launcher_type && PyModule_AddObjectRef(module, "CudaLauncher", launcher_type) == 0;
}

}  // namespace triton
