// Debug mode: the address that a device tensor shows is a reserved range without access, so that
// host code which reads device memory through a raw pointer stops at once instead of working here
// and failing on real hardware.
#pragma once

#include "host_block.h"

namespace cuda_morph_sim {

// Whether device memory is made that way from now on.
void set_guarded_addresses(bool enabled);
bool guarded_addresses() noexcept;

// Reserves an inaccessible range for a block; null when the system refuses.
void* reserve_guard(HostBlock& block, size_t nbytes);
void release_guard(void* address, size_t nbytes) noexcept;

// The host bytes behind a guarded address, with a reference to their block; a null DataPtr when the
// address is not one of ours. PyTorch itself makes tensors from device addresses (from_blob).
c10::DataPtr host_bytes_behind(const void* address);

} // namespace cuda_morph_sim
