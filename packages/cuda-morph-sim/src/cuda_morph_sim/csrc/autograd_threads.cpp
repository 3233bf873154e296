#include "device_state.h"
#include "registration.h"

#include <torch/csrc/autograd/engine.h>
#include <unistd.h>

#include <thread>

namespace cuda_morph_sim {
namespace {

using torch::autograd::Engine;

// The engine starts one thread per device on its first backward pass and never looks again, so a
// device that is loaded after a pass on the CPU would find no thread. Its members are protected,
// not private: reached by name through a derived class.
struct Members : Engine {
  static bool has_started(Engine& engine) {
    return (engine.*(&Members::thread_pool_shared_)) != nullptr;
  }
  static bool has_device_threads(Engine& engine) {
    return !(engine.*(&Members::device_ready_queues_)).empty();
  }
  static void start(Engine& engine) {
    (engine.*(&Members::start_device_threads))();
  }
};

// A backward pass over nothing, so that a device's thread has to take up new work.
void pass_over(c10::DeviceIndex index) {
  const auto options = at::TensorOptions().device(c10::Device(kDeviceType, index));
  const auto leaf = at::empty({0}, options).set_requires_grad(true);
  leaf.mul(1).backward(at::empty({0}, options));
}

const pid_t loading_process = getpid();

} // namespace

void start_autograd_threads() {
  auto& engine = Engine::get_default_engine();
  if (Members::has_started(engine) && !Members::has_device_threads(engine)) {
    Members::start(engine);
  }
}

void settle_autograd_threads() {
  auto& engine = Engine::get_default_engine();
  // The threads are not there in a forked child.
  if (!Members::has_device_threads(engine) || getpid() != loading_process) {
    return;
  }
  // From a thread that has no Python objects in its state: the passes themselves hold none.
  std::thread([] {
    for (c10::DeviceIndex index = 0; index < device_count(); ++index) {
      try {
        pass_over(index);
      } catch (const std::exception&) {
        // The process is ending; there is nobody to tell.
      }
    }
  }).join();
}

} // namespace cuda_morph_sim
