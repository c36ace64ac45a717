// The Python face of the native core: converts arguments, releases the GIL, turns failures into exceptions. Limited
// API, 3.10.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "compile.h"
#include "jit.h"
#include "platform.h"
#include "pool.h"
#include "python_api.h"
#include "runtime_symbols.h"

namespace triton {

PyObject* raise(PyObject* type, const std::string& message) {
  // LLVM's messages may quote arbitrary bytes of the input.
  Ref text(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "replace"));
  if (text) PyErr_SetObject(type, text.get());
  return nullptr;
}

PyObject* to_str(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

bool to_string(PyObject* object, std::string* out) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(object, &size);
  if (!data) return false;
  out->assign(data, static_cast<size_t>(size));
  return true;
}

PyObject* allocate(PyObject* type) {
  auto* heap_type = reinterpret_cast<PyTypeObject*>(type);
  return reinterpret_cast<allocfunc>(PyType_GetSlot(heap_type, Py_tp_alloc))(heap_type, 0);
}

void release_instance(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

namespace {

PyObject* llvm_error = nullptr;
PyObject* device_assert_error = nullptr;
PyObject* kernel_fault = nullptr;
PyObject* code_type = nullptr;

bool to_bytes(PyObject* object, std::string* out) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &data, &size) < 0) return false;
  out->assign(data, static_cast<size_t>(size));
  return true;
}

// Appends each item of a tuple or list.
bool to_list(PyObject* sequence, const char* what, bool (*convert)(PyObject*, std::string*),
             std::vector<std::string>* out) {
  if (!PyTuple_Check(sequence) && !PyList_Check(sequence)) {
    PyErr_Format(PyExc_TypeError, "%s must be a tuple", what);
    return false;
  }
  Py_ssize_t count = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Ref item(PySequence_GetItem(sequence, i));
    std::string text;
    if (!item || !convert(item.get(), &text)) return false;
    out->push_back(std::move(text));
  }
  return true;
}

// ---- LLVM ----

PyObject* py_llvm_version(PyObject*, PyObject*) { return to_str(llvm_version()); }

PyObject* py_targets(PyObject*, PyObject*) {
  std::vector<std::string> families = target_families();
  Ref tuple(PyTuple_New(static_cast<Py_ssize_t>(families.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < families.size(); ++i) {
    PyObject* name = to_str(families[i]);
    if (!name || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), name) < 0) return nullptr;
  }
  return tuple.release();
}

PyObject* py_host_target(PyObject*, PyObject*) {
  HostTarget host = host_target();
  return Py_BuildValue("(sss)", host.triple.c_str(), host.cpu.c_str(), host.features.c_str());
}

bool check_compile_options(const CompileJob& job) {
  for (const std::string& name : job.emit) {
    if (name != "ll" && name != "bc" && name != "asm" && name != "obj") {
      PyErr_Format(PyExc_ValueError, "emit: unknown form '%s', expected 'll', 'bc', 'asm' or 'obj'", name.c_str());
      return false;
    }
  }
  if (job.opt_level < 0 || job.opt_level > 3) {
    PyErr_Format(PyExc_ValueError, "opt_level is %d, expected 0 to 3", job.opt_level);
    return false;
  }
  if (job.reloc != "pic" && job.reloc != "static" && job.reloc != "default") {
    PyErr_Format(PyExc_ValueError, "reloc is '%s', expected 'pic', 'static' or 'default'", job.reloc.c_str());
    return false;
  }
  return true;
}

