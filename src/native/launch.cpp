// The launch path: binds a call's arguments to parameters, finds the compiled kernel for them and runs it, without
// Python code.
#include "python_api.h"

#include <structmember.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "arguments.h"
#include "arrays.h"
#include "gpu_launch.h"

namespace triton {
namespace {

// Launches on more bytes than this write past the caches.
uint64_t streaming_bytes = uint64_t{16} << 20;

PyObject* kernel_type = nullptr;
PyObject* dispatcher_type = nullptr;
PyObject* bound_type = nullptr;

// ---- CpuKernel: a compiled kernel that can be launched from here ----

struct KernelObject {
  PyObject_HEAD KernelFunction function;
  size_t scratch;
  unsigned threads;
  bool waits;
  PyObject* owner;
};

PyObject* kernel_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"fn", "scratch", "owner", "threads", "waits", nullptr};
  PyObject *function, *owner;
  Py_ssize_t scratch;
  unsigned int threads = 0;
  int waits = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OnO|Ip:CpuKernel", const_cast<char**>(names), &function, &scratch,
                                   &owner, &threads, &waits))
    return nullptr;
  void* address = PyLong_AsVoidPtr(function);
  if (!address) return PyErr_Occurred() ? nullptr : raise(PyExc_ValueError, "fn is 0");
  if (scratch < 0) return raise(PyExc_ValueError, "scratch is negative");
  PyObject* self = allocate(reinterpret_cast<PyObject*>(type));
  if (!self) return nullptr;
  auto* kernel = reinterpret_cast<KernelObject*>(self);
  kernel->function = reinterpret_cast<KernelFunction>(address);
  kernel->scratch = static_cast<size_t>(scratch);
  kernel->threads = threads;
  kernel->waits = waits != 0;
  kernel->owner = share(owner).release();
  return self;
}

int kernel_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<KernelObject*>(self)->owner);
  return 0;
}

int kernel_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<KernelObject*>(self)->owner);
  return 0;
}

void kernel_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  kernel_clear(self);
  release_instance(self);
}

PyMemberDef kernel_members[] = {
    {"owner", T_OBJECT, offsetof(KernelObject, owner), READONLY, "what Dispatcher.run returns for this kernel"},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot kernel_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(kernel_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(kernel_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(kernel_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(kernel_clear)},
    {Py_tp_members, kernel_members},
    {Py_tp_doc,
     const_cast<char*>("CpuKernel(fn: int, scratch: int, owner: object, threads: int = 0, waits: bool = False)\n\nA kernel "
                       "in this process: its address, scratch bytes per thread, the object that keeps its code alive, "
                       "and whether its programs may wait for one another.")},
    {0, nullptr}};

PyType_Spec kernel_spec = {"triton._C.libtriton.CpuKernel", sizeof(KernelObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, kernel_slots};

// ---- Dispatcher ----

struct Prepared;

struct Dispatcher {
  Dispatcher();
  ~Dispatcher();
  std::string name;
  gpu::Driver* gpu = nullptr;  // of the GPUs that calls without arrays go to; null: they run on the CPU
  std::vector<Parameter> parameters;
  std::vector<Ref> option_names;  // met so far, so that known ones are recognised by identity
  Ref on_miss;
  Ref interned;  // see append_constant
  std::unordered_map<std::string, Ref> kernels;
  std::string last_key;  // of the last launch, and its kernel (borrowed of kernels): tried first; empty: none
  PyObject* last = nullptr;
  std::unique_ptr<Prepared> spare;  // of an earlier call, for its memory
};

struct DispatcherObject {
  PyObject_HEAD Dispatcher* state;
};

Dispatcher& state_of(PyObject* self) { return *reinterpret_cast<DispatcherObject*>(self)->state; }

// A call's arguments, by parameter, and its options.
struct BoundCall {
  std::vector<PyObject*> values;                         // borrowed
  std::vector<std::pair<PyObject*, PyObject*>> options;  // borrowed
};

int parameter_of(const Dispatcher& dispatcher, PyObject* name) {
  const auto& parameters = dispatcher.parameters;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].name.get() == name) return static_cast<int>(i);
  for (const Ref& option : dispatcher.option_names)
    if (option.get() == name) return -1;
  for (size_t i = 0; i < parameters.size(); ++i)
    if (PyUnicode_Compare(parameters[i].name.get(), name) == 0) return static_cast<int>(i);
  return -1;
}

PyObject* fail_binding(const Dispatcher& dispatcher, const std::string& what) {
  return raise(PyExc_TypeError, dispatcher.name + "() " + what);
}

bool report_missing(const Dispatcher& dispatcher, const BoundCall& call) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < call.values.size(); ++i) {
    std::string name;
    if (call.values[i]) continue;
    if (!to_string(dispatcher.parameters[i].name.get(), &name)) return false;
    missing.push_back("'" + name + "'");
  }
  std::string list = missing[0];
  for (size_t i = 1; i < missing.size(); ++i)
    list += (i + 1 < missing.size() ? ", " : missing.size() > 2 ? ", and " : " and ") + missing[i];
  const char* noun = missing.size() == 1 ? "argument" : "arguments";
  fail_binding(dispatcher, "missing " + std::to_string(missing.size()) + " required positional " + noun + ": " + list);
  return false;
}

