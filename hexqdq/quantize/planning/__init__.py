"""What is quantized, with which parameters and types: decisions on the float graph."""
