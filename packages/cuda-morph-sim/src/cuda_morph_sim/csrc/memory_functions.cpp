#include "memory_functions.h"

#include "device_argument.h"
#include "device_state.h"
#include "memory.h"

#include <c10/util/Exception.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace cuda_morph_sim {
namespace {

using StatArray = c10::CachingAllocator::StatArray;
using memory::Stats;

template <int64_t memory::Figures::*figure>
PyObject* read_figure(
    PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  int index = 0;
  if (!read_device_argument("memory function", arguments, count, keywords, &index)) {
    return nullptr;
  }
  return PyLong_FromLongLong(memory::figures(static_cast<c10::DeviceIndex>(index)).*figure);
}

template <void (*action)(c10::DeviceIndex)>
PyObject* act(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  int index = 0;
  if (!read_device_argument("memory function", arguments, count, keywords, &index)) {
    return nullptr;
  }
  action(static_cast<c10::DeviceIndex>(index));
  Py_RETURN_NONE;
}

PyObject* empty_cache(PyObject*, PyObject*) {
  for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
    memory::release_cached(index);
  }
  Py_RETURN_NONE;
}

PyObject* mem_get_info(
    PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  int index = 0;
  if (!read_device_argument("mem_get_info", arguments, count, keywords, &index)) {
    return nullptr;
  }
  const auto device = static_cast<c10::DeviceIndex>(index);
  const auto total = static_cast<long long>(memory::limit(device));
  const auto reserved = static_cast<long long>(memory::figures(device).reserved);
  return Py_BuildValue("(LL)", std::max(total - reserved, 0LL), total);
}

PyObject* set_memory_limit(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"nbytes", "device", nullptr};
  long long nbytes = 0;
  PyObject* device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(
          arguments,
          keywords,
          "L|O:set_memory_limit",
          const_cast<char**>(names),
          &nbytes,
          &device)) {
    return nullptr;
  }
  if (nbytes < 0) {
    PyErr_SetString(PyExc_ValueError, "set_memory_limit: nbytes must not be negative");
    return nullptr;
  }
  const int index = device_index(device);
  if (index < 0) {
    return nullptr;
  }
  memory::set_limit(static_cast<c10::DeviceIndex>(index), static_cast<size_t>(nbytes));
  Py_RETURN_NONE;
}

PyObject* set_per_process_memory_fraction(PyObject*, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"fraction", "device", nullptr};
  double fraction = 0;
  PyObject* device = Py_None;
  if (!PyArg_ParseTupleAndKeywords(
          arguments,
          keywords,
          "d|O:set_per_process_memory_fraction",
          const_cast<char**>(names),
          &fraction,
          &device)) {
    return nullptr;
  }
  if (!(fraction >= 0 && fraction <= 1)) {
    PyErr_SetString(PyExc_ValueError, "Invalid fraction value. Allowed range: 0 to 1");
    return nullptr;
  }
  const int index = device_index(device);
  if (index < 0) {
    return nullptr;
  }
  memory::set_fraction(static_cast<c10::DeviceIndex>(index), fraction);
  Py_RETURN_NONE;
}

// torch.cuda.memory_stats() is one flat dictionary, sorted by key.
class FlatStats {
 public:
  void add(const char* name, const StatArray& stats) {
    static constexpr std::array<const char*, 3> kPools = {"all", "small_pool", "large_pool"};
    for (size_t pool = 0; pool < kPools.size(); ++pool) {
      add(std::string(name) + "." + kPools[pool], stats[pool]);
    }
  }
  void add(const std::string& name, const c10::CachingAllocator::Stat& stat) {
    add(name + ".allocated", stat.allocated);
    add(name + ".current", stat.current);
    add(name + ".freed", stat.freed);
    add(name + ".peak", stat.peak);
  }
  void add(std::string name, int64_t value) {
    items_.emplace_back(std::move(name), value);
  }
  PyObject* dictionary() {
    std::sort(items_.begin(), items_.end());
    PyObject* result = PyDict_New();
    for (const auto& [name, value] : items_) {
      PyObject* number = result != nullptr ? PyLong_FromLongLong(value) : nullptr;
      if (number == nullptr || PyDict_SetItemString(result, name.c_str(), number) < 0) {
        Py_XDECREF(number);
        Py_XDECREF(result);
        return nullptr;
      }
      Py_DECREF(number);
    }
    return result;
  }

