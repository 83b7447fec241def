"""The optimizer: Muon for the layers' matrices, Adam for the embedding and the norms.

Source: K. Jordan, "Muon: an optimizer for hidden layers in neural networks" (2024); Kingma, Ba, "Adam" (2015).
"""
import torch


def orthogonal(matrix, steps=5):
    """The nearest matrix whose singular values are about 1, by a Newton-Schulz iteration in half the bits."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[0] > matrix.shape[1]
    x = ((matrix.T if tall else matrix) / (matrix.norm() + 1e-7)).bfloat16()
    for _ in range(steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x.T if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr, momentum=0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                average = self.state[weight].setdefault("average", torch.zeros_like(weight))
                average.lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(average, group["momentum"])
                scale = max(1, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.add_(orthogonal(ahead), alpha=-group["lr"] * scale)


def optimizers_for(model, matrix_rate=0.02, other_rate=0.003):
    """The rates are the highest; a schedule scales both."""
    matrices = [weight for name, weight in model.named_parameters() if name.startswith("blk") and weight.dim() == 2]
    chosen = {id(weight) for weight in matrices}
    others = [weight for weight in model.parameters() if id(weight) not in chosen]
    return Muon(matrices, matrix_rate), torch.optim.Adam(others, other_rate, betas=(0.9, 0.98))
