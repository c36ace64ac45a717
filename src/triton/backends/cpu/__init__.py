"""The processor this process runs on: tile IR as vector loops, compiled by LLVM and run on a thread pool."""
