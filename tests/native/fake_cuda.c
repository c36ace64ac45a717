/* A stand-in for libcuda.so.1: two GPUs that run nothing. Every call is written down as one line of text, in the order of
   the calls; fake_* functions read that, and say what shall fail. Types and numbers as in the CUDA Driver API reference. */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2, SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[1 << 20];
static size_t used;
static int quiet;
static char failing[64];
static int failure;
static int parameters;        /* slots to write down at a launch */
static int max_threads = 1024;
static int devices = DEVICES;
static uint64_t device_memory = 0x7f0000000000; /* GPU d has [this + d << 32, that + 1 << 32) */
static uint64_t pinned;       /* an address in pinned host memory */
static int contexts[DEVICES]; /* their addresses are the primary contexts */
static int modules;
static __thread void* current;

static int device_of(void* context) { return (int)((int*)context - contexts); }

static void say(const char* format, ...) {
  va_list values;
  if (quiet) return;
  pthread_mutex_lock(&lock);
  va_start(values, format);
  if (used + 4096 < sizeof lines) used += (size_t)vsnprintf(lines + used, 4095, format, values);
  va_end(values);
  lines[used++] = '\n';
  lines[used] = 0;
  pthread_mutex_unlock(&lock);
}

static int result_of(const char* name) { return failure && strcmp(failing, name) == 0 ? failure : SUCCESS; }

#define CHECK(name)                        \
  do {                                     \
    int result_ = result_of(name);         \
    if (result_ != SUCCESS) return result_; \
  } while (0)

/* ---- for the tests ---- */

const char* fake_lines(void) { return lines; }
void fake_forget(void) {
  used = 0;
  lines[0] = 0;
}
void fake_reset(void) {
  fake_forget();
  failure = parameters = quiet = 0;
  pinned = 0;
  max_threads = 1024;
}
void fake_quiet(int value) { quiet = value; }
void fake_fail(const char* name, int result) {
  snprintf(failing, sizeof failing, "%s", name);
  failure = result;
}
void fake_parameters(int count) { parameters = count; }
void fake_max_threads(int count) { max_threads = count; }
void fake_pinned(uint64_t address) { pinned = address; }
void* fake_current(void) { return current; }
int fake_current_device(void) { return current ? device_of(current) : -1; }
void fake_set_current_device(int device) { current = device < 0 ? NULL : &contexts[device]; }

/* ---- the driver ---- */

int cuInit(unsigned flags) {
  say("cuInit %u", flags);
  CHECK("cuInit");
  return SUCCESS;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return SUCCESS;
}

int cuGetErrorName(int result, const char** name) {
  static __thread char text[32];
  snprintf(text, sizeof text, "CUDA_ERROR_%d", result);
  *name = text;
  return SUCCESS;
}

int cuGetErrorString(int result, const char** name) {
  static __thread char text[64];
  snprintf(text, sizeof text, "what the driver says of %d", result);
  *name = text;
  return SUCCESS;
}

int cuDeviceGetCount(int* count) {
  CHECK("cuDeviceGetCount");
  *count = devices;
  return SUCCESS;
}

int cuDeviceGet(int* device, int ordinal) {
  CHECK("cuDeviceGet");
  if (ordinal < 0 || ordinal >= devices) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

int cuDeviceGetName(char* name, int size, int device) {
  CHECK("cuDeviceGetName");
  snprintf(name, (size_t)size, "Fake GPU %d", device);
  return SUCCESS;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  CHECK("cuDeviceGetAttribute");
  switch (attribute) {
    case 10: *value = 32; break;              /* warp size */
    case 12: *value = 65536; break;           /* registers of a block */
    case 16: *value = 100 + device; break;    /* multiprocessors */
    case 75: *value = device ? 8 : 9; break;  /* compute capability: 9.0 and 8.0 */
    case 76: *value = 0; break;
    case 97: *value = 232448; break;          /* shared memory of a block, opted in */
    default: *value = 1000 + attribute;
  }
  return SUCCESS;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  say("cuDevicePrimaryCtxRetain %d", device);
  CHECK("cuDevicePrimaryCtxRetain");
  *context = &contexts[device];
  return SUCCESS;
}

int cuCtxGetCurrent(void** context) {
  say("cuCtxGetCurrent");
  CHECK("cuCtxGetCurrent");
  *context = current;
  return SUCCESS;
}

int cuCtxSetCurrent(void* context) {
  say("cuCtxSetCurrent %d", context ? device_of(context) : -1);
  CHECK("cuCtxSetCurrent");
  current = context;
  return SUCCESS;
}

int cuCtxGetDevice(int* device) {
  CHECK("cuCtxGetDevice");
  if (!current) return INVALID_CONTEXT;
  *device = device_of(current);
  return SUCCESS;
}

int cuCtxSynchronize(void) {
  say("cuCtxSynchronize on %d", current ? device_of(current) : -1);
  CHECK("cuCtxSynchronize");
  return SUCCESS;
}

int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  say("cuModuleLoadDataEx on %d starts %.2s", current ? device_of(current) : -1, (const char*)image);
  int result = result_of("cuModuleLoadDataEx");
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == 5 && result) strcpy(values[i], "line 7: the log says why"); /* CU_JIT_ERROR_LOG_BUFFER */
  if (!current) return INVALID_CONTEXT;
  *module = (void*)(uintptr_t)(0x1000 + 0x10 * ++modules + device_of(current));
  return result;
}

