"""TrainCheck's published silent faults (OSDI 2025), each written anew as a small program, and what finds it."""