PyObject* compile_result(const CompileJob& job) {
  Ref result(PyDict_New());
  if (!result) return nullptr;
  auto set = [](PyObject* dict, const char* key, PyObject* stolen) {
    Ref value(stolen);
    return value && PyDict_SetItemString(dict, key, value.get()) == 0;
  };
  for (const auto& [form, data] : job.outputs) {
    bool text = form == "ll" || form == "asm";
    PyObject* value =
        text ? to_str(data) : PyBytes_FromStringAndSize(data.data(), static_cast<Py_ssize_t>(data.size()));
    if (!set(result.get(), form.c_str(), value)) return nullptr;
  }
  Ref timings(PyDict_New());
  if (!timings) return nullptr;
  for (auto [stage, seconds] : job.timings)
    if (!set(timings.get(), stage, PyFloat_FromDouble(seconds))) return nullptr;
  if (PyDict_SetItemString(result.get(), "timings", timings.get()) < 0) return nullptr;
  Ref warnings(PyList_New(0));
  if (!warnings) return nullptr;
  for (const std::string& warning : job.warnings) {
    Ref text(to_str(warning));
    if (!text || PyList_Append(warnings.get(), text.get()) < 0) return nullptr;
  }
  return set(result.get(), "warnings", PyList_AsTuple(warnings.get())) ? result.release() : nullptr;
}

PyObject* py_compile_ir(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"ir",      "triple",    "cpu",   "features",   "emit", "passes",
                                "bitcode", "opt_level", "reloc", "timeout_ms", nullptr};
  PyObject *ir, *triple = nullptr, *cpu = nullptr, *features = nullptr, *emit = nullptr;
  PyObject *passes = nullptr, *bitcode = nullptr, *reloc = nullptr;
  int opt_level = 2;
  unsigned int timeout_ms = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|$UUUOUOiUI:compile_ir", const_cast<char**>(names), &ir, &triple,
                                   &cpu, &features, &emit, &passes, &bitcode, &opt_level, &reloc, &timeout_ms))
    return nullptr;
  if (!triple || !cpu || !features || !emit)
    return raise(PyExc_TypeError, "compile_ir() needs triple, cpu, features and emit");
  auto job = std::make_shared<CompileJob>();
  job->passes = "default<O2>";
  job->reloc = "pic";
  job->opt_level = opt_level;
  if (!to_string(ir, &job->ir) || !to_string(triple, &job->triple) || !to_string(cpu, &job->cpu) ||
      !to_string(features, &job->features))
    return nullptr;
  if (!to_list(emit, "emit", to_string, &job->emit)) return nullptr;
  if (passes && !to_string(passes, &job->passes)) return nullptr;
  if (reloc && !to_string(reloc, &job->reloc)) return nullptr;
  if (bitcode && !to_list(bitcode, "bitcode", to_bytes, &job->bitcode)) return nullptr;
  if (!check_compile_options(*job)) return nullptr;
  bool ok;
  std::string timeout_error;
  {
    WithoutGil released;
    ok = run_llvm_job(job, timeout_ms, &timeout_error);
  }
  if (!timeout_error.empty()) return raise(llvm_error, timeout_error);
  return ok ? compile_result(*job) : raise(llvm_error, job->error);
}

PyObject* py_verify_ir(PyObject*, PyObject* ir) {
  auto job = std::make_shared<VerifyJob>();
  if (!to_string(ir, &job->ir)) return nullptr;
  bool ok;
  {
    WithoutGil released;
    ok = run_llvm_job(job, 0, nullptr);
  }
  if (!ok) return raise(llvm_error, job->error);
  Py_RETURN_NONE;
}

// ---- JIT ----

struct CodeObject {
  PyObject_HEAD JitCode* code;
};

void code_dealloc(PyObject* self) {
  delete reinterpret_cast<CodeObject*>(self)->code;
  release_instance(self);
}

PyObject* code_address(PyObject* self, PyObject* name) {
  std::string text, error;
  if (!to_string(name, &text)) return nullptr;
  uint64_t address;
  {
    WithoutGil released;
    address = reinterpret_cast<CodeObject*>(self)->code->address(text, &error);
  }
  return address ? PyLong_FromUnsignedLongLong(address) : raise(llvm_error, error);
}

PyMethodDef code_methods[] = {
    {"address", code_address, METH_O,
     "address(name: str) -> int\n\nAddress of a symbol that the object file defines; links on first use."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot code_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(code_dealloc)},
    {Py_tp_methods, code_methods},
    {Py_tp_doc, const_cast<char*>("Machine code in this process, made by jit_load(); freed with the object.")},
    {0, nullptr}};

PyType_Spec code_spec = {"triton._C.libtriton.Code", sizeof(CodeObject), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, code_slots};

