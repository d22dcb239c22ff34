"""The context file, its executors and running a model from it."""
