"""What is installed on this machine: distributions, driver, GPUs, toolkit; nothing of it is imported or run."""
