"""What other NPU back ends ask of a QDQ graph, as data, and which node groups break it."""
