// Launches of CUDA kernels from the dispatcher, and torch's idea of the current device and stream.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda.h"
#include "python_api.h"

namespace triton {

constexpr int64_t kCudaGrid[3] = {2147483647, 65535, 65535};

// cuda_module.cpp: the kernel inside a CudaKernel object; null with TypeError set when it is none.
const cuda::Kernel* cuda_kernel_of(PyObject* object);
PyObject* raise_cuda_error(const std::string& message);
// Plans as Python packs them, 10 int32 each. False with an exception set.
bool read_map_plans(PyObject* bytes, std::vector<cuda::MapPlan>* out);

// The type CudaLauncher: a loaded kernel with everything a launch needs besides its arguments.
bool add_cuda_launcher(PyObject* module);
bool is_cuda_launcher(PyObject* object);

// The GPU that a launch without arrays goes to: torch's current one where torch uses CUDA, else that of the thread's
// context, else 0. False with an exception set.
bool cuda_current_gpu(int* device);

// Queues the launch of a grid that is not empty; slots are the kernel's arguments. stream: a number, or null for the
// current one of the kernel's device. gpu: where the arguments are; negative when they do not tell. False with an
// exception set.
bool cuda_launch(PyObject* launcher, const int64_t* grid, PyObject* stream, int gpu, std::vector<uint64_t>* slots);

// What a launch returns; new reference.
PyObject* cuda_launcher_owner(PyObject* launcher);

}  // namespace triton