bool bind(Dispatcher& dispatcher, PyObject* args, PyObject* kwargs, BoundCall* call) {
  const size_t count = dispatcher.parameters.size();
  const Py_ssize_t given = PyTuple_Size(args);
  if (given < 0) return false;
  if (static_cast<size_t>(given) > count) {
    std::string takes = std::to_string(count) + " positional argument" + (count == 1 ? "" : "s");
    fail_binding(dispatcher,
                 "takes " + takes + " but " + std::to_string(given) + (given == 1 ? " was given" : " were given"));
    return false;
  }
  call->values.assign(count, nullptr);
  for (Py_ssize_t i = 0; i < given; ++i) call->values[static_cast<size_t>(i)] = PyTuple_GetItem(args, i);
  PyObject *name, *value;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &name, &value)) {
    int place = parameter_of(dispatcher, name);
    if (place < 0) {
      call->options.emplace_back(name, value);
      bool known = std::any_of(dispatcher.option_names.begin(), dispatcher.option_names.end(),
                               [&](const Ref& o) { return o.get() == name; });
      if (!known && dispatcher.option_names.size() < 32) dispatcher.option_names.push_back(share(name));
      continue;
    }
    PyObject*& slot = call->values[static_cast<size_t>(place)];
    if (slot) {
      std::string text;
      if (to_string(name, &text)) fail_binding(dispatcher, "got multiple values for argument '" + text + "'");
      return false;
    }
    slot = value;
  }
  bool complete = true;
  for (size_t i = 0; i < count; ++i) {
    if (!call->values[i]) call->values[i] = dispatcher.parameters[i].fallback.get();
    complete = complete && call->values[i];
  }
  return complete || report_missing(dispatcher, *call);
}

bool make_key(Dispatcher& dispatcher, const BoundCall& call, const Arguments& arguments, bool overlap, int gpu,
              std::string* key) {
  key->reserve(256);
  key->push_back(overlap ? '1' : '0');
  key->push_back(static_cast<char>(gpu));
  if (!arguments.append_key(key, dispatcher.interned.get())) return false;
  for (auto [name, value] : call.options) {
    key->push_back(';');
    if (!append_constant(name, key, dispatcher.interned.get()) ||
        !append_constant(value, key, dispatcher.interned.get()))
      return false;
  }
  return true;
}

// Everything about one call that a kernel depends on.
struct Prepared {
  explicit Prepared(Dispatcher& dispatcher) : arguments(dispatcher.parameters) {}
  BoundCall call;
  Arguments arguments;
  bool overlap = false;
  int gpu = Arguments::kHost;  // on which the kernel runs; negative: on the CPU
  std::string key;
  mutable std::vector<uint64_t> slots;

