/* A stand-in for libamdhip64.so: two GPUs that run nothing but one kernel of C. Every call is written down as one line of text; fake_*
   functions read that, and say what shall fail. Types and numbers as in the HIP API reference. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 2, SUCCESS = 0, INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_IMAGE = 200, NOT_FOUND = 500 };

static char lines[1 << 18];
static size_t used;
static char failing[64];
static int failure;
static int device;
static int modules;
static int quiet;
static void* pinned; /* an address in pinned host memory */
static size_t slots; /* parameters to write down at a launch */
static void (*run)(void**, const unsigned*, unsigned); /* what a launch does */

static void say(const char* format, ...) {
  va_list values;
  if (quiet) return;
  va_start(values, format);
  if (used + 4096 < sizeof lines) used += (size_t)vsnprintf(lines + used, 4095, format, values);
  va_end(values);
  lines[used++] = '\n';
  lines[used] = 0;
}

#define CHECK(name) \
  if (failure && strcmp(failing, name) == 0) return failure

/* ---- for the tests ---- */

const char* fake_lines(void) { return lines; }
void fake_forget(void) { used = 0; lines[0] = 0; }
void fake_fail(const char* name, int result) {
  snprintf(failing, sizeof failing, "%s", name);
  failure = result;
}
void fake_quiet(int value) { quiet = value; }
void fake_pinned(void* address) { pinned = address; }
void fake_slots(size_t count) { slots = count; }
void fake_run(void (*function)(void**, const unsigned*, unsigned)) { run = function; }

/* ---- the runtime ---- */

int hipInit(unsigned flags) { say("hipInit %u", flags); CHECK("hipInit"); return SUCCESS; }
const char* hipGetErrorName(int result) { return result == INVALID_IMAGE ? "hipErrorInvalidImage" : "hipErrorOther"; }
const char* hipGetErrorString(int result) { return result == INVALID_IMAGE ? "device kernel image is invalid" : "some error"; }
int hipGetDeviceCount(int* count) { CHECK("hipGetDeviceCount"); *count = DEVICES; return SUCCESS; }
int hipGetDevice(int* out) { CHECK("hipGetDevice"); *out = device; return SUCCESS; }
int hipSetDevice(int number) {
  say("hipSetDevice %d", number);
  CHECK("hipSetDevice");
  if (number < 0 || number >= DEVICES) return INVALID_DEVICE;
  device = number;
  return SUCCESS;
}
int hipDeviceGetName(char* name, int size, int number) { snprintf(name, (size_t)size, "Fake GPU %d", number); return SUCCESS; }
int hipDeviceGetAttribute(int* value, int attribute, int number) {
  CHECK("hipDeviceGetAttribute");
  if (number < 0 || number >= DEVICES) return INVALID_DEVICE;
  *value = attribute == 87 ? (number ? 64 : 32) : attribute == 63 ? 96 : attribute == 74 ? 65536 : 1000 + attribute;
  return SUCCESS;
}
int hipGetDevicePropertiesR0600(void* properties, int number) {
  CHECK("hipGetDeviceProperties");
  snprintf((char*)properties, 256, "gfx is in the name too");
  strcpy((char*)properties + 1160, number ? "gfx942:sramecc+:xnack-" : "gfx1100");
  return SUCCESS;
}
int hipDeviceSynchronize(void) { say("hipDeviceSynchronize"); CHECK("hipDeviceSynchronize"); return SUCCESS; }
int hipModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  (void)options; (void)values;
  say("hipModuleLoadDataEx %u on %d", count, device);
  CHECK("hipModuleLoadDataEx");
  if (memcmp(image, "\177ELF", 4) != 0) return INVALID_IMAGE;
  *module = &modules;
  ++modules;
  return SUCCESS;
}
int hipModuleUnload(void* module) { say("hipModuleUnload on %d", device); modules -= module == &modules; return SUCCESS; }
int hipModuleGetFunction(void** function, void* module, const char* name) {
  say("hipModuleGetFunction %s", name);
  CHECK("hipModuleGetFunction");
  if (strcmp(name, "missing") == 0) return NOT_FOUND;
  *function = module;
  return SUCCESS;
}
int hipFuncGetAttribute(int* value, int attribute, void* function) {
  (void)function;
  CHECK("hipFuncGetAttribute");
  *value = attribute == 0 ? 1024 : attribute == 1 ? 512 : attribute == 3 ? 16 : 40;
  return SUCCESS;
}
static int launch(const char* name, const unsigned* grid, unsigned x, unsigned y, unsigned z, unsigned shared, void* stream, void** params) {
  char text[1024] = "";
  if (quiet) return SUCCESS;
  for (size_t i = 0; i < slots; ++i) {
    uint64_t value;
    memcpy(&value, params[i], 8);
    snprintf(text + strlen(text), 24, " %llx", (unsigned long long)value);
  }
  say("%s grid %u %u %u block %u %u %u shared %u stream %llx on %d args%s", name, grid[0], grid[1], grid[2], x, y, z, shared,
      (unsigned long long)(uintptr_t)stream, device, text);
  CHECK(name);
  if (run) run(params, grid, x);
  return SUCCESS;
}
int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z, unsigned shared,
                          void* stream, void** params, void** extra) {
  unsigned grid[3] = {gx, gy, gz};
  if (function != &modules || extra) return INVALID_VALUE;
  return launch("hipModuleLaunchKernel", grid, x, y, z, shared, stream, params);
}
int hipModuleLaunchCooperativeKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z,
                                     unsigned shared, void* stream, void** params) {
  unsigned grid[3] = {gx, gy, gz};
  if (function != &modules) return INVALID_VALUE;
  return launch("hipModuleLaunchCooperativeKernel", grid, x, y, z, shared, stream, params);
}
int hipRuntimeGetVersion(int* version) { *version = 60342134; return SUCCESS; }
int hipPointerGetAttribute(void* value, int attribute, void* pointer) {
  if (pointer != pinned) return INVALID_VALUE;
  *(void**)value = pointer;
  return attribute == 3 ? SUCCESS : INVALID_VALUE; /* HIP_POINTER_ATTRIBUTE_DEVICE_POINTER */
}
int hipMalloc(void** pointer, size_t bytes) { CHECK("hipMalloc"); *pointer = malloc(bytes ? bytes : 1); return SUCCESS; }
int hipFree(void* pointer) { free(pointer); return SUCCESS; }
int hipMemcpy(void* to, const void* from, size_t bytes, int kind) {
  say("hipMemcpy %zu kind %d", bytes, kind);
  CHECK("hipMemcpy");
  memcpy(to, from, bytes);
  return SUCCESS;
}
