#include "memory.h"

#include "device_state.h"
#include "adapter_limits.h"

#include <c10/util/Exception.h>
#include <c10/util/irange.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iomanip>
#include <sstream>

namespace cuda_morph_sim::memory {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// CUDA's caching allocator hands out multiples of this and reserves in segments; programs and
// their tests know these figures, so the books here follow the same steps.
constexpr int64_t kRounding = 512;
constexpr int64_t kSmallRequest = kMiB;
constexpr int64_t kSmallSegment = 2 * kMiB;
constexpr int64_t kLargeSegment = 20 * kMiB;
constexpr int64_t kLargeSegmentRequest = 10 * kMiB;

enum Pool : size_t { kAll = 0, kSmall = 1, kLarge = 2 };

// A lock that costs a few nanoseconds: it is taken for every tensor that is made or dropped and
// held for some additions only.
class SpinLock {
 public:
  void lock() noexcept {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() noexcept {
    flag_.clear(std::memory_order_release);
  }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

struct Book {
  SpinLock lock;
  int64_t limit = int64_t{16} << 30;
  double fraction = 1.0;
  c10::CachingAllocator::StatArray allocations;
  c10::CachingAllocator::StatArray segments;
  c10::CachingAllocator::StatArray allocated;
  c10::CachingAllocator::StatArray reserved;
  c10::CachingAllocator::StatArray requested;
  int64_t retries = 0;
  int64_t ooms = 0;
  int64_t device_allocations = 0;
  int64_t device_frees = 0;

  int64_t allowed() const noexcept {
    return fraction < 1.0 ? static_cast<int64_t>(static_cast<double>(limit) * fraction) : limit;
  }
};

// Never destroyed: tensors may be dropped after static destructors have run.
std::array<Book, kMaxDevices>& books = *new std::array<Book, kMaxDevices>();

class Guard {
 public:
  explicit Guard(Book& book) noexcept : book_(book) {
    book_.lock.lock();
  }
  ~Guard() {
    book_.lock.unlock();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Book& book_;
};

// A forked DataLoader worker must not inherit a lock that another thread held.
void lock_all_books() {
  for (auto& book : books) {
    book.lock.lock();
  }
}
void unlock_all_books() {
  for (auto& book : books) {
    book.lock.unlock();
  }
}
[[maybe_unused]] const int fork_handlers =
    pthread_atfork(lock_all_books, unlock_all_books, unlock_all_books);

int64_t round_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

Pool pool_of(int64_t rounded) {
  return rounded <= kSmallRequest ? kSmall : kLarge;
}

int64_t segment_size(int64_t rounded) {
  if (rounded <= kSmallRequest) {
    return kSmallSegment;
  }
  return rounded < kLargeSegmentRequest ? kLargeSegment : round_up(rounded, 2 * kMiB);
}

void drop_cached(Book& book) {
  for (auto pool : {kSmall, kLarge}) {
    const auto spare = book.reserved[pool].current - book.allocated[pool].current;
    const auto segment = pool == kSmall ? kSmallSegment : 2 * kMiB;
    const auto freed = spare / segment * segment;
    if (freed <= 0) {
      continue;
    }
    book.reserved[pool].decrease(freed);
    book.reserved[kAll].decrease(freed);
    const auto kept = book.allocated[pool].current == 0
        ? 0
        : std::max<int64_t>(1, book.segments[pool].current * book.allocated[pool].current /
                                   (book.reserved[pool].current + freed));
    const auto dropped = book.segments[pool].current - kept;
    book.segments[pool].decrease(dropped);
    book.segments[kAll].decrease(dropped);
    book.device_frees += dropped;
  }
}

void reserve(Book& book, Pool pool, int64_t rounded) {
  const auto need = book.allocated[pool].current + rounded - book.reserved[pool].current;
  if (need <= 0) {
    return;
  }
  auto segment = std::max(segment_size(rounded), round_up(need, kRounding));
  if (book.reserved[kAll].current + segment > book.allowed()) {
    ++book.retries;
    drop_cached(book);
    // What is left may be less than a whole segment and still be enough.
    const auto left = book.allowed() - book.reserved[kAll].current;
    const auto least = book.allocated[pool].current + rounded - book.reserved[pool].current;
    segment = std::clamp(segment, std::max<int64_t>(least, 0), std::max(left, least));
  }
  book.reserved[pool].increase(segment);
  book.reserved[kAll].increase(segment);
  book.segments[pool].increase(1);
  book.segments[kAll].increase(1);
  ++book.device_allocations;
}

std::string format_size(int64_t nbytes) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(2);
  if (nbytes >= (int64_t{1} << 30)) {
    text << static_cast<double>(nbytes) / (int64_t{1} << 30) << " GiB";
  } else if (nbytes >= kMiB) {
    text << static_cast<double>(nbytes) / kMiB << " MiB";
  } else {
    text << static_cast<double>(nbytes) / 1024 << " KiB";
  }
  return text.str();
}

} // namespace

void throw_out_of_memory(c10::DeviceIndex device, size_t nbytes) {
  int64_t total = 0;
  int64_t allowed = 0;
  Figures now{};
  {
    Guard guard(books[device]);
    total = books[device].limit;
    allowed = books[device].allowed();
    ++books[device].ooms;
  }
  TORCH_CHECK_WITH(
      OutOfMemoryError, limits::out_of_memory_text().empty(), limits::out_of_memory_text());
  now = figures(device);
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      display_name(),
      " out of memory. Tried to allocate ",
      format_size(static_cast<int64_t>(nbytes)),
      ". GPU ",
      static_cast<int>(device),
      " (simulated device ",
      c10::Device(kDeviceType, device).str(),
      ") has a total capacity of ",
      format_size(total),
      " of which ",
      format_size(std::max<int64_t>(total - now.allocated, 0)),
      " is free.",
      allowed < total ? " " + format_size(allowed) + " allowed;" : "",
      " Of the allocated memory ",
      format_size(now.allocated),
      " is allocated by PyTorch, and ",
      format_size(now.reserved - now.allocated),
      " is reserved by PyTorch but unallocated. The capacity is simulated: set it with "
      "CUDA_MORPH_SIM_MEMORY or set_memory_limit().");
}

void charge(c10::DeviceIndex device, size_t nbytes) {
  if (nbytes == 0) {
    return;
  }
  auto& book = books[device];
  const auto requested = static_cast<int64_t>(nbytes);
  const auto rounded = round_up(requested, kRounding);
  {
    Guard guard(book);
    if (requested >= 0 && book.allocated[kAll].current + rounded <= book.allowed()) [[likely]] {
      const auto pool = pool_of(rounded);
      reserve(book, pool, rounded);
      for (auto index : {kAll, pool}) {
        book.allocations[index].increase(1);
        book.allocated[index].increase(rounded);
        book.requested[index].increase(requested);
      }
      return;
    }
  }
  throw_out_of_memory(device, nbytes);
}

void release(c10::DeviceIndex device, size_t nbytes) noexcept {
  if (nbytes == 0) {
    return;
  }
  auto& book = books[device];
  const auto requested = static_cast<int64_t>(nbytes);
  const auto rounded = round_up(requested, kRounding);
  const auto pool = pool_of(rounded);
  Guard guard(book);
  for (auto index : {kAll, pool}) {
    book.allocations[index].decrease(1);
    book.allocated[index].decrease(rounded);
    book.requested[index].decrease(requested);
  }
}

Figures figures(c10::DeviceIndex device) noexcept {
  auto& book = books[device];
  Guard guard(book);
  return {
      book.allocated[kAll].current,
      book.allocated[kAll].peak,
      book.reserved[kAll].current,
      book.reserved[kAll].peak};
}

Stats statistics(c10::DeviceIndex device) {
  auto& book = books[device];
  Stats stats;
  Guard guard(book);
  stats.allocation = book.allocations;
  stats.active = book.allocations;
  stats.segment = book.segments;
  stats.allocated_bytes = book.allocated;
  stats.active_bytes = book.allocated;
  stats.reserved_bytes = book.reserved;
  stats.requested_bytes = book.requested;
  stats.num_alloc_retries = book.retries;
  stats.num_ooms = book.ooms;
  stats.num_device_alloc = book.device_allocations;
  stats.num_device_free = book.device_frees;
  return stats;
}

void reset_peaks(c10::DeviceIndex device) {
  auto& book = books[device];
  Guard guard(book);
  for (auto* stats :
       {&book.allocations, &book.segments, &book.allocated, &book.reserved, &book.requested}) {
    for (auto& stat : *stats) {
      stat.reset_peak();
    }
  }
}

void reset_accumulated(c10::DeviceIndex device) {
  auto& book = books[device];
  Guard guard(book);
  for (auto* stats :
       {&book.allocations, &book.segments, &book.allocated, &book.reserved, &book.requested}) {
    for (auto& stat : *stats) {
      stat.reset_accumulated();
    }
  }
  book.retries = 0;
  book.ooms = 0;
  book.device_allocations = 0;
  book.device_frees = 0;
}

void release_cached(c10::DeviceIndex device) {
  Guard guard(books[device]);
  drop_cached(books[device]);
}

size_t limit(c10::DeviceIndex device) noexcept {
  Guard guard(books[device]);
  return static_cast<size_t>(books[device].limit);
}

void set_fraction(c10::DeviceIndex device, double fraction) {
  Guard guard(books[device]);
  books[device].fraction = fraction;
}

void set_limit(c10::DeviceIndex device, size_t nbytes) {
  Guard guard(books[device]);
  books[device].limit = static_cast<int64_t>(nbytes);
}

} // namespace cuda_morph_sim::memory
