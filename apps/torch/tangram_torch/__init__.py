"""Trains a transformer as a launch plan of Tangram says, on PyTorch alone. README.md of apps/torch has the map."""