  void reset() {
    call.values.clear();
    call.options.clear();
    arguments.clear();
    overlap = false;
    gpu = Arguments::kHost;
    key.clear();
    slots.clear();
  }

  bool prepare(Dispatcher& dispatcher, PyObject* args, PyObject* kwargs) {
    if (!bind(dispatcher, args, kwargs, &call) || !arguments.classify(call.values.data())) return false;
    overlap = arguments.overlap();
    gpu = arguments.gpu();
    const bool ask = gpu == Arguments::kSomeGpu || (gpu == Arguments::kNowhere && dispatcher.gpu);
    if (ask && !current_gpu(dispatcher.gpu, &gpu)) return false;
    return make_key(dispatcher, call, arguments, overlap, gpu, &key);
  }

  PyObject* bound() const {
    Ref result(PyTuple_New(static_cast<Py_ssize_t>(call.values.size())));
    for (size_t i = 0; result && i < call.values.size(); ++i)
      if (PyTuple_SetItem(result.get(), static_cast<Py_ssize_t>(i), share(call.values[i]).release()) < 0)
        return nullptr;
    return result.release();
  }

  PyObject* options() const {
    Ref result(PyDict_New());
    for (auto [name, value] : call.options)
      if (!result || PyDict_SetItem(result.get(), name, value) < 0) return nullptr;
    return result.release();
  }

  // (key, bound, classes, options, overlap)
  PyObject* describe() const {
    Ref key_bytes(PyBytes_FromStringAndSize(key.data(), static_cast<Py_ssize_t>(key.size())));
    Ref bound_values(bound()), classes(arguments.classes()), option_values(options());
    if (!key_bytes || !bound_values || !classes || !option_values) return nullptr;
    return PyTuple_Pack(5, key_bytes.get(), bound_values.get(), classes.get(), option_values.get(),
                        overlap ? Py_True : Py_False);
  }
};

Dispatcher::Dispatcher() = default;
Dispatcher::~Dispatcher() = default;

// A call's Prepared, in memory of an earlier one where that is free. Calls may run side by side, and within each other.
class Borrowed {
 public:
  explicit Borrowed(PyObject* dispatcher) : dispatcher_(share(dispatcher)), prepared_(std::move(state_of(dispatcher).spare)) {
    if (!prepared_) prepared_ = std::make_unique<Prepared>(state_of(dispatcher));
  }
  ~Borrowed() {
    prepared_->reset();
    if (reinterpret_cast<DispatcherObject*>(dispatcher_.get())->state) state_of(dispatcher_.get()).spare = std::move(prepared_);
  }
  Prepared& operator*() { return *prepared_; }

 private:
  Ref dispatcher_;
  std::unique_ptr<Prepared> prepared_;
};

// ---- grids ----

constexpr int64_t kCpuGrid[3] = {2147483647, 2147483647, 2147483647};

bool read_dimension(PyObject* object, int dimension, int64_t limit, int64_t* out) {
  Ref value(PyLong_CheckExact(object) ? share(object).release() : unwrap_constexpr(object));
  Ref index(value ? PyNumber_Index(value.get()) : nullptr);
  if (!index) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "grid dimension %d should be an integer, got %R", dimension, object);
    return false;
  }
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow || *out < 0 || *out > limit) {
    PyErr_Format(PyExc_ValueError, "grid dimension %d is %S; it must lie between 0 and %lld", dimension, index.get(),
                 static_cast<long long>(limit));
    return false;
  }
  return true;
}

bool read_grid(PyObject* grid, const int64_t* limits, int64_t* sizes) {
  sizes[0] = sizes[1] = sizes[2] = 1;
  if (!PyTuple_Check(grid) && !PyList_Check(grid)) return read_dimension(grid, 0, limits[0], sizes);
  Py_ssize_t count = PySequence_Size(grid);
  if (count < 1 || count > 3) {
    PyErr_Format(PyExc_ValueError, "a grid has 1 to 3 dimensions, got %zd: %R", count, grid);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref item(PySequence_GetItem(grid, i));
    if (!item || !read_dimension(item.get(), static_cast<int>(i), limits[i], sizes + i)) return false;
  }
  return true;
}

