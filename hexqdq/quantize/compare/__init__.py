"""A float model against its quantized form, tensor by tensor."""
