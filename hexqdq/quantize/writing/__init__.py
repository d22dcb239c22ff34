"""What the plan becomes: integer constants, Q and DQ in the graph, the file."""