// A grid that is a function gets the arguments and options by name.
Ref call_grid(const Dispatcher& dispatcher, PyObject* grid, const BoundCall& call) {
  Ref meta(PyDict_New());
  for (size_t i = 0; meta && i < call.values.size(); ++i)
    if (PyDict_SetItem(meta.get(), dispatcher.parameters[i].name.get(), call.values[i]) < 0) return nullptr;
  for (auto [name, value] : call.options)
    if (!meta || PyDict_SetItem(meta.get(), name, value) < 0) return nullptr;
  return Ref(meta ? PyObject_CallFunctionObjArgs(grid, meta.get(), nullptr) : nullptr);
}

// ---- running ----

bool is_cpu_kernel(PyObject* object) { return Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(kernel_type); }

bool is_kernel(PyObject* object) { return is_cpu_kernel(object) || is_gpu_launcher(object); }

// The kernel for a prepared call, asking on_miss when there is none yet. New reference. on_miss gets the grid too, for
// calls that it launches itself.
Ref find_kernel(Dispatcher& dispatcher, const Prepared& prepared, PyObject* grid) {
  if (dispatcher.last && dispatcher.last_key == prepared.key) return share(dispatcher.last);
  auto found = dispatcher.kernels.find(prepared.key);
  if (found != dispatcher.kernels.end()) {
    dispatcher.last_key = prepared.key;
    dispatcher.last = found->second.get();
    return share(dispatcher.last);
  }
  Ref described(prepared.describe());
  Ref last(described ? PyTuple_Pack(1, grid) : nullptr);
  Ref arguments(last ? PySequence_Concat(described.get(), last.get()) : nullptr);
  Ref on_miss = share(dispatcher.on_miss.get());
  Ref kernel(arguments ? PyObject_CallObject(on_miss.get(), arguments.get()) : nullptr);
  if (kernel && is_kernel(kernel.get())) {
    dispatcher.last = nullptr;
    dispatcher.kernels[prepared.key] = share(kernel.get());
  }
  return kernel;
}

bool launch_on_cpu(const KernelObject* kernel, const Dispatcher& dispatcher, const Prepared& prepared,
                   const int64_t* sizes) {
  if (const Leaf* foreign = prepared.arguments.foreign()) {
    std::string device = device_name(foreign->device);
    fail_binding(dispatcher, "runs on the CPU, but an argument is in memory of '" + device + "'");
    return false;
  }
  LaunchRequest request = {};
  std::string error;
  if (!grid_total(sizes, &request.total, &error)) return raise(PyExc_ValueError, error), false;
  if (request.total == 0) return true;
  std::vector<uint64_t>& slots = prepared.slots;
  prepared.arguments.fill_slots(&slots);
  request.function = kernel->function;
  request.args = slots.data();
  for (int i = 0; i < 3; ++i) request.grid[i] = static_cast<int32_t>(sizes[i]);
  request.scratch_bytes = kernel->scratch;
  request.threads = kernel->threads;
  request.waits = kernel->waits;
  request.streams = prepared.arguments.footprint() > streaming_bytes;
  return launch_from_python(request, kernel->owner);
}

// Host memory is within reach of a GPU only where it is pinned.
bool check_host_pointers(PyObject* launcher, const Dispatcher& dispatcher, const Prepared& prepared) {
  for (const Leaf& leaf : prepared.arguments.leaves()) {
    if (leaf.kind != LeafKind::pointer || leaf.device != 0 || leaf.address || gpu_launcher_driver(launcher)->host_pointer_mapped(leaf.bits))
      continue;
    PyErr_Format(PyExc_ValueError, "argument %R is on device 'cpu', the launch needs 'cuda:%d'",
                 dispatcher.parameters[leaf.parameter].name.get(), gpu_launcher_device(launcher));
    return false;
  }
  return true;
}

