"""MAMBA (Coullon, South and Nemeth 2023): its tables and figures."""
