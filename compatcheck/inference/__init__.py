"""What follows from stated facts; see `infer.infer`."""
