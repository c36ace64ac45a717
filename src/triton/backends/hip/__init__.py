"""AMD GPUs (experimental): laid-out tile IR to code objects, launched through the HIP runtime."""