bool launch_on_gpu(PyObject* launcher, const Dispatcher& dispatcher, const Prepared& prepared, const int64_t* sizes,
                   PyObject* stream) {
  if (!check_host_pointers(launcher, dispatcher, prepared)) return false;
  if (sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0) return true;
  std::vector<uint64_t>& slots = prepared.slots;
  prepared.arguments.fill_slots(&slots);
  return gpu_launch(launcher, sizes, stream, prepared.gpu, &slots);
}

PyObject* launch_kernel(PyObject* kernel, const Dispatcher& dispatcher, const Prepared& prepared, PyObject* grid,
                        PyObject* stream) {
  Ref computed;
  if (!PyTuple_Check(grid) && PyCallable_Check(grid)) {
    computed = call_grid(dispatcher, grid, prepared.call);
    if (!computed) return nullptr;
    grid = computed.get();
  }
  int64_t sizes[3];
  if (is_gpu_launcher(kernel)) {
    if (!read_grid(grid, kGpuGrid, sizes) || !launch_on_gpu(kernel, dispatcher, prepared, sizes, stream)) return nullptr;
    return gpu_launcher_owner(kernel);
  }
  auto* code = reinterpret_cast<KernelObject*>(kernel);
  if (!read_grid(grid, kCpuGrid, sizes) || !launch_on_cpu(code, dispatcher, prepared, sizes)) return nullptr;
  return share(code->owner).release();
}

// stream: null for the current one.
PyObject* run(PyObject* self, PyObject* grid, PyObject* args, PyObject* kwargs, PyObject* stream) {
  Dispatcher& dispatcher = state_of(self);
  Borrowed borrowed(self);
  Prepared& prepared = *borrowed;
  if (!prepared.prepare(dispatcher, args, kwargs)) return nullptr;
  Ref kernel = find_kernel(dispatcher, prepared, grid);
  if (!kernel) return nullptr;
  if (!is_kernel(kernel.get())) return kernel.release();  // on_miss dealt with it
  return launch_kernel(kernel.get(), dispatcher, prepared, grid, stream);
}

// ---- Dispatcher: the Python type ----

bool read_parameter(PyObject* name, PyObject* flags, PyObject* annotation, PyObject* fallback, PyObject* missing,
                    Dispatcher* out) {
  Parameter parameter;
  if (!PyUnicode_Check(name)) return raise(PyExc_TypeError, "a parameter's name must be a str"), false;
  PyObject* interned_name = share(name).release();
  PyUnicode_InternInPlace(&interned_name);
  parameter.name.reset(interned_name);
  parameter.flags = static_cast<unsigned>(PyLong_AsUnsignedLong(flags));
  if (PyErr_Occurred()) return false;
  if (annotation != Py_None) {
    std::string text;
    if (!to_string(annotation, &text)) return false;
    parameter.annotated_pointer = !text.empty() && text[0] == '*';
    if (parameter.annotated_pointer) {
      bool is_const = text.size() > 1 && text[1] == 'k';
      if (is_const) parameter.flags |= kConstPointer;
      text = text.substr(is_const ? 2 : 1);
    }
    parameter.annotation = type_number(text);
    if (!parameter.annotated_pointer && parameter.annotation >= kScalarCount)
      return raise(PyExc_ValueError, "'" + text + "' is not the type of a scalar"), false;
  }
  if (fallback != missing) parameter.fallback = share(fallback);
  out->parameters.push_back(std::move(parameter));
  return true;
}

