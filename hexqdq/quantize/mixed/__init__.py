"""Mixed precision: which tensor groups get 16-bit activations."""
