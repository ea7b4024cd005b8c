"""What a training run holds in the memory of one GPU: states in closed form, activations measured on fake tensors."""