PyObject* dispatcher_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"name", "names", "flags", "types", "defaults", "on_miss", "missing", "gpu", nullptr};
  PyObject *name, *parameter_names, *flags, *types, *defaults, *on_miss, *missing = Py_Ellipsis, *gpu = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O!O!O!O|OO:Dispatcher", const_cast<char**>(names), &name,
                                   &PyTuple_Type, &parameter_names, &PyTuple_Type, &flags, &PyTuple_Type, &types,
                                   &PyTuple_Type, &defaults, &on_miss, &missing, &gpu))
    return nullptr;
  Py_ssize_t count = PyTuple_Size(parameter_names);
  if (PyTuple_Size(flags) != count || PyTuple_Size(types) != count || PyTuple_Size(defaults) != count)
    return raise(PyExc_ValueError, "names, flags, types and defaults must be of one length");
  auto state = std::make_unique<Dispatcher>();
  if (gpu != Py_None && !(state->gpu = gpu_driver_of(gpu))) return nullptr;
  if (!to_string(name, &state->name)) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!read_parameter(PyTuple_GetItem(parameter_names, i), PyTuple_GetItem(flags, i), PyTuple_GetItem(types, i),
                        PyTuple_GetItem(defaults, i), missing, state.get()))
      return nullptr;
  state->on_miss = share(on_miss);
  state->interned.reset(PyDict_New());
  if (!state->interned) return nullptr;
  PyObject* self = allocate(reinterpret_cast<PyObject*>(type));
  if (self) reinterpret_cast<DispatcherObject*>(self)->state = state.release();
  return self;
}

int dispatcher_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Dispatcher* state = reinterpret_cast<DispatcherObject*>(self)->state;
  if (!state) return 0;
  Py_VISIT(state->on_miss.get());
  Py_VISIT(state->interned.get());
  for (const Parameter& parameter : state->parameters) Py_VISIT(parameter.fallback.get());
  for (const auto& entry : state->kernels) Py_VISIT(entry.second.get());
  return 0;
}

int dispatcher_clear(PyObject* self) {
  Dispatcher* state = reinterpret_cast<DispatcherObject*>(self)->state;
  reinterpret_cast<DispatcherObject*>(self)->state = nullptr;
  delete state;
  return 0;
}

void dispatcher_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  dispatcher_clear(self);
  release_instance(self);
}

PyObject* dispatcher_run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count < 3 || count > 4 || !PyTuple_Check(args[1]) || !PyDict_Check(args[2]))
    return raise(PyExc_TypeError, "run(grid, args: tuple, kwargs: dict, stream: int | None = None)");
  return run(self, args[0], args[1], args[2], count == 4 && args[3] != Py_None ? args[3] : nullptr);
}

bool prepare_from_python(PyObject* self, PyObject* args, const char* format, Prepared* prepared) {
  PyObject *positional, *keywords;
  if (!PyArg_ParseTuple(args, format, &PyTuple_Type, &positional, &PyDict_Type, &keywords)) return false;
  return prepared->prepare(state_of(self), positional, keywords);
}

PyObject* dispatcher_classify(PyObject* self, PyObject* args) {
  Prepared prepared(state_of(self));
  return prepare_from_python(self, args, "O!O!:classify", &prepared) ? prepared.describe() : nullptr;
}

PyObject* dispatcher_pack(PyObject* self, PyObject* args) {
  Prepared prepared(state_of(self));
  if (!prepare_from_python(self, args, "O!O!:pack", &prepared)) return nullptr;
  std::vector<uint64_t> slots;
  prepared.arguments.fill_slots(&slots);
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(slots.data()),
                                   static_cast<Py_ssize_t>(slots.size() * sizeof(uint64_t)));
}

PyObject* dispatcher_insert(PyObject* self, PyObject* args) {
  PyObject *key, *kernel;
  if (!PyArg_ParseTuple(args, "SO:insert", &key, &kernel)) return nullptr;
  if (!is_kernel(kernel)) return raise(PyExc_TypeError, "insert() takes a CpuKernel or a GpuLauncher");
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(key, &data, &size) < 0) return nullptr;
  state_of(self).last = nullptr;
  state_of(self).kernels[std::string(data, static_cast<size_t>(size))] = share(kernel);
  Py_RETURN_NONE;
}

