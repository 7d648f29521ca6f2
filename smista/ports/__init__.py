"""Protocols between the rooms. They import core types and nothing else."""