PyObject* py_jit_load(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"obj", "symbols", nullptr};
  PyObject *object, *symbols = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "S|O:jit_load", const_cast<char**>(names), &object, &symbols))
    return nullptr;
  std::map<std::string, uint64_t> extra;
  if (symbols != Py_None) {
    if (!PyDict_Check(symbols)) return raise(PyExc_TypeError, "symbols must be a dict of str to int");
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(symbols, &position, &key, &value)) {
      std::string name;
      if (!to_string(key, &name)) return nullptr;
      extra[name] = PyLong_AsUnsignedLongLong(value);
      if (PyErr_Occurred()) return nullptr;
    }
  }
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(object, &data, &size) < 0) return nullptr;
  std::string error;
  std::unique_ptr<JitCode> code;
  {
    WithoutGil released;
    code = JitCode::load({data, static_cast<size_t>(size)}, extra, &error);
  }
  if (!code) return raise(llvm_error, error);
  PyObject* result = allocate(code_type);
  if (!result) return nullptr;
  reinterpret_cast<CodeObject*>(result)->code = code.release();
  return result;
}

// ---- launching ----

constexpr Py_ssize_t kLaunchArguments = 6, kRequiredArguments = 4;
const char* const kLaunchNames[kLaunchArguments] = {"fn", "args", "grid", "scratch", "threads", "waits"};

// Spreads positional and keyword arguments over the places.
bool gather_launch(PyObject* const* args, Py_ssize_t count, PyObject* names, PyObject** out) {
  if (count > kLaunchArguments) {
    PyErr_Format(PyExc_TypeError, "cpu_launch() takes at most %zd arguments, got %zd", kLaunchArguments, count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) out[i] = args[i];
  Py_ssize_t keywords = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GetItem(names, k);
    Py_ssize_t place = 0;
    while (place < kLaunchArguments && PyUnicode_CompareWithASCIIString(name, kLaunchNames[place]) != 0) ++place;
    if (place == kLaunchArguments || out[place]) {
      PyErr_Format(PyExc_TypeError, "cpu_launch() got an unexpected or repeated argument '%U'", name);
      return false;
    }
    out[place] = args[count + k];
  }
  for (Py_ssize_t i = 0; i < kRequiredArguments; ++i) {
    if (out[i]) continue;
    PyErr_Format(PyExc_TypeError, "cpu_launch() misses the argument '%s'", kLaunchNames[i]);
    return false;
  }
  return true;
}

