"""NVIDIA GPUs: laid-out tile IR to PTX and machine code, launched through the CUDA driver."""
