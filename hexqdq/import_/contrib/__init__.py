"""Ops of onnxruntime's own domain, written as ONNX's."""
