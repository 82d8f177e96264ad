"""The reconstructor: lost fragment archives are made from the others, and those in a wrong place go home."""
