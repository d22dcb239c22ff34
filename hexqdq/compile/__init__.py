"""From partitioned units to shared objects: TOSA, linalg, schedule, kernels, objects."""
