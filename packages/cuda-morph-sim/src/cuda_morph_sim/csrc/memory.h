// The books of each simulated device's memory: what is allocated, what is reserved, what is left.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace cuda_morph_sim::memory {

using Stats = c10::CachingDeviceAllocator::DeviceStats;

// Counts an allocation; raises torch.OutOfMemoryError when the device's limit does not allow it.
void charge(c10::DeviceIndex device, size_t nbytes);

// Counts the end of an allocation of the same size.
void release(c10::DeviceIndex device, size_t nbytes) noexcept;

// Raises the error of `charge` for memory that the host itself could not supply.
[[noreturn]] void throw_out_of_memory(c10::DeviceIndex device, size_t nbytes);

struct Figures {
  int64_t allocated;
  int64_t allocated_peak;
  int64_t reserved;
  int64_t reserved_peak;
};

// The four figures that programs read in a loop, without building the full statistics.
Figures figures(c10::DeviceIndex device) noexcept;

Stats statistics(c10::DeviceIndex device);
void reset_peaks(c10::DeviceIndex device);
void reset_accumulated(c10::DeviceIndex device);

// Gives back what is reserved but not allocated.
void release_cached(c10::DeviceIndex device);

size_t limit(c10::DeviceIndex device) noexcept;
void set_limit(c10::DeviceIndex device, size_t nbytes);

// The share of the capacity that this process may use, between 0 and 1.
void set_fraction(c10::DeviceIndex device, double fraction);

} // namespace cuda_morph_sim::memory