int cuModuleUnload(void* module) {
  say("cuModuleUnload %p on %d", module, current ? device_of(current) : -1);
  return SUCCESS;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  say("cuModuleGetFunction %s", name);
  CHECK("cuModuleGetFunction");
  *function = (void*)((uintptr_t)module + 0x100000);
  return SUCCESS;
}

int cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)function;
  CHECK("cuFuncGetAttribute");
  *value = attribute == 0 ? max_threads : attribute == 4 ? 40 : 0;
  return SUCCESS;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function;
  say("cuFuncSetAttribute %d %d", attribute, value);
  CHECK("cuFuncSetAttribute");
  return SUCCESS;
}

static void say_launch(const char* name, const unsigned* grid, const unsigned* block, unsigned shared, void* stream, void* function,
                       void** params, const char* more) {
  char slots[2048] = "";
  size_t at = 0;
  for (int i = 0; i < parameters; ++i) {
    uint64_t slot;
    memcpy(&slot, params[i], 8);
    at += (size_t)snprintf(slots + at, sizeof slots - at, "%s%llx", i ? "," : "", (unsigned long long)slot);
  }
  say("%s on %d function %d grid %u,%u,%u block %u,%u,%u shared %u stream %llu slots %s%s", name, current ? device_of(current) : -1,
      (int)((uintptr_t)function & 0xf), grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, (unsigned long long)(uintptr_t)stream,
      slots, more);
}

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream,
                   void** params, void** extra) {
  (void)extra;
  if (!quiet) {
    unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    say_launch("cuLaunchKernel", grid, block, shared, stream, function, params, "");
  }
  CHECK("cuLaunchKernel");
  return SUCCESS;
}

struct attribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int flag;
    unsigned dimensions[3];
  } value;
};

struct config {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  void* stream;
  struct attribute* attributes;
  unsigned count;
};

int cuLaunchKernelEx(const struct config* config, void* function, void** params, void** extra) {
  (void)extra;
  char more[512] = "";
  size_t at = 0;
  for (unsigned i = 0; i < config->count; ++i) {
    const struct attribute* a = &config->attributes[i];
    at += a->id == 4 ? (size_t)snprintf(more + at, sizeof more - at, " cluster %u,%u,%u", a->value.dimensions[0], a->value.dimensions[1],
                                        a->value.dimensions[2])
                     : (size_t)snprintf(more + at, sizeof more - at, " attribute-%d %d", a->id, a->value.flag);
  }
  say_launch("cuLaunchKernelEx", config->grid, config->block, config->shared, config->stream, function, params, more);
  CHECK("cuLaunchKernelEx");
  return SUCCESS;
}

static const char* hex64(char* out, size_t room, const uint64_t* values, unsigned count) {
  size_t at = 0;
  out[0] = 0;
  for (unsigned i = 0; i < count; ++i) at += (size_t)snprintf(out + at, room - at, "%s%llu", i ? "," : "", (unsigned long long)values[i]);
  return out;
}

int cuTensorMapEncodeTiled(void* map, int type, unsigned rank, void* base, const uint64_t* sizes, const uint64_t* strides, const unsigned* box,
                           const unsigned* steps, int interleave, int swizzle, int promotion, int fill) {
  char a[128], b[128], c[128];
  uint64_t boxes[5] = {0};
  for (unsigned i = 0; i < rank; ++i) boxes[i] = box[i];
  say("cuTensorMapEncodeTiled aligned %d type %d rank %u base %llx sizes %s strides %s box %s step %u interleave %d swizzle %d fill %d",
      (int)((uintptr_t)map % 64 == 0), type, rank, (unsigned long long)(uintptr_t)base, hex64(a, sizeof a, sizes, rank),
      hex64(b, sizeof b, strides, rank - 1), hex64(c, sizeof c, boxes, rank), steps[0], interleave, swizzle, fill);
  (void)promotion;
  CHECK("cuTensorMapEncodeTiled");
  memset(map, 0x5a, 128);
  return SUCCESS;
}

int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) {
  say("cuMemAlloc %zu", bytes);
  CHECK("cuMemAlloc_v2");
  *pointer = (uint64_t)(uintptr_t)malloc(bytes);
  return SUCCESS;
}

int cuMemFree_v2(uint64_t pointer) {
  say("cuMemFree");
  free((void*)(uintptr_t)pointer);
  return SUCCESS;
}

int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  say("cuMemcpyHtoD %zu", bytes);
  memcpy((void*)(uintptr_t)to, from, bytes);
  return SUCCESS;
}

int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  say("cuMemcpyDtoH %zu", bytes);
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return SUCCESS;
}

int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
  int on_device = pointer >= device_memory && pointer < device_memory + ((uint64_t)DEVICES << 32);
  if (!on_device && pointer != pinned) return INVALID_VALUE;
  switch (attribute) {
    case 2: *(int*)value = on_device ? 2 : 1; return SUCCESS;
    case 3: *(uint64_t*)value = pointer; return SUCCESS;
    case 9: *(int*)value = on_device ? (int)((pointer - device_memory) >> 32) : 0; return SUCCESS;
  }
  return INVALID_VALUE;
}
