"""What every operation of a lowered function becomes: nests, copies, contractions."""
