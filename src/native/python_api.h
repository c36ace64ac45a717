// Small helpers over the limited Python API, shared by the files that speak it.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <memory>
#include <string>

#include "pool.h"

namespace triton {

struct Decref {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Ref = std::unique_ptr<PyObject, Decref>;

inline Ref share(PyObject* borrowed) {
  Py_INCREF(borrowed);
  return Ref(borrowed);
}

// Sets an exception and returns nullptr.
PyObject* raise(PyObject* type, const std::string& message);

PyObject* to_str(const std::string& text);
bool to_string(PyObject* object, std::string* out);

class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

// Allocates an instance of a heap type.
PyObject* allocate(PyObject* type);
// The end of a heap type's dealloc.
void release_instance(PyObject* self);

// Runs the launch, without the GIL unless it is known to be short, and turns failures into exceptions. `owner`: the kernel
// or its name, for messages; may be null.
bool launch_from_python(LaunchRequest& request, PyObject* owner);

// launch.cpp: the types CpuKernel and Dispatcher and the functions that belong to them.
bool add_launch_types(PyObject* module);

// gpu_module.cpp: the objects cuda and hip and the types that belong to them.
bool add_gpus(PyObject* module);

}  // namespace triton