PyObject* dispatcher_get(PyObject* self, PyObject* key) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(key, &data, &size) < 0) return nullptr;
  auto& kernels = state_of(self).kernels;
  auto found = kernels.find(std::string(data, static_cast<size_t>(size)));
  return share(found == kernels.end() ? Py_None : found->second.get()).release();
}

PyObject* dispatcher_clear_kernels(PyObject* self, PyObject*) {
  std::unordered_map<std::string, Ref> dropped;  // released after the table is in order again
  state_of(self).last = nullptr;
  dropped.swap(state_of(self).kernels);
  Py_RETURN_NONE;
}

Py_ssize_t dispatcher_length(PyObject* self) { return static_cast<Py_ssize_t>(state_of(self).kernels.size()); }

// ---- kernel[grid]: what launches and a grid, waiting for arguments ----

struct BoundObject {
  PyObject_HEAD PyObject* dispatcher;  // or a function that gives one at each call, or None where Python must launch
  PyObject* otherwise;                 // then called as otherwise(grid)(*args, **kwargs)
  PyObject* grid;
};

PyObject* bind_grid(PyObject* dispatcher, PyObject* otherwise, PyObject* grid) {
  PyObject* object = allocate(bound_type);
  if (!object) return nullptr;
  auto* bound = reinterpret_cast<BoundObject*>(object);
  bound->dispatcher = share(dispatcher).release();
  bound->otherwise = otherwise ? share(otherwise).release() : nullptr;
  bound->grid = share(grid).release();
  return object;
}

PyObject* dispatcher_getitem(PyObject* self, PyObject* grid) { return bind_grid(self, nullptr, grid); }

PyObject* bound_new(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject *find, *otherwise, *grid;
  if (!PyArg_UnpackTuple(args, "BoundLaunch", 3, 3, &find, &otherwise, &grid)) return nullptr;
  return bind_grid(find, otherwise, grid);
}

PyObject* bound_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto* bound = reinterpret_cast<BoundObject*>(self);
  if (!bound->otherwise) return run(bound->dispatcher, bound->grid, args, kwargs, nullptr);
  Ref found(PyObject_CallObject(bound->dispatcher, nullptr));
  if (!found) return nullptr;
  if (Py_TYPE(found.get()) == reinterpret_cast<PyTypeObject*>(dispatcher_type)) return run(found.get(), bound->grid, args, kwargs, nullptr);
  Ref launch(PyObject_CallFunctionObjArgs(bound->otherwise, bound->grid, nullptr));
  return launch ? PyObject_Call(launch.get(), args, kwargs) : nullptr;
}

int bound_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<BoundObject*>(self)->dispatcher);
  Py_VISIT(reinterpret_cast<BoundObject*>(self)->otherwise);
  Py_VISIT(reinterpret_cast<BoundObject*>(self)->grid);
  return 0;
}

void bound_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(reinterpret_cast<BoundObject*>(self)->dispatcher);
  Py_CLEAR(reinterpret_cast<BoundObject*>(self)->otherwise);
  Py_CLEAR(reinterpret_cast<BoundObject*>(self)->grid);
  release_instance(self);
}

