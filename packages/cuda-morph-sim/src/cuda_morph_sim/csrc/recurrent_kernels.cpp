// The fused cells that nn.LSTM and nn.GRU call on every accelerator; the CPU has none, because it
// composes them from smaller operators. Gate layouts are those of PyTorch's CUDA kernels.
#include "kernels.h"
#include "tensor_alias.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat_ops.h>

#include <vector>

namespace cuda_morph_sim {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// Host views of one call's arguments, and the way back for its results.
class HostCall {
 public:
  Tensor in(const Tensor& tensor) {
    if (!is_on_device(tensor)) {
      return tensor;
    }
    index_ = tensor.device().index();
    return host_alias(tensor, aliases_);
  }
  Tensor in(const OptionalTensor& tensor) {
    return tensor ? in(*tensor) : Tensor();
  }
  Tensor out(Tensor tensor) {
    return to_device(std::move(tensor), aliases_, index_);
  }

 private:
  Aliases aliases_;
  c10::DeviceIndex index_ = 0;
};

Tensor join(const std::vector<Tensor>& parts) {
  return at::_ops::cat::call(at::ITensorListRef(parts), 1);
}

Tensor plus(const Tensor& gates, const Tensor& bias) {
  return bias.defined() ? gates + bias : gates;
}

Tensor one_minus(const Tensor& value) {
  return value.neg() + 1;
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& cx,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  HostCall call;
  const auto gates = plus(call.in(input_gates), call.in(input_bias)) +
      plus(call.in(hidden_gates), call.in(hidden_bias));
  const auto parts = gates.chunk(4, 1);
  const auto in = parts[0].sigmoid();
  const auto forget = parts[1].sigmoid();
  const auto cell = parts[2].tanh();
  const auto out = parts[3].sigmoid();
  auto cy = forget * call.in(cx) + in * cell;
  auto hy = out * cy.tanh();
  return {
      call.out(std::move(hy)), call.out(std::move(cy)), call.out(join({in, forget, cell, out}))};
}

std::tuple<Tensor, Tensor, Tensor> lstm_cell_backward(
    const OptionalTensor& grad_hy,
    const OptionalTensor& grad_cy,
    const Tensor& cx,
    const Tensor& cy,
    const Tensor& workspace,
    bool has_bias) {
  if (!(grad_hy && grad_hy->defined()) && !(grad_cy && grad_cy->defined())) {
    return {};
  }
  HostCall call;
  const auto parts = call.in(workspace).chunk(4, 1);
  const auto &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const auto tanh_cy = call.in(cy).tanh();
  const auto grad_h = call.in(grad_hy);
  const auto grad_c = call.in(grad_cy);
  auto total = grad_h.defined() ? grad_h * out * one_minus(tanh_cy * tanh_cy) : Tensor();
  if (grad_c.defined()) {
    total = total.defined() ? total + grad_c : grad_c;
  }
  const auto grad_out =
      grad_h.defined() ? grad_h * tanh_cy * out * one_minus(out) : out.new_zeros(out.sizes());
  auto gates = join(
      {total * cell * in * one_minus(in),
       total * call.in(cx) * forget * one_minus(forget),
       total * in * one_minus(cell * cell),
       grad_out});
  auto bias = has_bias ? gates.sum({0}, /*keepdim=*/false) : Tensor();
  auto grad_cx = total * forget;
  return {call.out(std::move(gates)), call.out(std::move(grad_cx)), call.out(std::move(bias))};
}

std::tuple<Tensor, Tensor> gru_cell(
    const Tensor& input_gates,
    const Tensor& hidden_gates,
    const Tensor& hx,
    const OptionalTensor& input_bias,
    const OptionalTensor& hidden_bias) {
  HostCall call;
  const auto from_input = plus(call.in(input_gates), call.in(input_bias)).chunk(3, 1);
  const auto from_hidden = plus(call.in(hidden_gates), call.in(hidden_bias)).chunk(3, 1);
  const auto previous = call.in(hx);
  const auto reset = (from_input[0] + from_hidden[0]).sigmoid();
  const auto update = (from_input[1] + from_hidden[1]).sigmoid();
  const auto fresh = (from_input[2] + reset * from_hidden[2]).tanh();
  auto hy = fresh + update * (previous - fresh);
  return {
      call.out(std::move(hy)),
      call.out(join({reset, update, fresh, previous, from_hidden[2]}))};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_cell_backward(
    const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  HostCall call;
  const auto parts = call.in(workspace).chunk(5, 1);
  const auto &reset = parts[0], &update = parts[1], &fresh = parts[2];
  const auto &previous = parts[3], &hidden = parts[4];
  const auto grad = call.in(grad_hy);
  const auto grad_update = grad * (previous - fresh) * one_minus(update) * update;
  const auto grad_fresh = grad * one_minus(update) * one_minus(fresh * fresh);
  const auto grad_reset = grad_fresh * hidden * one_minus(reset) * reset;
  auto input_gates = join({grad_reset, grad_update, grad_fresh});
  auto hidden_gates = join({grad_reset, grad_update, grad_fresh * reset});
  auto grad_hx = grad * update;
  auto input_bias = has_bias ? input_gates.sum({0}, false) : Tensor();
  auto hidden_bias = has_bias ? hidden_gates.sum({0}, false) : Tensor();
  return {
      call.out(std::move(input_gates)),
      call.out(std::move(hidden_gates)),
      call.out(std::move(grad_hx)),
      call.out(std::move(input_bias)),
      call.out(std::move(hidden_bias))};
}

} // namespace

void register_recurrent_kernels(torch::Library& library) {
  library.impl("_thnn_fused_lstm_cell", &lstm_cell);
  library.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  library.impl("_thnn_fused_gru_cell", &gru_cell);
  library.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
}

} // namespace cuda_morph_sim
