"""What GPU kernels take of a multiprocessor: read out of binaries, and in libraries/ what usual libraries take."""