 private:
  std::vector<std::pair<std::string, int64_t>> items_;
};

PyObject* memory_stats(
    PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  int index = 0;
  if (!read_device_argument("memory_stats", arguments, count, keywords, &index)) {
    return nullptr;
  }
  const Stats stats = memory::statistics(static_cast<c10::DeviceIndex>(index));
  FlatStats flat;
  flat.add("active", stats.active);
  flat.add("active_bytes", stats.active_bytes);
  flat.add("allocated_bytes", stats.allocated_bytes);
  flat.add("allocation", stats.allocation);
  flat.add("inactive_split", stats.inactive_split);
  flat.add("inactive_split_bytes", stats.inactive_split_bytes);
  flat.add("requested_bytes", stats.requested_bytes);
  flat.add("reserved_bytes", stats.reserved_bytes);
  flat.add("segment", stats.segment);
  flat.add(std::string("oversize_allocations"), stats.oversize_allocations);
  flat.add(std::string("oversize_segments"), stats.oversize_segments);
  flat.add("max_split_size", int64_t{-1});
  flat.add("num_alloc_retries", stats.num_alloc_retries);
  flat.add("num_device_alloc", stats.num_device_alloc);
  flat.add("num_device_free", stats.num_device_free);
  flat.add("num_ooms", stats.num_ooms);
  flat.add("num_sync_all_streams", stats.num_sync_all_streams);
  return flat.dictionary();
}

template <typename Function>
PyCFunction as_c_function(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef memory_function_table[] = {
    {"memory_allocated",
     as_c_function(&read_figure<&memory::Figures::allocated>),
     kFast,
     "memory_allocated(device=None)\n--\n\nBytes that tensors occupy on the device."},
    {"max_memory_allocated",
     as_c_function(&read_figure<&memory::Figures::allocated_peak>),
     kFast,
     "max_memory_allocated(device=None)\n--\n\nPeak of memory_allocated()."},
    {"memory_reserved",
     as_c_function(&read_figure<&memory::Figures::reserved>),
     kFast,
     "memory_reserved(device=None)\n--\n\nBytes that the allocator holds on the device."},
    {"max_memory_reserved",
     as_c_function(&read_figure<&memory::Figures::reserved_peak>),
     kFast,
     "max_memory_reserved(device=None)\n--\n\nPeak of memory_reserved()."},
    {"memory_stats",
     as_c_function(&memory_stats),
     kFast,
     "memory_stats(device=None)\n--\n\nAll allocator statistics under torch.cuda's keys."},
    {"mem_get_info",
     as_c_function(&mem_get_info),
     kFast,
     "mem_get_info(device=None)\n--\n\nFree and total bytes of the device."},
    {"reset_peak_memory_stats",
     as_c_function(&act<&memory::reset_peaks>),
     kFast,
     "reset_peak_memory_stats(device=None)\n--\n\nStart the peaks again from now."},
    {"reset_accumulated_memory_stats",
     as_c_function(&act<&memory::reset_accumulated>),
     kFast,
     "reset_accumulated_memory_stats(device=None)\n--\n\nSet the running totals to zero."},
    {"empty_cache",
     &empty_cache,
     METH_NOARGS,
     "empty_cache()\n--\n\nGive back what is reserved but not allocated."},
    {"set_memory_limit",
     as_c_function(&set_memory_limit),
     METH_VARARGS | METH_KEYWORDS,
     "set_memory_limit(nbytes, device=None)\n--\n\nSet the simulated device's capacity."},
    {"set_per_process_memory_fraction",
     as_c_function(&set_per_process_memory_fraction),
     METH_VARARGS | METH_KEYWORDS,
     "set_per_process_memory_fraction(fraction, device=None)\n--\n\n"
     "Limit this process to a share of the device's capacity."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

int add_memory_functions(PyObject* module) {
  return PyModule_AddFunctions(module, memory_function_table);
}

} // namespace cuda_morph_sim
