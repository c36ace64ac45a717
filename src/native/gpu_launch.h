// Launches of GPU kernels from the dispatcher, and torch's idea of the current device and stream.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu.h"
#include "python_api.h"

namespace triton {

constexpr int64_t kGpuGrid[3] = {2147483647, 65535, 65535};

// gpu_module.cpp: the kernel inside a GpuKernel object, and its driver; null with TypeError set when it is none.
const gpu::Kernel* gpu_kernel_of(PyObject* object, gpu::Driver** driver);
// The driver inside a GpuDriver object; null with TypeError set when it is none.
gpu::Driver* gpu_driver_of(PyObject* object);
PyObject* raise_gpu_error(const std::string& message);
// Plans as Python packs them. False with an exception set.
bool read_map_plans(PyObject* bytes, std::vector<gpu::MapPlan>* out);

// The type GpuLauncher: a loaded kernel with everything a launch needs besides its arguments.
bool add_gpu_launcher(PyObject* module);
bool is_gpu_launcher(PyObject* object);

// The GPU that a launch without arrays goes to: torch's current one where torch uses them, else the thread's, else 0.
// driver: null for whichever is in use. False with an exception set.
bool current_gpu(gpu::Driver* driver, int* device);

// The blocks of a grid of programs. False with ValueError set where these are too many.
bool gpu_grid(const int64_t* programs, unsigned blocks, unsigned* grid);

// Queues the launch of a grid that is not empty; slots are the kernel's arguments. stream: a number, or null for the
// current one of the kernel's device. gpu: where the arguments are; negative when they do not tell. False with an
// exception set.
bool gpu_launch(PyObject* launcher, const int64_t* grid, PyObject* stream, int gpu, std::vector<uint64_t>* slots);

// What a launch returns; new reference.
PyObject* gpu_launcher_owner(PyObject* launcher);
gpu::Driver* gpu_launcher_driver(PyObject* launcher);
int gpu_launcher_device(PyObject* launcher);

}  // namespace triton
