"""Groups of nodes that become one unit though they are more than an op with its activations."""
