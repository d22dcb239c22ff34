"""Reads an ONNX model and makes it canonical: static shapes, one opset range, named nodes, folded constants."""
