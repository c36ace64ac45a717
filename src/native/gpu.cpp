#include "gpu.h"

#include "platform.h"

namespace triton::gpu {

std::string Driver::message(Result result, const char* what) {
  const char *code = error_name(result), *text = error_text(result);
  return std::string(what) + ": " + (text ? text : "error") + " (" + (code ? code : std::to_string(result).c_str()) + ")";
}

void Driver::open() {
  std::string reason, first;
  void* opened = nullptr;
  const char* const* names = file_names();
  for (size_t i = 0; names[i] && !opened; ++i) {
    opened = platform::open_library(names[i], &reason);
    if (first.empty()) first = reason;
  }
  if (!opened) {
    unusable_ = std::string("no ") + library + ": " + names[0] + " cannot be opened (" + first + ")";
    return;
  }
  for (const Entry& entry : entries()) {
    if (!*entry.place) *entry.place = platform::find_symbol(opened, entry.symbol);
    if (!*entry.place && entry.required) {
      unusable_ = std::string("the ") + library + " has no " + entry.symbol + "; it is too old";
      return;
    }
  }
  if (Result result = api_.init(0)) {
    unusable_ = message(result, (std::string("the ") + library + " does not start").c_str());
  } else if (Result counted = api_.device_count(&devices_)) {
    unusable_ = message(counted, (std::string("the ") + library + " does not list its devices").c_str());
  } else if (devices_ == 0) {
    unusable_ = std::string("the ") + library + " finds no GPU";
  }
}

bool Driver::ready(std::string* error) {
  std::call_once(opened_, [this] { open(); });
  if (unusable_.empty()) return true;
  *error = unusable_;
  return false;
}

bool Driver::exists(int device, std::string* error) {
  if (device >= 0 && device < devices_) return true;
  *error = "there is no GPU " + std::to_string(device) + "; this machine has " + std::to_string(devices_);
  return false;
}

int Driver::version() {
  std::string ignored;
  int number = 0;
  return ready(&ignored) && api_.version && api_.version(&number) == 0 ? number : 0;
}

int Driver::device_count(std::string* error) { return ready(error) ? devices_ : -1; }

bool Driver::attributes(int device, Numbers* numbers, Texts* texts, std::string* error) {
  int handle = 0;
  if (!ready(error) || !exists(device, error) || !device_handle(device, &handle, error)) return false;
  for (const Attribute& attribute : attribute_numbers()) {
    int value = 0;
    if (!check(api_.device_attribute(&value, attribute.number, handle), attribute.name, error)) return false;
    (*numbers)[attribute.name] = value;
  }
  char text[256] = {};
  if (!check(api_.device_name(text, sizeof text - 1, handle), "the device's name", error)) return false;
  (*texts)["name"] = text;
  return more_attributes(device, texts, error);
}

bool Driver::device_handle(int device, int* handle, std::string*) { return *handle = device, true; }

bool Driver::more_attributes(int, Texts*, std::string*) { return true; }

int Driver::current_device(std::string* error) {
  int device = 0;
  return ready(error) && current(&device, error) ? device : -1;
}

bool Driver::set_current_device(int device, std::string* error) {
  Scope scope;
  if (!ready(error) || !exists(device, error) || !enter(nullptr, device, &scope, error)) return false;
  scope.keep();
  return true;
}

bool Driver::load(const std::string& image, const std::string& name, const Shape& shape, int device, Kernel* out, std::string* error) {
  Scope scope;
  if (!ready(error) || !exists(device, error) || !enter(nullptr, device, &scope, error)) return false;
  out->device = device;
  if (!load_module(image, out, error)) return false;
  bool good = check(api_.function(&out->function, out->module, name.c_str()), name.c_str(), error);
  struct {  // CUfunction_attribute and hipFunction_attribute have these numbers alike
    int number;
    int* value;
  } facts[] = {{0, &out->max_threads}, {1, &out->static_shared}, {3, &out->local_bytes}, {4, &out->registers}};
  for (auto& fact : facts)
    good = good && check(api_.function_attribute(fact.value, fact.number, out->function), "what the kernel takes", error);
  good = good && prepare(*out, shape, error);
  if (!good) {
    api_.unload(out->module);
    *out = Kernel();
  }
  return good;
}

void Driver::unload(const Kernel& kernel) {
  std::string ignored;
  Scope scope;
  if (kernel.module && enter(kernel.context, kernel.device, &scope, &ignored)) api_.unload(kernel.module);
}

bool Driver::prepare(const Kernel&, const Shape&, std::string*) { return true; }

bool Driver::launch(const Launch& launch, std::string* error) {
  Scope scope;
  if (!ready(error) || !enter(launch.context, launch.device, &scope, error)) return false;
  void* few[64];
  std::vector<void*> many;
  void** params = few;
  if (launch.count + launch.map_count > 64) {
    many.resize(launch.count + launch.map_count);
    params = many.data();
  }
  for (size_t i = 0; i < launch.count; ++i) params[i] = const_cast<char*>(static_cast<const char*>(launch.args)) + 8 * i;
  return queue(launch, params, error);
}

bool Driver::synchronize(std::string* error) {
  Scope scope;
  return ready(error) && enter(nullptr, -1, &scope, error) && check(api_.synchronize(), "a kernel failed", error);
}

bool Driver::host_pointer_mapped(uint64_t pointer) {
  std::string ignored;
  Scope scope;
  uint64_t there = 0;  // attribute 3 is the device's pointer; with unified addressing it is the address itself
  return ready(&ignored) && enter(nullptr, -1, &scope, &ignored) && api_.pointer_attribute(&there, 3, pointer) == 0 && there == pointer;
}

bool Driver::allocate(size_t bytes, uint64_t* pointer, std::string* error) {
  Scope scope;
  return ready(error) && enter(nullptr, -1, &scope, error) && check(api_.allocate(pointer, bytes), "memory cannot be allocated", error);
}

bool Driver::release(uint64_t pointer, std::string* error) {
  return ready(error) && check(api_.release(pointer), "memory cannot be released", error);
}

}  // namespace triton::gpu
