#include "registration.h"

#include <torch/csrc/autograd/engine.h>

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

} // namespace

void start_autograd_threads() {
  auto& engine = Engine::get_default_engine();
  if (Members::has_started(engine) && !Members::has_device_threads(engine)) {
    Members::start(engine);
  }
}

} // namespace cuda_morph_sim
