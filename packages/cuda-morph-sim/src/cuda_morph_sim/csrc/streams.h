// Device guard, streams and events of the simulated device.
#pragma once

namespace cuda_morph_sim {

void register_device_guard();

} // namespace cuda_morph_sim