PyType_Slot bound_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(bound_new)},
    {Py_tp_call, reinterpret_cast<void*>(bound_call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(bound_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(bound_traverse)},
    {Py_tp_doc, const_cast<char*>("BoundLaunch(find, otherwise, grid)\n\nA kernel and a grid: call it with the kernel's arguments. Each call launches "
                                   "through find(), a\nDispatcher, or where that is None by otherwise(grid)(*args, **kwargs).")},
    {0, nullptr}};

PyType_Spec bound_spec = {"triton._C.libtriton.BoundLaunch", sizeof(BoundObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, bound_slots};

PyMethodDef dispatcher_methods[] = {
    {"run", as_method(dispatcher_run), METH_FASTCALL,
     "run(grid, args: tuple, kwargs: dict, stream: int | None = None) -> object\n\nBinds, finds or makes the kernel, "
     "launches it; returns its owner. stream is a GPU's; None: the current one."},
    {"classify", dispatcher_classify, METH_VARARGS,
     "classify(args: tuple, kwargs: dict) -> (key, bound, classes, options, overlap)\n\nAs run, without a kernel and a "
     "launch."},
    {"pack", dispatcher_pack, METH_VARARGS, "pack(args: tuple, kwargs: dict) -> bytes\n\nThe kernel's argument block."},
    {"insert", dispatcher_insert, METH_VARARGS, "insert(key: bytes, kernel: CpuKernel | GpuLauncher) -> None"},
    {"get", dispatcher_get, METH_O, "get(key: bytes) -> CpuKernel | GpuLauncher | None"},
    {"clear", dispatcher_clear_kernels, METH_NOARGS, "clear() -> None\n\nForgets all kernels."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot dispatcher_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(dispatcher_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dispatcher_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(dispatcher_traverse)},
    {Py_tp_methods, dispatcher_methods},
    {Py_mp_subscript, reinterpret_cast<void*>(dispatcher_getitem)},
    {Py_mp_length, reinterpret_cast<void*>(dispatcher_length)},
    {Py_tp_doc,
     const_cast<char*>(
         "Dispatcher(name, names, flags, types, defaults, on_miss, missing=..., gpu=None)\n\n"
         "gpu: a GpuDriver; calls without arrays run on its current GPU. A kernel's launch path. dispatcher[grid](*args, **kwargs) is dispatcher.run(grid, args, kwargs).")},
    {0, nullptr}};

PyType_Spec dispatcher_spec = {"triton._C.libtriton.Dispatcher", sizeof(DispatcherObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, dispatcher_slots};

PyObject* py_set_dtype_resolver(PyObject*, PyObject* callable) { return set_dtype_resolver(callable); }
PyObject* py_set_array_adapter(PyObject*, PyObject* callable) { return set_array_adapter(callable); }
PyObject* py_set_constexpr_type(PyObject*, PyObject* type) { return set_constexpr_type(type); }

PyObject* py_set_streaming_bytes(PyObject*, PyObject* value) {
  unsigned long long bytes = PyLong_AsUnsignedLongLong(value);
  if (bytes == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  uint64_t before = streaming_bytes;
  streaming_bytes = bytes;
  return PyLong_FromUnsignedLongLong(before);
}

PyMethodDef hook_methods[] = {
    {"set_streaming_bytes", py_set_streaming_bytes, METH_O,
     "set_streaming_bytes(n) -> previous\n\nCPU launches whose arrays take more than n bytes may write past the caches."},
    {"set_dtype_resolver", py_set_dtype_resolver, METH_O,
     "set_dtype_resolver(f) -> previous\n\nf(dtype) -> 'fp32' etc. for an array's dtype object, or TypeError. Asked "
     "once per object."},
    {"set_array_adapter", py_set_array_adapter, METH_O,
     "set_array_adapter(f) -> previous\n\nf(array) -> object with data_ptr() and dtype, for arrays that only speak "
     "DLPack or an array interface."},
    {"set_constexpr_type", py_set_constexpr_type, METH_O,
     "set_constexpr_type(cls) -> previous\n\nInstances are taken as their .value wherever they appear."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_launch_types(PyObject* module) {
  kernel_type = PyType_FromSpec(&kernel_spec);
  dispatcher_type = PyType_FromSpec(&dispatcher_spec);
  bound_type = PyType_FromSpec(&bound_spec);
  return kernel_type && dispatcher_type && bound_type && PyModule_AddFunctions(module, hook_methods) == 0 &&
         PyModule_AddObjectRef(module, "CpuKernel", kernel_type) == 0 &&
         PyModule_AddObjectRef(module, "BoundLaunch", bound_type) == 0 &&
         PyModule_AddObjectRef(module, "Dispatcher", dispatcher_type) == 0;
}

}  // namespace triton