bool read_grid(PyObject* object, int64_t* grid) {
  if (!PyTuple_Check(object) || PyTuple_Size(object) != 3) {
    PyErr_SetString(PyExc_TypeError, "grid must be a tuple of three integers");
    return false;
  }
  for (Py_ssize_t i = 0; i < 3; ++i) {
    grid[i] = PyLong_AsLongLong(PyTuple_GetItem(object, i));
    if (grid[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

PyObject* py_cpu_launch(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* given[kLaunchArguments] = {};
  if (!gather_launch(args, count, names, given)) return nullptr;
  LaunchRequest request = {};
  request.function = reinterpret_cast<KernelFunction>(PyLong_AsVoidPtr(given[0]));
  if (PyErr_Occurred()) return nullptr;
  if (!request.function) return raise(PyExc_ValueError, "fn is 0");
  char* slots = nullptr;
  Py_ssize_t slot_bytes = 0;
  if (PyBytes_AsStringAndSize(given[1], &slots, &slot_bytes) < 0) return nullptr;
  request.args = slots;
  int64_t grid[3];
  if (!read_grid(given[2], grid)) return nullptr;
  request.scratch_bytes = PyLong_AsSize_t(given[3]);
  if (request.scratch_bytes == static_cast<size_t>(-1) && PyErr_Occurred()) return nullptr;
  if (given[4]) {
    long threads = PyLong_AsLong(given[4]);
    if (threads == -1 && PyErr_Occurred()) return nullptr;
    if (threads < 0) return raise(PyExc_ValueError, "threads is negative");
    request.threads = static_cast<unsigned>(threads);
  }
  if (given[5]) {
    int waits = PyObject_IsTrue(given[5]);
    if (waits < 0) return nullptr;
    request.waits = waits != 0;
  }
  std::string error;
  if (!grid_total(grid, &request.total, &error)) return raise(PyExc_ValueError, error);
  if (request.total == 0) Py_RETURN_NONE;
  for (int i = 0; i < 3; ++i) request.grid[i] = static_cast<int32_t>(grid[i]);
  if (!launch_from_python(request, nullptr)) return nullptr;
  Py_RETURN_NONE;
}

PyObject* py_set_num_threads(PyObject*, PyObject* value) {
  long count = PyLong_AsLong(value);
  if (count == -1 && PyErr_Occurred()) return nullptr;
  if (count < 1) {
    PyErr_Format(PyExc_ValueError, "the number of threads is %ld, expected at least 1", count);
    return nullptr;
  }
  set_num_threads(static_cast<unsigned>(count));
  Py_RETURN_NONE;
}

PyObject* py_get_num_threads(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(get_num_threads()); }

// ---- device_print ----

PyObject* print_callable = nullptr;  // guarded by the GIL

void print_to_python(const char* text, size_t length) {
  PyGILState_STATE state = PyGILState_Ensure();
  if (PyObject* callable = print_callable) {
    Ref held((Py_INCREF(callable), callable));
    Ref line(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(length), "replace"));
    Ref result(line ? PyObject_CallFunctionObjArgs(callable, line.get(), nullptr) : nullptr);
    if (!result) PyErr_WriteUnraisable(callable);
  }
  PyGILState_Release(state);
}

PyObject* py_set_print_sink(PyObject*, PyObject* callable) {
  if (callable != Py_None && !PyCallable_Check(callable))
    return raise(PyExc_TypeError, "the print sink must be callable or None");
  Ref previous(print_callable);
  print_callable = nullptr;
  if (callable != Py_None) {
    Py_INCREF(callable);
    print_callable = callable;
  }
  set_print_sink(print_callable ? print_to_python : nullptr);
  Py_RETURN_NONE;
}

// ---- fork ----

void before_fork() {
  lock_target_machines();
  lock_jit();
  lock_pool();
}

void after_fork_in_parent() {
  unlock_pool();
  unlock_jit();
  unlock_target_machines();
}

void after_fork_in_child() {
  renew_pool_in_child();
  unlock_jit();
  unlock_target_machines();
}

// ---- module ----

PyMethodDef methods[] = {
    {"llvm_version", py_llvm_version, METH_NOARGS,
     "llvm_version() -> str\n\nVersion of the LLVM in use, such as '22.1.8'."},
    {"targets", py_targets, METH_NOARGS,
     "targets() -> tuple[str, ...]\n\nSorted names of the code generators, such as 'NVPTX'."},
    {"host_target", py_host_target, METH_NOARGS,
     "host_target() -> tuple[str, str, str]\n\nTriple, CPU and features of this machine."},
    {"compile_ir", as_method(py_compile_ir), METH_VARARGS | METH_KEYWORDS,
     "compile_ir(ir, *, triple, cpu, features, emit, passes='default<O2>', bitcode=(), opt_level=2, reloc='pic', "
     "timeout_ms=0) -> dict\n\n"
     "Parses, verifies, links with bitcode, optimises, and emits the forms named in emit: 'll', 'asm' (str), 'bc', "
     "'obj' (bytes).\n"
     "Also 'timings' (seconds by stage) and 'warnings'. Raises LLVMError with LLVM's message."},
    {"verify_ir", py_verify_ir, METH_O,
     "verify_ir(ir: str) -> None\n\nRaises LLVMError unless the text is a valid module."},
    {"jit_load", as_method(py_jit_load), METH_VARARGS | METH_KEYWORDS,
     "jit_load(obj: bytes, symbols: dict[str, int] | None = None) -> Code\n\nTakes an object file for this machine "
     "into the process."},
    {"cpu_launch", as_method(py_cpu_launch), METH_FASTCALL | METH_KEYWORDS,
     "cpu_launch(fn: int, args: bytes, grid: tuple[int, int, int], scratch: int, threads: int = 0, waits: bool = False) -> None\n\n"
     "Runs every program of the grid on the thread pool. Raises DeviceAssertError or KernelFault."},
    {"set_num_threads", py_set_num_threads, METH_O, "set_num_threads(n: int) -> None"},
    {"get_num_threads", py_get_num_threads, METH_NOARGS, "get_num_threads() -> int"},
    {"set_print_sink", py_set_print_sink, METH_O,
     "set_print_sink(sink: Callable[[str], object] | None) -> None\n\nWhere lines of device_print go; None: the C "
     "library's stdout."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "libtriton",
                          "Native core of triton: LLVM, JIT, CPU grid pool.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

PyObject* new_exception(const char* name, const char* doc, PyObject* bases) {
  return PyErr_NewExceptionWithDoc(name, doc, bases, nullptr);
}

bool add_object(PyObject* module, const char* name, PyObject* object) {
  return object && PyModule_AddObjectRef(module, name, object) == 0;
}

bool fill(PyObject* module) {
  llvm_error = new_exception("triton._C.libtriton.LLVMError", "LLVM refused or failed; the message is LLVM's.",
                             PyExc_RuntimeError);
  Ref bases(PyTuple_Pack(2, PyExc_AssertionError, PyExc_RuntimeError));
  if (!bases) return false;
  device_assert_error =
      new_exception("triton._C.libtriton.DeviceAssertError", "A device_assert in a kernel failed.", bases.get());
  kernel_fault = new_exception("triton._C.libtriton.KernelFault",
                               "A kernel accessed memory it must not, faulted otherwise, or waits for ever.", PyExc_RuntimeError);
  code_type = PyType_FromSpec(&code_spec);
  return add_object(module, "LLVMError", llvm_error) && add_object(module, "DeviceAssertError", device_assert_error) &&
         add_object(module, "KernelFault", kernel_fault) && add_object(module, "Code", code_type) &&
         add_launch_types(module) && add_gpus(module);
}

}  // namespace

// What a message about a kernel begins with: its name, where `owner` is one or has one.
std::string named(PyObject* owner) {
  PyObject* name = nullptr;
  if (owner && PyUnicode_Check(owner)) {
    Py_INCREF(owner);
    name = owner;
  } else if (owner) {
    name = PyObject_GetAttrString(owner, "name");
  }
  PyObject* bytes = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : nullptr;
  const char* text = bytes ? PyBytes_AsString(bytes) : nullptr;
  std::string result = text ? std::string("kernel '") + text + "': " : std::string();
  Py_XDECREF(bytes);
  Py_XDECREF(name);
  PyErr_Clear();
  return result;
}

bool launch_from_python(LaunchRequest& request, PyObject* owner) {
  std::optional<WithoutGil> released;
  request.before_long_work = [](void* raw) { static_cast<std::optional<WithoutGil>*>(raw)->emplace(); };
  request.poll = [](void* raw) {
    auto& without_gil = *static_cast<std::optional<WithoutGil>*>(raw);
    without_gil.reset();
    bool go_on = PyErr_CheckSignals() == 0;
    without_gil.emplace();
    return go_on;
  };
  request.callback_arg = &released;
  std::string error;
  LaunchStatus status = launch(request, &error);
  released.reset();
  switch (status) {
    case LaunchStatus::ok: return true;
    case LaunchStatus::assertion: raise(device_assert_error, error); break;
    case LaunchStatus::fault: raise(kernel_fault, named(owner) + error); break;
    case LaunchStatus::stuck: raise(kernel_fault, error); break;
    case LaunchStatus::failure: raise(PyExc_MemoryError, error); break;
    case LaunchStatus::interrupted: break;  // the exception is set
  }
  return false;
}

}  // namespace triton

PyMODINIT_FUNC PyInit_libtriton() {
  using namespace triton;
  initialise_targets();
  platform::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
  Ref module(PyModule_Create(&definition));
  if (!module || !fill(module.get())) return nullptr;
  return module.release();
}
